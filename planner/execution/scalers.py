"""The autoscaler that a plan sets: where it is, which plan set it last, and in which state the plan needs it."""

from collections.abc import Iterator

from planner.execution.codes import Code, Differences
from planner.execution.effects import SetScaler
from planner.execution.moves import Reconcile
from planner.execution.observation import Claim, DeploymentObservation
from planner.execution.plan_targets import planned_counts
from planner.execution.progress import Refusal, StepProgress
from planner.execution.states import Finished, Impossible, Missing, State, Unfinished
from planner.model.autoscalers import Autoscaler
from planner.rollout.steps import AutoscalerState, SetAutoscaler


def find_scaler(reconcile: Reconcile, step: SetAutoscaler) -> Autoscaler | str | None:
    """Return the step's autoscaler, ``None`` when there is none, or in a sentence that it could not be read."""
    deployment = reconcile.observation.deployment(reconcile.plan.deployment)
    if deployment is None or deployment.facts is None or deployment.facts.autoscalers is None:
        return f"the autoscalers of {reconcile.plan.target} could not be read"
    return next((scaler for scaler in deployment.facts.autoscalers if str(scaler) == step.named), None)


def set_scaler(reconcile: Reconcile, step: SetAutoscaler, state: AutoscalerState, claim: Claim) -> SetScaler:
    """Return the effect that brings the step's autoscaler, which must have been read, into a state."""
    scaler = find_scaler(reconcile, step)
    if not isinstance(scaler, Autoscaler):
        raise ValueError(f"an effect on {step.named}, which was not seen")
    return SetScaler(step.autoscaler, step.autoscaler_kind, state, claim, scaler.resource_version)


def state_of_scaler(scaler: Autoscaler) -> AutoscalerState:
    """Return what the autoscaler is set to now."""
    return AutoscalerState(scaler.minimum, scaler.maximum, scaler.is_paused)


def our_claim(reconcile: Reconcile, scaler: Autoscaler) -> Claim | None:
    """Return which of this plan's steps set the autoscaler last, ``None`` where none did."""
    claim = Claim.parse(scaler.set_by) if scaler.set_by else None
    return claim if claim and claim.plan == reconcile.key else None


def left_over(reconcile: Reconcile, step: SetAutoscaler) -> Autoscaler | None:
    """Return an HPA that KEDA made for the step's ScaledObject and has not removed yet; it would go on scaling."""
    deployment = reconcile.observation.deployment(reconcile.plan.deployment)
    scalers = (deployment.facts.autoscalers if deployment and deployment.facts else None) or ()
    return next((scaler for scaler in scalers if scaler.made_by == step.named), None)


def scaler_done(reconcile: Reconcile, step: SetAutoscaler, progress: StepProgress) -> State:
    """Return how far the step is that ``progress`` has begun."""
    scaler = find_scaler(reconcile, step)
    if isinstance(scaler, str):
        return Unfinished(scaler)
    if scaler is None:
        return Impossible(f"{step.named} is gone")
    claim = our_claim(reconcile, scaler)
    if claim is None or not claim.has_done(progress.index):
        return Missing()
    if state_of_scaler(scaler) != step.after:
        return Impossible(f"somebody set {step.named} to {state_of_scaler(scaler)}")
    if step.after.is_paused and (left := left_over(reconcile, step)):
        return Unfinished(f"KEDA has not removed {left} yet")
    return Finished(step.done_when)


def autoscaler_drift(reconcile: Reconcile, deployment: DeploymentObservation) -> Differences:
    """Yield what autoscalers of a Deployment would undo the plan, or are not as it expects them now."""
    assert deployment.facts is not None
    scalers = deployment.facts.autoscalers
    if scalers is None:
        yield f"whether an autoscaler owns {deployment.title} could not be read"
    ours = _ours(reconcile) if deployment.name == reconcile.plan.deployment else None
    for scaler in scalers or ():
        if ours is None or str(scaler) != ours[0].named:
            yield from _foreign(reconcile, deployment, scaler, ours)
        elif state_of_scaler(scaler) != ours[1]:
            yield Refusal(
                Code.AUTOSCALED, f"{scaler} was changed: it has {state_of_scaler(scaler)}, the plan expects {ours[1]}"
            )
    if ours is not None and scalers is not None and all(str(scaler) != ours[0].named for scaler in scalers):
        yield Refusal(Code.AUTOSCALED, f"{ours[0].named} is gone, which the plan sets")


def _foreign(
    reconcile: Reconcile,
    deployment: DeploymentObservation,
    scaler: Autoscaler,
    ours: tuple[SetAutoscaler, AutoscalerState] | None,
) -> Differences:
    if ours is not None and scaler.made_by == ours[0].named:
        if ours[1].is_paused:
            yield f"{ours[0].named} is paused, and KEDA has not removed its {scaler} yet"
        return
    counts = planned_counts(reconcile.plan, deployment.name) - {None}
    if not all(scaler.leaves(count) for count in counts if count is not None):
        yield Refusal(Code.AUTOSCALED, f"{scaler} sets the replicas of {deployment.title}: it would undo the plan")


def _ours(reconcile: Reconcile) -> tuple[SetAutoscaler, AutoscalerState] | None:
    """Return the autoscaler's first step and the state that the steps done so far have left it in."""
    steps = list(_steps(reconcile))
    if not steps:
        return None
    done = [step.after for index, step in steps if index < reconcile.status.step]
    return steps[0][1], done[-1] if done else steps[0][1].before


def lets_autoscaler_scale(reconcile: Reconcile) -> bool:
    """True once the plan has begun to let its autoscaler go on between bounds: from then on it may set the count."""
    begun = {progress.index: progress for progress in reconcile.status.steps}
    return any(
        not step.after.is_paused and step.after.minimum < step.after.maximum and begun[index].undone_at is None
        for index, step in _steps(reconcile)
        if index in begun
    )


def _steps(reconcile: Reconcile) -> Iterator[tuple[int, SetAutoscaler]]:
    return ((index, step) for index, step in enumerate(reconcile.plan.steps) if isinstance(step, SetAutoscaler))
