"""What a plan's status says as conditions: at every phase, and since when."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.execution.conditions import with_conditions
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import Approval, RolloutStatus, StepProgress
from planner.rollout.steps import AwaitReady
from tests.builders import AT
from tests.pod_groups import plan_for

STORED = StoredPlan(
    "p", "u", plan_for("app", ["a", "b"], [AwaitReady(2, 60), AwaitReady(2, 60)]), "sha256:1", "1", generation=3
)
LATER = AT + timedelta(minutes=5)


def true_of(status: RolloutStatus) -> set[str]:
    return {one.type for one in with_conditions(STORED, status, AT).conditions if one.status == "True"}


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_under_way_complete_or_stalled(phase: Phase) -> None:
    """Red when a phase is two of them, or none: whoever waits would wait for ever."""
    ended = {"Complete"} if phase is Phase.SUCCEEDED else {"Stalled"} if phase.is_final else {"Reconciling"}
    assert true_of(RolloutStatus(phase)) == ended


def test_held_and_approved_are_said_beside() -> None:
    approval = Approval("sha256:1", "anna", AT)
    assert true_of(RolloutStatus(Phase.RUNNING, approval=approval, held="no")) == {"Approved", "Held", "Reconciling"}


def test_a_time_moves_with_its_status_alone() -> None:
    first = with_conditions(STORED, RolloutStatus(held="waits"), AT)
    then = with_conditions(STORED, replace(first, held=None, message="goes on"), LATER)
    since = {one.type: one.last_transition_time for one in then.conditions}
    assert (since["Held"], since["Reconciling"]) == (LATER, AT)
    assert {one.observed_generation for one in then.conditions} == {3} == {then.observed_generation}


def test_progress_counts_steps_that_are_done() -> None:
    status = RolloutStatus(Phase.RUNNING, steps=(StepProgress(0, "awaitReady", AT, AT), StepProgress(1, "x", AT)))
    made = with_conditions(STORED, status, AT)
    assert (made.progress, made.kind) == ("1/2", "scale")
    migrating = replace(STORED, plan=replace(STORED.plan, migration="strategy"))
    assert with_conditions(migrating, status, AT).kind == "strategy"
