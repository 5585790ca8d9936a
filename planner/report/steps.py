"""The plan's steps as a person carries them out: what, how long at most, what to expect, how to go back."""

from dataclasses import dataclass

from planner.report import words
from planner.report.loads import sentence
from planner.rollout.explain import tell_moves
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitReady, AwaitSettled, StartConsumers, Step, StopConsumers
from planner.text.words import counted

_TITLES = {
    "awaitLag": "Wait until the backlog is small",
    "checkForecast": "Check the forecast",
    "cloneOffsets": "Clone the offsets",
    "createDeployment": "Create a Deployment",
    "deleteDeployment": "Delete a Deployment",
    "markVictims": "Mark who stops first",
    "pauseForPerson": "Ask a person",
    "resetOffsets": "Reset the offsets",
    "setAutoscaler": "Set the autoscaler",
    "updateTemplate": "Replace the pods",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step; ``names`` are client ids in it."""

    title: str
    detail: str
    limit: str
    expect: str
    undo: str
    names: tuple[str, ...] = ()


def steps(plan: RolloutPlan | None) -> tuple[StepRow, ...]:
    """Return the steps in order, none for a hold."""
    return tuple(step_row(step, plan.group.system) for step in plan.steps) if plan else ()


def step_row(step: Step, system: str = "rocketmq") -> StepRow:
    """Return one step in words."""
    limit = words.duration(step.time_limit_seconds)
    match step:
        case StartConsumers():
            return StepRow(
                title=f"Start {counted(step.to_replicas - step.from_replicas, 'pod')}",
                detail=f"Replicas from {step.from_replicas} to {step.to_replicas}.",
                limit=limit,
                expect=f"{tell_moves(step.forecast, system)} as they join",
                undo=step.undo,
            )
        case AwaitReady():
            return StepRow(
                title="Wait until they are ready",
                detail=f"All {step.replicas} pods are ready.",
                limit=limit,
                expect="nothing changes",
                undo="nothing to undo",
            )
        case AwaitSettled():
            return StepRow(
                title="Wait until the group has settled",
                detail=sentence(f"{step.everybody} {step.share}, seen twice in a row"),
                limit=limit,
                expect="nothing changes any more",
                undo="nothing to undo",
            )
        case StopConsumers():
            return StepRow(
                title=f"Stop {counted(step.from_replicas - step.to_replicas, 'pod')}",
                detail=f"Replicas from {step.from_replicas} to {step.to_replicas}; best these:",
                limit=limit,
                expect=f"{tell_moves(step.forecast, system)} as they leave",
                undo=step.undo,
                names=step.preferred_victims,
            )
        case _:
            return StepRow(
                title=_TITLES[step.kind],
                detail=f"{step.action[:1].upper()}{step.action[1:]}.",
                limit=limit,
                expect=step.done_when,
                undo=step.undo or "nothing to undo",
            )
