"""What is noticed over several runs: holds that last and decisions that stay away, each once."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from planner.policies.notices import FILE, LAST_DECISIONS, Notice, NoticeRules, Result, policies_known, record_results
from tests.sample_builders import START

RULES = NoticeRules(hold_runs=3, overdue_after=timedelta(minutes=25))
EVERY = timedelta(minutes=10)
WAITING = Result("shop", True, "MembersUnknown", "Hold at 3 consumers: its members are unknown.")
SCALED = Result("shop", True, None, "Scale from 3 to 4 consumers.")
FINE = Result("shop", True, "RightAlready", "Hold at 3 consumers: they are enough.")
FAILED = Result("shop", False, None, "its group was not read: no broker answers.")


def played(folder: Path, *results: Result, first: int = 0) -> list[Notice]:
    """Return what is noticed when one run after the other has these results."""
    return [
        notice
        for number, result in enumerate(results, first)
        for notice in record_results(folder, START + number * EVERY, [result], RULES)
    ]


def test_a_hold_that_lasts_is_noticed_once_with_its_begin(tmp_path: Path) -> None:
    (notice,) = played(tmp_path, SCALED, *[WAITING] * 7)
    assert notice == Notice(
        "holding",
        f"shop holds since {START + EVERY:%Y-%m-%d %H:%M} UTC, 3 runs in a row: {WAITING.reason}",
    )


def test_another_cause_begins_anew_and_a_group_that_is_right_is_no_news(tmp_path: Path) -> None:
    other = replace(WAITING, hold="UnknownCapacity")
    assert played(tmp_path, WAITING, WAITING, other, other, WAITING, WAITING, *[FINE] * 9) == []


def test_a_run_without_a_decision_neither_ends_a_hold_nor_counts(tmp_path: Path) -> None:
    assert [notice.event for notice in played(tmp_path, WAITING, FAILED, WAITING, WAITING)] == ["holding"]


def test_a_policy_without_a_decision_for_too_long_is_noticed_once_until_it_has_one(tmp_path: Path) -> None:
    first = played(tmp_path, FINE, *[FAILED] * 5)
    assert first == [Notice("overdue", f"shop has had no decision for 30 min: {FAILED.reason}")]
    assert [notice.event for notice in played(tmp_path, FINE, *[FAILED] * 4, first=6)] == ["overdue"]


def test_a_policy_that_never_had_a_decision_is_overdue_since_it_is_known(tmp_path: Path) -> None:
    (notice,) = played(tmp_path, *[FAILED] * 6)
    assert notice.sentence.startswith("shop has had no decision for 30 min: ")


def test_a_run_that_is_repeated_or_older_changes_nothing(tmp_path: Path) -> None:
    played(tmp_path, WAITING, WAITING)
    kept = (tmp_path / "last-decisions.json").read_bytes()
    assert played(tmp_path, WAITING, WAITING) == []
    assert (tmp_path / "last-decisions.json").read_bytes() == kept
    assert [notice.event for notice in played(tmp_path, WAITING, first=2)] == ["holding"]


def test_a_policy_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    record_results(tmp_path, START, [WAITING, replace(WAITING, policy="bank")], RULES)
    record_results(tmp_path, START + EVERY, [replace(WAITING, policy="bank")], RULES)
    assert LAST_DECISIONS.read(tmp_path / "last-decisions.json").policies.keys() == {"bank"}


def test_a_file_that_cannot_be_read_is_set_aside_and_no_run_fails_by_it(tmp_path: Path) -> None:
    played(tmp_path, WAITING)
    (tmp_path / FILE).write_text("{", encoding="utf-8")
    assert policies_known(tmp_path) == {}
    assert (tmp_path / f"{FILE}.unreadable").read_text(encoding="utf-8") == "{"
    assert len(played(tmp_path, *[WAITING] * 3, first=1)) == 1
