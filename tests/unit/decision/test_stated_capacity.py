"""A capacity that a policy states beside what real, recorded groups were seen to do."""

import pytest

from planner import pipeline
from planner.decision.decision import Decision, HoldCause
from planner.documents.policy import ConsumerScalingPolicy
from tests.recordings import cell, cell_names
from tests.unit.diagnosis.test_doctor_and_plan_agree import policy_for

DROWNING = [name for name in cell_names() if cell(name).cell.load > 1]  # type: ignore[union-attr]
"""Groups that got more than their members could do, by design."""


def decision_with(name: str, stated: float | None) -> Decision:
    """Return what is decided of a recorded group for whose consumers the policy states so many messages per second."""
    recording = cell(name)
    newest = recording.samples[-1]
    raw = policy_for(newest).model_dump(by_alias=True, mode="json", exclude_unset=True)
    if stated is not None:
        raw["spec"]["capacity"] = {"messagesPerSecond": stated}
    policy = ConsumerScalingPolicy.model_validate(raw)
    snapshot = pipeline.take_snapshot(recording.samples, recording.every_s, policy, newest.at)
    return pipeline.decide(snapshot, pipeline.simulate(snapshot, policy), policy, newest.at).decision


@pytest.mark.parametrize("name", DROWNING)
def test_no_statement_takes_a_consumer_from_a_group_that_was_seen_to_drown(name: str) -> None:
    """Red where a figure that is five times too high is planned by although the samples refute it."""
    known = cell(name).truth
    assert known is not None
    decision = decision_with(name, 5 * known.capacity)
    assert decision.target >= decision.current, decision.reason
    if decision.is_hold:
        assert decision.hold_cause in (HoldCause.REFUTED_CAPACITY, HoldCause.NO_COUNT_MEETS), decision.reason


@pytest.mark.parametrize("name", DROWNING)
def test_a_statement_that_is_true_is_planned_by(name: str) -> None:
    """Red where what was measured refutes what is right."""
    known = cell(name).truth
    assert known is not None
    decision = decision_with(name, known.capacity)
    assert decision.hold_cause is not HoldCause.REFUTED_CAPACITY, decision.reason
    assert decision.target > decision.current or decision_with(name, None).is_hold, decision.reason
