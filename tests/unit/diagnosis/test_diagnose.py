"""The round as a whole: order, gaps, the document, and the list of checks in the manual."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from planner.diagnosis.checks import CHECKS
from planner.diagnosis.diagnose import diagnose, examine
from planner.diagnosis.finding import DoctorReport, Severity, Unread
from planner.diagnosis.group_evidence import GroupEvidence
from planner.documents.diagnosis import DOCTOR_REPORT
from tests.unit.diagnosis.patients import each, healthy, kafka, tuned

MANUAL = Path(__file__).parents[3] / "docs/doctor.md"


def sick() -> GroupEvidence:
    """Several things at once: a notice, a warning, an error."""
    picture = healthy(clients=("c1", "c2", "c3", "c4", "c5"), topics={"orders": 2})
    crowded = each(picture, lambda s: replace(s, dead_letters=2))
    return each(crowded, tuned("c1", orderly=True))


def test_findings_are_sorted_by_severity() -> None:
    found = [one.severity for one in diagnose(sick())]
    assert found == sorted(found, key=lambda one: one.rank)
    assert found[0] is Severity.ERROR
    assert found[-1] is Severity.WARNING


def test_a_diagnosis_tells_the_group_in_figures() -> None:
    told = examine(healthy())
    assert (told.members, told.queues, told.lag, told.looks, told.watched_s) == (2, 8, 0, 7, 30.0)
    assert told.worst is None


def test_a_lag_that_is_not_known_of_every_queue_is_unknown() -> None:
    picture = healthy()
    less = each(picture, lambda s: replace(s, offsets=s.offsets[1:]))
    assert examine(less).lag is None


def test_what_is_said_is_whole_sentences_with_a_next_step() -> None:
    for one in diagnose(sick()):
        assert one.title and one.evidence and one.consequence and one.advice
        assert re.search(r"\d", one.consequence), f"{one.code} says no number"


def test_the_document_can_be_read_again() -> None:
    report = DoctorReport(
        healthy().newest.at, (examine(sick()), examine(kafka())), (Unread("gone", "nobody answers"),), 3
    )
    assert DOCTOR_REPORT.parse(DOCTOR_REPORT.dump(report), "report") == report


def test_a_picture_needs_samples_in_time_order() -> None:
    with pytest.raises(ValueError, match="at least one"):
        GroupEvidence(())
    with pytest.raises(ValueError, match="time order"):
        GroupEvidence(tuple(reversed(healthy().samples)))


def test_the_manual_lists_every_check_and_no_other() -> None:
    listed = re.findall(r"(?m)^\| `([a-z-]+)` \|", MANUAL.read_text(encoding="utf-8").partition("## All checks")[2])
    assert listed == [check.code for check in CHECKS]


def test_causes_are_checks_that_exist() -> None:
    codes = {check.code for check in CHECKS}
    assert len(codes) == len(CHECKS)
    assert all(set(check.explained_by) <= codes for check in CHECKS)
