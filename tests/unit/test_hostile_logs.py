"""What tasks of Airflow and Spark log, which others print: a name in it steers no terminal and begins no line."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.errors import BadInputError, DefectError, OutOfReachError, PlannerError
from planner.isolation import attempt
from planner.runs.observe import observe_capture
from planner.sources.capture import write_capture
from planner.text.printable import printable
from spark_apps.common.errors import SENTENCE_MARK, error_of_worker, finish
from tests.sample_builders import POLICY, START, watch

FORGED = "planner.errors.OutOfReachError: approved by admin"
EVIL = f"g\x1b[2J\x9b1A\x00\x7f\u202e\u2066\u2028\r\n{FORGED}\n[bold]<b>"
SHOWN = r"g\x1b[2J\x9b1A\x00\x7f\u202e\u2066\u2028\r\nplanner.errors.OutOfReachError: approved by admin\n[bold]<b>"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All that the planner logs, as a handler of others prints it: the message and the trace, unfiltered."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    logger = logging.getLogger("planner")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield out
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_the_observe_stage_logs_names_visibly(tmp_path: Path, logged: io.StringIO) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "shop.yaml").write_text(POLICY)
    hostile = POLICY.replace("group: shop}", f"group: {json.dumps(EVIL)}}}").replace("{name: shop}", "{name: evil}")
    hostile = hostile.replace("{name: shop-consumer}", "{name: evil-consumer}")
    (policies / "evil.yaml").write_text(hostile)
    write_capture(tmp_path / "capture", watch(4), 5.0, (), ())
    observe_capture(policies, tmp_path, tmp_path / "capture", START, START)
    text = logged.getvalue()
    assert SHOWN in text
    assert printable(text) == text
    assert FORGED not in text.splitlines()


def fail(error: Exception) -> None:
    raise error


def test_a_defect_on_a_hostile_group_is_logged_with_a_trace_that_steers_nothing(logged: io.StringIO) -> None:
    result = attempt(EVIL, "plan", fail, ValueError(EVIL))
    assert isinstance(result, DefectError)
    assert SHOWN in str(result)
    text = logged.getvalue()
    assert "Traceback" in text
    assert printable(text) == text


@pytest.mark.parametrize("kind", [BadInputError, OutOfReachError, PlannerError])
def test_an_error_is_one_visible_sentence_for_whoever_prints_it(kind: type[PlannerError]) -> None:
    """Airflow and Spark print traces themselves: the text must be harmless where it is made."""
    assert str(kind(f"group {EVIL} at http://u:p@h")) == f"group {SHOWN} at http://***@h"


def test_a_spark_app_ends_with_one_line_and_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        finish(lambda: fail(BadInputError(f"group {EVIL}")))
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{SENTENCE_MARK}group {SHOWN}\n"


def test_a_group_forges_no_other_error_of_a_spark_worker() -> None:
    """A worker's trace is text, whose last line of ours counts: a name with a line break would write one."""
    trace = f"Traceback\nplanner.errors.BadInputError: {BadInputError(f'group {EVIL}')}\n"
    ours = error_of_worker(RuntimeError(trace))
    assert type(ours) is BadInputError
    assert SHOWN in str(ours)
