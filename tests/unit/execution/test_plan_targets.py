from dataclasses import replace

import pytest

from planner.execution.observation import Claim
from planner.execution.phases import IllegalMoveError, Phase
from planner.execution.plan_targets import (
    created_deployments,
    deployments,
    fewest_ready,
    groups,
    is_irreversible,
    is_left,
    planned_counts,
    replicas_after,
)
from planner.execution.progress import RolloutStatus, StepProgress
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import ResetOffsets, StartConsumers, StopConsumers, UpdateTemplate
from tests.unit.execution.fake import START
from tests.unit.execution.worlds import CHANGE, DEPLOYMENT, GREEN, LIMIT_S, MOVES, SCENARIOS, UNUSED, world


def plan_of(name: str) -> RolloutPlan:
    (scenario,) = [one for one in SCENARIOS if one[0] == name]
    return world(scenario).plans["plan-1"].plan


def test_every_deployment_has_a_count_after_every_step() -> None:
    plan = plan_of("moved")
    assert deployments(plan) == (DEPLOYMENT, GREEN, UNUSED)
    assert created_deployments(plan) == {GREEN}
    assert groups(plan) == ("billing", "billing-2")
    counts = {name: [replicas_after(plan, name, last) for last in range(-1, 10)] for name in deployments(plan)}
    assert counts[DEPLOYMENT] == [3] * 7 + [0] * 4
    assert counts[GREEN] == [None, 0, 0, *[3] * 8]
    assert counts[UNUSED] == [0] * 10 + [None]
    assert planned_counts(plan, GREEN) == {None, 0, 3}


@pytest.mark.parametrize(("name", "fewest"), [("up", 3), ("down", 3), ("renewed", 3), ("blue_green", 3), ("moved", 3)])
def test_no_plan_that_starts_first_ever_has_fewer_than_the_lesser_count(name: str, fewest: int) -> None:
    assert fewest_ready(plan_of(name)) == fewest


def test_a_plan_that_stops_all_or_lets_pods_be_missing_says_so_by_its_steps() -> None:
    plan = plan_of("up")
    stops = StopConsumers(3, 0, (), LIMIT_S, MOVES, undo="set 3")
    starts = StartConsumers(0, 3, LIMIT_S, MOVES, undo="set 0")
    assert fewest_ready(replace(plan, steps=(stops, starts))) == 0
    rolling = UpdateTemplate(CHANGE, 3, 0, 1, 1, LIMIT_S, MOVES)
    assert fewest_ready(replace(plan, steps=(rolling,), migration="update")) == 2


def test_setting_the_plans_own_offsets_has_no_way_back_and_another_groups_has() -> None:
    plan = plan_of("moved")
    own = ResetOffsets("billing", "set the offsets of billing", LIMIT_S, to_time=START)
    other = ResetOffsets("billing-2", "set the offsets of billing-2", LIMIT_S, to_time=START)
    assert is_irreversible(plan, own)
    assert not is_irreversible(plan, other)


def test_a_plan_whose_consumers_end_in_another_group_leaves_its_own() -> None:
    assert is_left(plan_of("moved"))
    assert not is_left(plan_of("up"))
    assert not is_left(replace(plan_of("up"), steps=plan_of("up").steps[:2])), "it says nothing of its group"


@pytest.mark.parametrize("claim", [Claim("plan/uid"), Claim("plan/uid", 7), Claim("plan/uid", 3, is_undoing=True)])
def test_a_claim_is_read_as_it_was_written(claim: Claim) -> None:
    assert Claim.parse(str(claim)) == claim


@pytest.mark.parametrize("text", ["", "somebody", "some/body", "a/b/undo-", "a/-"])
def test_any_other_text_is_a_claim_of_somebody_with_nothing_done(text: str) -> None:
    found = Claim.parse(text)
    assert (found.plan, found.mark, found.is_undoing) == (text, -1, False)


def test_a_status_takes_steps_in_their_order_only() -> None:
    status = RolloutStatus().begin(StepProgress(0, "awaitReady", START))
    with pytest.raises(ValueError, match="step 1 cannot begin: 1 have begun, 0 are finished"):
        status.begin(StepProgress(1, "awaitReady", START))
    done = status.with_step(replace(status.steps[0], finished_at=START))
    assert (done.step, done.current) == (1, None)
    assert done.begin(StepProgress(1, "awaitReady", START)).current is not None


def test_a_status_refuses_phases_that_may_not_follow() -> None:
    with pytest.raises(IllegalMoveError):
        RolloutStatus().enter(Phase.RUNNING, "", START)
