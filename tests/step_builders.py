"""One good step of every kind."""

from collections.abc import Sequence
from datetime import UTC, datetime

from planner.rollout.plan import MIGRATION_STEPS
from planner.rollout.steps import (
    AutoscalerState,
    AwaitLag,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    MovedQueues,
    PauseForPerson,
    ResetOffsets,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
    Victim,
)
from planner.rollout.template import ContainerChange, Setting, TemplateChange

IMAGE = TemplateChange(containers=(ContainerChange("app", image="shop:2", env=(Setting("A", "1"),)),))


def migration_of(steps: Sequence[Step]) -> str | None:
    """Return the kind of a plan with these steps: a migration where only a migration may have them."""
    named = any(getattr(step, "deployment", None) or getattr(step, "group", None) for step in steps)
    return "test" if named or any(isinstance(step, MIGRATION_STEPS) for step in steps) else None


SINCE = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)

STEPS: tuple[Step, ...] = (
    StartConsumers(3, 5, 300, MovedQueues(7, 9), "set the replicas of shop back to 3"),
    AwaitReady(5, 300),
    AwaitSettled(5, "AVG", 180),
    MarkVictims((Victim("shop-a", ("10.0.0.1@1",)), Victim("shop-b", ("10.0.0.2@1", "10.0.0.2@2"))), 30),
    StopConsumers(5, 3, ("10.0.0.1@1",), 300, MovedQueues(2, None), "set the replicas of shop back to 5"),
    CreateDeployment("shop-green", 60, IMAGE),
    UpdateTemplate(
        IMAGE, 3, max_surge=1, max_unavailable=0, from_revision=4, time_limit_seconds=600, forecast=MovedQueues()
    ),
    AwaitLag(900, messages=1_000, seconds=30, group="shop-2"),
    DeleteDeployment("shop", 60),
    SetAutoscaler(
        "shop-hpa",
        "HorizontalPodAutoscaler",
        AutoscalerState(1, 4, is_paused=False),
        AutoscalerState(1, 5, is_paused=True),
        60,
    ),
    CloneOffsets("shop-2", "set the offsets of shop-2", 60),
    ResetOffsets("shop-2", "set the offsets of shop-2", 60, to_time=SINCE),
    PauseForPerson("Do the new consumers deliver?", 3_600),
    CheckForecast(120),
)
