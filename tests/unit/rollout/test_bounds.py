"""A plan is free text: whatever leaves its policy is named, whatever the planner makes lies inside."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from planner.rollout.autoscalers import Handling
from planner.rollout.bounds import CLOCK_SKEW, PolicyBounds, from_the_future, outside_policy
from planner.rollout.plan import GroupRef, RolloutPlan
from planner.rollout.steps import (
    AutoscalerState,
    AwaitSettled,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    MovedQueues,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
    Victim,
)
from tests.pod_groups import GROUP, plan_for
from tests.step_builders import IMAGE

MOVES = MovedQueues(0, 8)
BOUNDS = PolicyBounds("billing", "app", GROUP, 2, 4, 1_800, Handling())
PAUSES = replace(BOUNDS, autoscaler=Handling("pause", restores=True))


def start(before: int, after: int, deployment: str | None = None) -> StartConsumers:
    return StartConsumers(before, after, 60, MOVES, "set back", deployment=deployment)


def stop(before: int, after: int, deployment: str | None = None) -> StopConsumers:
    return StopConsumers(before, after, (), 60, MOVES, "set back", deployment=deployment)


def hpa(before: AutoscalerState, after: AutoscalerState, name: str = "hpa") -> SetAutoscaler:
    return SetAutoscaler(name, "HorizontalPodAutoscaler", before, after, 60)


def state(minimum: int, maximum: int, *, paused: bool = False) -> AutoscalerState:
    return AutoscalerState(minimum, maximum, is_paused=paused)


def plan(*steps: Step, pods: int = 3, **changes: Any) -> RolloutPlan:
    made = plan_for("app", ["pod"], steps)
    return replace(made, preconditions=replace(made.preconditions, replicas=pods), **changes)


INSIDE: Sequence[tuple[str, RolloutPlan, PolicyBounds]] = (
    ("one more", plan(start(3, 4)), BOUNDS),
    ("two batches", plan(stop(4, 3), stop(3, 2), pods=4, target_replicas=2), BOUNDS),
    ("nearer from above", plan(stop(9, 6), stop(6, 4), pods=9), BOUNDS),
    ("nearer from below", plan(start(1, 2), pods=1), BOUNDS),
    ("blue and green", plan(CreateDeployment("green", 60), start(0, 3, "green"), stop(3, 0)), BOUNDS),
    ("all stop and start", plan(stop(3, 0), start(0, 3), migration="reset"), BOUNDS),
    (
        "an autoscaler that waits",
        plan(hpa(state(1, 3), state(1, 4, paused=True)), start(3, 4), hpa(state(1, 4, paused=True), state(1, 3))),
        PAUSES,
    ),
)


@pytest.mark.parametrize(("made", "bounds"), [case[1:] for case in INSIDE], ids=[case[0] for case in INSIDE])
def test_what_the_policy_allows_lies_inside(made: RolloutPlan, bounds: PolicyBounds) -> None:
    assert outside_policy(made, bounds) == ()


def test_a_migration_that_stops_all_consumers_asks_for_a_phrase() -> None:
    """Red when its author may have none run, under a policy of two at least, by an approval like any other."""
    phrase = ("stop all consumers of billing",)
    green = CreateDeployment("green", 60), start(0, 3, "green")
    assert plan(stop(3, 0), start(0, 3), migration="x").confirmations == phrase
    assert plan(*green[:1], stop(3, 0), *green[1:], migration="x").confirmations == phrase
    assert plan(stop(3, 1), stop(1, 0), start(0, 3), migration="x").confirmations == phrase
    assert plan(*green, stop(3, 0), migration="x").confirmations == ()
    assert plan(start(0, 3), pods=0, migration="x").confirmations == ()
    assert plan(stop(3, 0)).confirmations == (), "no migration: minReplicas bounds it, as anything else"


LEFT: Sequence[tuple[str, RolloutPlan, PolicyBounds]] = (
    ("step 1 goes to 0 replicas, policy billing asks for 2 at least", plan(stop(3, 0)), BOUNDS),
    ("the plan ends with 0 replicas", plan(stop(3, 0), migration="update"), BOUNDS),
    (
        "step 1 leaves 1 replicas in all, policy billing asks for 2",
        plan(stop(3, 1), start(1, 3), migration="x"),
        BOUNDS,
    ),
    (
        "step 3 leaves 1 replicas in all",
        plan(CreateDeployment("green", 60), start(0, 1, "green"), stop(3, 0), start(1, 3, "green"), migration="x"),
        BOUNDS,
    ),
    ("step 1 may leave 1 pods", plan(UpdateTemplate(IMAGE, 3, 1, 2, 1, 60, MOVES), migration="update"), BOUNDS),
    ("step 1 goes to 10000 replicas, policy billing allows 4 at most", plan(start(3, 10_000)), BOUNDS),
    ("step 2 goes to 9 replicas", plan(CreateDeployment("green", 60), start(0, 9, "green"), stop(3, 0)), BOUNDS),
    ("the plan ends with 6 replicas", plan(CreateDeployment("green", 60), start(0, 3, "green")), BOUNDS),
    ("step 1 goes to 10 replicas, policy billing allows 4 at most", plan(start(9, 10), pods=9), BOUNDS),
    ("step 1 starts from 4 replicas, the steps before it leave 3", plan(start(4, 5)), replace(BOUNDS, highest=5)),
    ("the plan states 4 target replicas, its steps end with 2", plan(stop(3, 2), target_replicas=4), BOUNDS),
    ("changes Deployment other, policy billing names app", plan(start(3, 4), deployment="other"), BOUNDS),
    ("step 1 changes Deployment other, which is neither", plan(start(0, 1, "other"), migration="x"), BOUNDS),
    ("step 1 changes Deployment other", plan(DeleteDeployment("other", 60), migration="x"), BOUNDS),
    ("step 1 copies Deployment other", plan(CreateDeployment("green", 60, origin="other")), BOUNDS),
    ("the plan is for kafka group billing", plan(start(3, 4), group=replace(GROUP, system="kafka")), BOUNDS),
    ("the plan is for policy shop, not billing", plan(start(3, 4), policy="shop"), BOUNDS),
    ("lets no plan set an autoscaler", plan(hpa(state(1, 3), state(0, 10_000))), BOUNDS),
    ("the plan sets HorizontalPodAutoscaler hpa", plan(hpa(state(1, 3), state(0, 10_000))), PAUSES),
    (
        "the plan sets more than one autoscaler",
        plan(hpa(state(1, 3), state(1, 4, paused=True)), start(3, 4), hpa(state(1, 4, paused=True), state(1, 3), "b")),
        PAUSES,
    ),
    (
        "changes replicas while HorizontalPodAutoscaler hpa is not paused",
        plan(hpa(state(1, 3), state(1, 4, paused=True)), hpa(state(1, 4, paused=True), state(1, 3)), start(3, 4)),
        PAUSES,
    ),
    ("valid for 15 min, policy billing allows 14 min 59 s", plan(start(3, 4)), replace(BOUNDS, valid_for_s=899)),
)


@pytest.mark.parametrize(("why", "made", "bounds"), LEFT, ids=[case[0] for case in LEFT])
def test_what_the_policy_does_not_allow_is_named(why: str, made: RolloutPlan, bounds: PolicyBounds) -> None:
    told = "; ".join(outside_policy(made, bounds))
    assert why in told


def test_a_plan_of_next_century_is_from_the_future() -> None:
    made = plan(start(3, 4))
    assert from_the_future(made, made.made_at) == ()
    assert from_the_future(made, made.made_at - CLOCK_SKEW) == ()
    told = from_the_future(made, made.made_at - CLOCK_SKEW - timedelta(seconds=1))
    assert [sentence.partition(" at ")[0] for sentence in told] == [
        "the plan was made",
        "the snapshot that it rests on was taken",
    ]


FORBIDDEN = (
    UpdateTemplate(IMAGE, 3, 1, 0, 1, 60, MOVES),
    CreateDeployment("green", 60),
    DeleteDeployment("app", 60),
    start(0, 1, "other"),
    stop(1, 0, "other"),
    MarkVictims((Victim("pod", ("member",)),), 60, deployment="other"),
    AwaitSettled(3, "AVG", 60, group="another"),
)


@pytest.mark.parametrize("step", FORBIDDEN, ids=[f"{step.kind} {number}" for number, step in enumerate(FORBIDDEN)])
def test_a_plan_that_is_no_migration_has_only_steps_of_its_own_count(step: Step) -> None:
    with pytest.raises(ValueError, match="only a migration"):
        replace(plan(start(3, 4)), steps=(step,))
    assert replace(plan(start(3, 4)), steps=(step,), migration="update").migration == "update"


def test_a_migration_without_a_name_is_none() -> None:
    with pytest.raises(ValueError, match="to name its migration"):
        replace(plan(start(3, 4)), migration="")


def test_the_group_is_the_policys_on_its_own_cluster() -> None:
    other = GroupRef(GROUP.system, "another", GROUP.group)
    assert "on another" in "; ".join(outside_policy(plan(start(3, 4), group=other), BOUNDS))
