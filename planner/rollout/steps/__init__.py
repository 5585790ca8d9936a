"""The kinds of steps. Each knows what it needs, when it is done, its time limit, its undo and what is forecast for it.

All kinds share a few words. ``deployment`` and ``group`` name another than the plan's own, ``None`` is the plan's.
``action`` is what is done, ``needs`` what must be true before, ``done_when`` what an executor sees once it is done (an
effect that is found there already is done, too), ``undo`` what takes it back: each half a sentence, ``undo`` ``None``
where there is nothing to undo. A step with ``is_final`` cannot be taken back, so the world is looked at once more
before it. Constructors raise ``ValueError`` for steps that make no sense.
"""

from planner.rollout.steps.autoscaler import AutoscalerKind, AutoscalerState, SetAutoscaler
from planner.rollout.steps.consumers import LOWEST_DELETION_COST, MarkVictims, StartConsumers, StopConsumers, Victim
from planner.rollout.steps.deployments import CreateDeployment, DeleteDeployment, UpdateTemplate
from planner.rollout.steps.moves import MovedQueues
from planner.rollout.steps.offsets import CloneOffsets, ResetOffsets
from planner.rollout.steps.waits import AwaitLag, AwaitReady, AwaitSettled, CheckForecast, PauseForPerson

ScaleStep = StartConsumers | StopConsumers
OffsetStep = CloneOffsets | ResetOffsets
"""The only steps that write to a broker."""
Step = (
    ScaleStep
    | AwaitReady
    | AwaitSettled
    | MarkVictims
    | CreateDeployment
    | UpdateTemplate
    | AwaitLag
    | DeleteDeployment
    | SetAutoscaler
    | OffsetStep
    | PauseForPerson
    | CheckForecast
)

__all__ = [
    "LOWEST_DELETION_COST",
    "AutoscalerKind",
    "AutoscalerState",
    "AwaitLag",
    "AwaitReady",
    "AwaitSettled",
    "CheckForecast",
    "CloneOffsets",
    "CreateDeployment",
    "DeleteDeployment",
    "MarkVictims",
    "MovedQueues",
    "OffsetStep",
    "PauseForPerson",
    "ResetOffsets",
    "ScaleStep",
    "SetAutoscaler",
    "StartConsumers",
    "Step",
    "StopConsumers",
    "UpdateTemplate",
    "Victim",
]
