"""A plan for pods that serve two groups: it begins, goes on and is judged by what is observed of both."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.execution.codes import Code
from planner.execution.engine import decide
from planner.execution.moves import Perform, Write
from planner.execution.observation import GroupObservation
from planner.execution.phases import Phase
from planner.execution.plan_targets import groups
from planner.rollout.plan import GroupRef, OtherGroup, RolloutPlan
from planner.rollout.steps import AwaitSettled
from planner.verification.observed_change import Between, ObservedChange
from tests.unit.execution.test_drift import Case, case
from tests.unit.execution.worlds import SCENARIOS, world

MAILS = "mails"
SEEN = ObservedChange(moved_queues=Between.exactly(2), is_complete=True)


def shared(made: RolloutPlan) -> RolloutPlan:
    """Return the plan with a second group in the same pods, in the same state as the first one."""
    basis = made.preconditions, made.forecast
    ref = GroupRef(made.group.system, made.group.cluster, MAILS)
    other = OtherGroup(MAILS, ref, made.snapshot, "Hold at 3 consumers: right.", *basis, policy_digest="policy-2")
    waits = ((step, replace(step, group=MAILS)) if isinstance(step, AwaitSettled) else (step,) for step in made.steps)
    return replace(made, others=(other,), steps=tuple(step for pair in waits for step in pair))


def both() -> Case:
    """Return the case of a plan for two groups that fit it."""
    it = case(world(SCENARIOS[0]))
    look = replace(it.look, groups=(it.group, replace(it.group, name=MAILS)), other_digests=((MAILS, "policy-2"),))
    return replace(it, stored=replace(it.stored, plan=shared(it.stored.plan)), look=look)


def mails(it: Case, **changes: object) -> Case:
    seen: GroupObservation = replace(it.group, name=MAILS, **changes)  # type: ignore[arg-type]
    return replace(it, look=replace(it.look, groups=(it.group, seen)))


def test_a_plan_that_fits_both_groups_begins() -> None:
    it = both()
    assert groups(it.stored.plan) == ("billing", MAILS)
    assert isinstance(decide(it.stored, it.look, it.now), Perform)


DRIFTS: dict[Code, Callable[[Case], Case]] = {
    Code.MEMBERS_CHANGED: lambda it: mails(it, members=(*(it.group.members or ()), "10.0.0.9@9")),
    Code.STRATEGY_CHANGED: lambda it: mails(it, strategy="AVG_BY_CIRCLE"),
    Code.NOT_SETTLED: lambda it: mails(it, is_rebalancing=True),
    Code.QUEUES_CHANGED: lambda it: mails(it, queues=(it.group.queues or ())[1:]),
    Code.POLICY_CHANGED: lambda it: replace(it, look=replace(it.look, other_digests=((MAILS, "policy-3"),))),
}


@pytest.mark.parametrize("code", DRIFTS)
def test_what_differs_in_the_other_group_refuses_the_plan(code: Code) -> None:
    """Red when only the plan's own group is compared."""
    it = DRIFTS[code](both())
    move = decide(it.stored, it.look, it.now)
    assert isinstance(move, Write)
    assert code in [refusal.code for refusal in move.status.refusals]
    assert MAILS in move.status.message


def test_an_unread_group_or_policy_keeps_the_plan_waiting() -> None:
    it = both()
    for look in (replace(it.look, groups=(it.group,)), replace(it.look, other_digests=())):
        move = decide(it.stored, look, it.now)
        assert isinstance(move, Write)
        assert move.status.phase is Phase.APPROVED
        assert f"{MAILS} could not be read" in (move.status.held or "")


def test_the_verdict_waits_for_every_group_and_has_a_part_for_each() -> None:
    it = both()
    stored = replace(it.stored, status=replace(it.stored.status, phase=Phase.VERIFYING, phase_since=it.now))
    waiting = decide(stored, replace(it.look, change=SEEN), it.now)
    assert not isinstance(waiting, Write) or waiting.status.verdict is None
    move = decide(stored, replace(it.look, change=SEEN, other_changes=((MAILS, SEEN),)), it.now)
    assert isinstance(move, Write)
    verdict = move.status.verdict
    assert verdict is not None
    (part,) = verdict.others or ()
    assert (part.group, part.figures[0].seen_low) == (MAILS, 2)
    assert any(f"group {MAILS}: moved queues" in sentence for sentence in verdict.sentences)
