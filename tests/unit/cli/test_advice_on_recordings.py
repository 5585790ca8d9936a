"""The first answer on real groups: ``planner advise`` over every recorded group of known truth, no option given."""

from datetime import timedelta
from functools import cache

import pytest

from planner.advice.counting import COUNT_NOTE
from planner.advice.sentences import labelled_lines
from planner.cli.advice_output import document
from planner.cli.concluding import Conclusion
from planner.cli.default_policy import default_highest
from planner.diagnosis.diagnose import examine
from planner.diagnosis.group_evidence import GroupEvidence
from tests.advice_replay import replay
from tests.agreement import contradictions
from tests.matrix.judging import HONEST, RIGHT, advised_by, judge_advice
from tests.matrix.truth import right_targets
from tests.recordings import DAYS, Recording, cell, cell_names, day, members
from tests.unit.diagnosis.test_recorded_members import TRUTH

ANSWERS = {
    "healthy": {"RightAlready"},
    "too-few-consumers": {"TooFewConsumers"},
    "slow-member": {"SlowMembers"},
    "stalled": {"BlockedQueues"},
    "hot-queue": {"NoCountMeetsObjective"},
}
OF_GROUP = {"x5": {"NoCountMeetsObjective"}}
"""One queue for each member already: no count helps a group that is five times too slow."""

NOBODY_CAN_TELL = ("kafka-java-20ms-1q-load90-auto-b500-bursty",)
"""Bursts wait while no member was ever busy for long enough to show what it can do."""


def recording(name: str, group: str | None) -> Recording:
    if group is not None:
        return members(name)[group]
    return day(name) if name in DAYS else cell(name)


@cache
def advised(name: str, group: str | None = None) -> Conclusion:
    return replay(recording(name, group).samples, recording(name, group).every_s)


@pytest.mark.parametrize(("capture", "group"), TRUTH)
def test_the_first_answer_follows_from_what_is_true_of_the_group(capture: str, group: str) -> None:
    advice = advised(capture, group).advice
    assert advice.cause in OF_GROUP.get(group, ANSWERS[TRUTH[capture, group]]), advice.decision.reason
    assert advice.is_clear


@pytest.mark.parametrize("name", [name for name in cell_names() if name.startswith("pop-")])
def test_members_that_pop_are_not_bounded_by_their_queues(name: str) -> None:
    kept = cell(name)
    assert kept.cell is not None
    assert kept.truth is not None
    decision = advised(name).advice.decision
    assert default_highest(kept.samples[0]) == max(20, 10 * kept.cell.members)
    assert decision.target in right_targets(kept.cell, kept.truth.capacity, 30), decision.reason


@pytest.mark.parametrize("name", cell_names())
def test_the_first_answer_is_right_on_every_kept_cell_of_the_matrix(name: str) -> None:
    kept, conclusion = cell(name), advised(name)
    assert kept.cell is not None
    assert kept.truth is not None
    verdict = judge_advice(advised_by(conclusion), kept.truth, kept.cell)
    assert verdict == (HONEST if name in NOBODY_CAN_TELL else RIGHT), conclusion.advice.decision.reason


def test_members_that_share_an_address_are_counted_as_members_and_one_line_says_so() -> None:
    conclusion = advised("kafka-members", "overload")
    answer = document(conclusion.advice)
    assert (answer["decision"], answer["from"], answer["to"]) == ("scale", 3, 6)
    assert dict(labelled_lines(conclusion.advice))["counts"] == COUNT_NOTE
    assert "consumer" in conclusion.advice.decision.reason
    assert "pod" not in conclusion.advice.decision.reason


def test_members_with_an_address_each_need_no_such_line() -> None:
    assert "counts" not in dict(labelled_lines(advised("kafka-members", "paused").advice))


@pytest.mark.parametrize(("name", "group"), [*TRUTH, *((name, None) for name in (*cell_names(), *DAYS))])
def test_an_advice_agrees_with_the_doctor_on_what_was_watched(name: str, group: str | None) -> None:
    whole, advice = recording(name, group), advised(name, group).advice
    until = whole.samples[0].at + timedelta(seconds=advice.watched_s)
    diagnosis = examine(GroupEvidence(tuple(sample for sample in whole.samples if sample.at <= until), whole.every_s))
    found = list(contradictions(diagnosis.findings, advice.decision, is_undecided=bool(diagnosis.is_undecided)))
    assert not found, f"{found}: {advice.cause}: {advice.decision.reason}"
