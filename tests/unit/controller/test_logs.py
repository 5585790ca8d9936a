"""The log: one object or one line a message, and what would tell secrets is not said at any level."""

import json
import logging
from collections.abc import Iterator

import pytest

from planner.controller.logs import formatter, set_up
from planner.controller.settings import LogFormat, LogLevel


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def record() -> logging.LogRecord:
    made = logging.getLogger("planner.x").makeRecord(
        "planner.x", logging.WARNING, "file", 1, "to be tried again", (), None, extra={"plan": "one", "times": 3}
    )
    made.taskName = None
    return made


def test_as_json_each_field_is_one() -> None:
    found = json.loads(formatter(LogFormat.JSON).format(record()))
    assert found.pop("time")[:2] == "20"
    assert found == {
        "level": "WARNING", "logger": "planner.x", "message": "to be tried again", "plan": "one", "times": 3,
    }  # fmt: skip


def test_as_text_fields_follow_the_phrase() -> None:
    assert formatter(LogFormat.TEXT).format(record()).endswith("WARNING to be tried again plan=one times=3")


def test_at_level_debug_we_speak_and_the_clients_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(LogFormat.JSON, LogLevel.DEBUG)
    logging.getLogger("planner.x").debug("ours")
    # What kubernetes.client.rest says of every answer.
    logging.getLogger("kubernetes.client.rest").debug("response body: %s", "p4ssw0rd")
    said = capsys.readouterr().err
    assert json.loads(said)["message"] == "ours"
    assert "p4ssw0rd" not in said
