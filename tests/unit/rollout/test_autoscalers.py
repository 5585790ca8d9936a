"""A plan beside an autoscaler: refused, or between a step that pauses it and one that says what it does afterwards."""

from dataclasses import replace
from typing import Any

import pytest

from planner.errors import RefusedError
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment
from planner.rollout.autoscalers import REFUSE, Handling, why_not_handled, with_autoscaler
from planner.rollout.migrations.migration import plan_of, read_context
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.update import update
from planner.rollout.steps import (
    AutoscalerState,
    CheckForecast,
    MovedQueues,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
)
from tests.builders import AT, clients, snapshot
from tests.unit.rollout.test_migrations import CHANGE, SETTINGS, at_rest
from tests.unit.workload.builders import deployment

HPA = Autoscaler("HorizontalPodAutoscaler", "app", 1, 4)
KEDA = Autoscaler("ScaledObject", "shop", 0, 100)
MADE = Autoscaler("HorizontalPodAutoscaler", "keda-hpa-shop", 1, 100, made_by="ScaledObject shop")
MOVES = MovedQueues(1, 2)
UP = (StartConsumers(3, 6, 60, MOVES, "x"), CheckForecast(60))
DOWN = (StopConsumers(3, 0, (), 60, MOVES, "x"), CheckForecast(60))
PIN, PAUSE = Handling("setBounds"), Handling("pause")


def scaled(*scalers: Autoscaler) -> Deployment:
    return deployment(at=AT, autoscalers=scalers)


def states(steps: tuple[Step, ...]) -> list[tuple[str, str]]:
    """Return what every step on the autoscaler makes of what."""
    return [(str(step.before), str(step.after)) for step in steps if isinstance(step, SetAutoscaler)]


def why(deployment: Deployment, handling: Handling, *counts: int) -> str | None:
    refusal = why_not_handled(deployment, handling, counts or (3, 6))
    assert refusal is None or refusal.name == "OtherScaler"
    return refusal and refusal.sentence


@pytest.mark.parametrize("handling", [REFUSE, PIN, PAUSE])
def test_a_deployment_that_nobody_scales_needs_no_step(handling: Handling) -> None:
    for free in (scaled(), None, scaled(replace(KEDA, is_paused=True))):
        assert with_autoscaler(UP, free, 3, handling) == UP


@pytest.mark.parametrize(
    ("handling", "scaler", "expected"),
    [
        (PIN, HPA, [("1 to 4", "1 to 6 paused"), ("1 to 6 paused", "exactly 6")]),
        (PIN, KEDA, [("0 to 100", "0 to 100 paused"), ("0 to 100 paused", "exactly 6")]),
        (PAUSE, HPA, [("1 to 4", "1 to 6 paused")]),
        (PAUSE, KEDA, [("0 to 100", "0 to 100 paused")]),
        (replace(PIN, restores=True), HPA, [("1 to 4", "1 to 6 paused"), ("1 to 6 paused", "1 to 4")]),
        (replace(PAUSE, restores=True), KEDA, [("0 to 100", "0 to 100 paused"), ("0 to 100 paused", "0 to 100")]),
    ],
)
def test_it_is_paused_first_and_told_last_what_holds_afterwards(
    handling: Handling, scaler: Autoscaler, expected: list[tuple[str, str]]
) -> None:
    steps = with_autoscaler(UP, scaled(scaler), 3, handling)
    told = [
        tuple(text.replace(" replicas, paused", " paused").replace(" replicas, not paused", "") for text in pair)
        for pair in states(steps)
    ]
    assert told == expected
    assert isinstance(steps[0], SetAutoscaler)
    assert steps[0].named == str(scaler)
    assert isinstance(steps[-1], CheckForecast)
    assert [step for step in steps if not isinstance(step, SetAutoscaler)] == list(UP)


def test_an_hpa_that_is_paused_has_every_count_of_the_plan_within_its_bounds_but_0_which_it_leaves_alone() -> None:
    first = with_autoscaler(DOWN, scaled(replace(HPA, minimum=4, maximum=9)), 3, PAUSE)[0]
    assert isinstance(first, SetAutoscaler)
    assert first.after == AutoscalerState(3, 9, is_paused=True)


def test_kedas_own_hpa_is_kedas() -> None:
    assert with_autoscaler(UP, scaled(KEDA, MADE), 3, PIN) == with_autoscaler(UP, scaled(KEDA), 3, PIN)


@pytest.mark.parametrize(
    ("scalers", "handling", "said"),
    [
        ((HPA,), REFUSE, "HorizontalPodAutoscaler app sets the replicas of Deployment"),
        ((KEDA, HPA), PAUSE, "ScaledObject shop, HorizontalPodAutoscaler app work against each other"),
        ((MADE,), PAUSE, "was made by ScaledObject shop, which is paused or was not read"),
        ((replace(KEDA, idle=0),), PIN, "goes down to 0 replicas while idle"),
        ((replace(KEDA, is_paused=True, paused_at=4),), PAUSE, "paused as it is, brings .* back to 4"),
        ((replace(HPA, is_paused=True),), PAUSE, "paused as it is, brings .* back to 1 to 4"),
        (None, PAUSE, "whether an autoscaler owns .* could not be read"),
    ],
)
def test_what_cannot_be_handled_is_refused_by_name(
    scalers: tuple[Autoscaler, ...] | None, handling: Handling, said: str
) -> None:
    found = deployment(at=AT, autoscalers=scalers)
    with pytest.raises(RefusedError, match=said):
        with_autoscaler(UP, found, 3, handling)


def test_what_leaves_all_counts_alone_is_no_hindrance() -> None:
    assert why(scaled(replace(KEDA, idle=0)), PAUSE) is None
    assert why(scaled(replace(HPA, is_paused=True)), REFUSE, 1, 4) is None
    assert why(scaled(replace(KEDA, is_paused=True, paused_at=3)), REFUSE, 3) is None
    assert why(scaled(replace(KEDA, is_paused=True)), REFUSE, 3, 200) is None


def test_migrations_go_beside_it_too_unless_another_deployment_takes_over() -> None:
    taken = at_rest(snapshot(clients=clients(4)), autoscalers=(HPA,), revision=3)
    with pytest.raises(RefusedError, match="OtherScaler"):
        read_context(taken, "d", SETTINGS)
    found = read_context(taken, "d", replace(SETTINGS, autoscaler=PIN))
    steps = plan_of(update(found, CHANGE, 3), found, AT).steps
    assert [step.kind for step in steps] == [
        "setAutoscaler", "updateTemplate", "awaitReady", "awaitSettled", "setAutoscaler", "checkForecast",
    ]  # fmt: skip
    assert states(steps)[1][1] == "exactly 4 replicas, not paused"
    with pytest.raises(RefusedError, match=r"would stay with .* while another Deployment takes over"):
        plan_of(relocate(found, CHANGE, "green"), found, AT)


@pytest.mark.parametrize(
    ("scaler", "counts", "leaves"),
    [
        (HPA, (3,), False),
        (replace(HPA, is_paused=True), (0, 1, 4), True),
        (replace(HPA, is_paused=True), (5,), False),
        (replace(KEDA, is_paused=True), (0, 500), True),
        (replace(KEDA, is_paused=True, paused_at=2), (2,), True),
        (replace(KEDA, is_paused=True, paused_at=2), (3,), False),
    ],
)
def test_which_counts_an_autoscaler_leaves_alone(scaler: Any, counts: tuple[int, ...], leaves: bool) -> None:
    assert [scaler.leaves(count) for count in counts] == [leaves] * len(counts)
