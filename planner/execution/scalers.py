"""The autoscaler that a plan sets: where it is, who set it last, and in which state the plan needs it."""

from collections.abc import Iterator

from planner.execution.codes import Code, Found
from planner.execution.course import planned_counts
from planner.execution.effects import SetScaler
from planner.execution.look import Claim, DeploymentLook
from planner.execution.moves import Turn
from planner.execution.progress import Refusal, StepProgress
from planner.execution.states import Finished, Hopeless, Missing, State, Unfinished
from planner.model.deployments import Autoscaler
from planner.rollout.steps import AutoscalerState, SetAutoscaler


def find_scaler(turn: Turn, step: SetAutoscaler) -> Autoscaler | str | None:
    """Return the step's autoscaler, ``None`` when there is none, or in a sentence that nobody could see."""
    found = turn.look.deployment(turn.plan.deployment)
    if found is None or found.facts is None or found.facts.autoscalers is None:
        return f"the autoscalers of Deployment {turn.plan.deployment} could not be read"
    return next((one for one in found.facts.autoscalers if str(one) == step.named), None)


def set_scaler(turn: Turn, step: SetAutoscaler, state: AutoscalerState, claim: Claim) -> SetScaler:
    """Return the effect that brings the step's autoscaler, which must have been seen, into a state."""
    found = find_scaler(turn, step)
    if not isinstance(found, Autoscaler):
        raise ValueError(f"an effect on {step.named}, which was not seen")
    return SetScaler(step.autoscaler, step.autoscaler_kind, state, claim, found.resource_version)


def state_of_scaler(scaler: Autoscaler) -> AutoscalerState:
    """Return what the autoscaler is told now."""
    return AutoscalerState(scaler.minimum, scaler.maximum, scaler.is_paused)


def our_claim(turn: Turn, scaler: Autoscaler) -> Claim | None:
    """Return which of this plan's steps set the autoscaler last, ``None`` where none did."""
    claim = Claim.parse(scaler.set_by) if scaler.set_by else None
    return claim if claim and claim.plan == turn.key else None


def left_over(turn: Turn, step: SetAutoscaler) -> Autoscaler | None:
    """Return an HPA that KEDA made for the step's ScaledObject and has not removed yet; it would go on scaling."""
    found = turn.look.deployment(turn.plan.deployment)
    scalers = (found.facts.autoscalers if found and found.facts else None) or ()
    return next((one for one in scalers if one.made_by == step.named), None)


def scaler_done(turn: Turn, step: SetAutoscaler, progress: StepProgress) -> State:
    """Return how far the step is that ``progress`` has begun."""
    found = find_scaler(turn, step)
    if isinstance(found, str):
        return Unfinished(found)
    if found is None:
        return Hopeless(f"{step.named} is gone")
    claim = our_claim(turn, found)
    if claim is None or not claim.has_done(progress.index):
        return Missing()
    if state_of_scaler(found) != step.after:
        return Hopeless(f"somebody set {step.named} to {state_of_scaler(found)}")
    if step.after.is_paused and (left := left_over(turn, step)):
        return Unfinished(f"KEDA has not removed {left} yet")
    return Finished(step.done_when)


def autoscaler_drift(turn: Turn, found: DeploymentLook) -> Found:
    """Yield what autoscalers of a Deployment would undo the plan, or are not as it expects them now."""
    assert found.facts is not None
    scalers = found.facts.autoscalers
    if scalers is None:
        yield f"whether an autoscaler owns Deployment {found.name} could not be read"
    ours = _ours(turn) if found.name == turn.plan.deployment else None
    for scaler in scalers or ():
        if ours is None or str(scaler) != ours[0].named:
            yield from _foreign(turn, found, scaler, ours)
        elif state_of_scaler(scaler) != ours[1]:
            yield Refusal(
                Code.AUTOSCALED, f"{scaler} was changed: it has {state_of_scaler(scaler)}, the plan expects {ours[1]}"
            )
    if ours is not None and scalers is not None and all(str(scaler) != ours[0].named for scaler in scalers):
        yield Refusal(Code.AUTOSCALED, f"{ours[0].named} is gone, which the plan sets")


def _foreign(
    turn: Turn, found: DeploymentLook, scaler: Autoscaler, ours: tuple[SetAutoscaler, AutoscalerState] | None
) -> Found:
    if ours is not None and scaler.made_by == ours[0].named:
        if ours[1].is_paused:
            yield f"{ours[0].named} is paused, and KEDA has not removed its {scaler} yet"
        return
    counts = planned_counts(turn.plan, found.name) - {None}
    if not all(scaler.leaves(count) for count in counts if count is not None):
        yield Refusal(Code.AUTOSCALED, f"{scaler} sets the replicas of Deployment {found.name}: it would undo the plan")


def _ours(turn: Turn) -> tuple[SetAutoscaler, AutoscalerState] | None:
    """Return the autoscaler's first step and the state that the steps done so far have left it in."""
    steps = list(_steps(turn))
    if not steps:
        return None
    done = [step.after for index, step in steps if index < turn.status.step]
    return steps[0][1], done[-1] if done else steps[0][1].before


def is_let_go(turn: Turn) -> bool:
    """True once the plan has begun to let its autoscaler go on between bounds: from then on it may set the count."""
    begun = {progress.index: progress for progress in turn.status.steps}
    return any(
        not step.after.is_paused and step.after.minimum < step.after.maximum and begun[index].undone_at is None
        for index, step in _steps(turn)
        if index in begun
    )


def _steps(turn: Turn) -> Iterator[tuple[int, SetAutoscaler]]:
    return ((index, step) for index, step in enumerate(turn.plan.steps) if isinstance(step, SetAutoscaler))
