"""The log: one object or one line a message, and what would tell secrets is not said at any level."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from planner.controller.logs import formatter, set_up
from planner.controller.settings import LogFormat, LogLevel
from planner.text.printable import printable


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


FORGED = "2026-11-21 10:00:00,000 INFO    plan approved plan=mine"
EVIL = f'g\x1b[2J\x9b1A\x00\x7f\u202e\u2066\u2028\r\n{FORGED}\n{{"level": "INFO"}}'


def hostile_record() -> logging.LogRecord:
    """Return a record whose message, field and error hold a name that steers terminals and writes lines of its own."""
    try:
        raise ValueError(EVIL)
    except ValueError:
        info = sys.exc_info()
    made = logging.getLogger("planner.x").makeRecord(
        "planner.x", logging.ERROR, "file", 1, "group %s was not read", (EVIL,), info, extra={"plan": EVIL}
    )
    made.taskName = None
    return made


def test_a_name_neither_steers_the_text_log_nor_writes_a_line_into_it() -> None:
    text = formatter(LogFormat.TEXT).format(hostile_record())
    assert printable(text) == text
    first, *trace = text.splitlines()
    assert r"group g\x1b[2J\x9b1A\x00\x7f\u202e\u2066\u2028\r\n2026-11-21" in first
    assert trace
    assert all(line.startswith("    ") for line in trace)


def test_a_name_neither_steers_the_json_log_nor_is_a_second_object() -> None:
    text = formatter(LogFormat.JSON).format(hostile_record())
    assert printable(text, keep="") == text
    found = json.loads(text)
    assert (found["message"], found["plan"]) == (f"group {EVIL} was not read", EVIL)
    assert found["level"] == "ERROR"
