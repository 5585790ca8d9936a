"""Whether a step is done, as far as can be observed: each check is one small function of the reconcile."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from planner.execution.group_drift import fresh_group, missing_queues, moved_queues
from planner.execution.moves import Reconcile
from planner.execution.observation import DeploymentObservation, GroupObservation
from planner.execution.plan_targets import basis_of, deployment_of, group_of, offsets_group, with_kind
from planner.execution.progress import StepProgress
from planner.execution.scalers import scaler_done
from planner.execution.states import Finished, Impossible, Missing, State, Unfinished
from planner.model.snapshot import POP, SHARE
from planner.rollout.explain import tell_moves
from planner.rollout.queue_ranges import queues_named
from planner.rollout.steps import (
    AwaitLag,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    OffsetStep,
    PauseForPerson,
    ResetOffsets,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)
from planner.text.words import queues

SETTLED_APART: Final = timedelta(seconds=5)
"""Between the two observations that must find a group settled. A member that does not yet know of another shows in the
first already, as ownership is compared with all members; the second finds a rebalance that had only just begun."""


Waiting = AwaitReady | AwaitSettled | AwaitLag | PauseForPerson | CheckForecast
"""The steps that change nothing."""


def state_of(reconcile: Reconcile, step: Step, progress: StepProgress) -> State:
    """Return how far the step is that ``progress`` has begun."""
    match step:
        case CreateDeployment():
            return _state_of_creation(reconcile, step)
        case DeleteDeployment():
            return _state_of_deletion(reconcile, step)
        case CloneOffsets() | ResetOffsets():
            return _state_of_offsets(reconcile, step)
        case SetAutoscaler():
            return scaler_done(reconcile, step, progress)
        case StartConsumers() | StopConsumers() | UpdateTemplate() | MarkVictims():
            return _state_of_change(reconcile, step, progress)
        case _:
            return _state_of_waiting(reconcile, step, progress)


def _state_of_waiting(reconcile: Reconcile, step: Waiting, progress: StepProgress) -> State:
    match step:
        case AwaitReady():
            return _state_of_readiness(reconcile, step)
        case AwaitSettled():
            return _state_of_settling(reconcile, step, progress)
        case AwaitLag():
            return _state_of_lag(reconcile, step)
        case PauseForPerson():
            answered = progress.index in reconcile.stored.requests.answered
            return Finished("a person has let the plan go on") if answered else Unfinished(step.question)
        case CheckForecast():
            return Finished("judged at the end")


def _state_of_change(
    reconcile: Reconcile, step: StartConsumers | UpdateTemplate | StopConsumers | MarkVictims, progress: StepProgress
) -> State:
    deployment = reconcile.observation.deployment(deployment_of(reconcile.plan, step))
    if deployment is None or deployment.facts is None:
        return Unfinished(f"{with_kind(reconcile.plan, deployment_of(reconcile.plan, step))} could not be read")
    if isinstance(step, MarkVictims):
        return _state_of_marks(step, deployment)
    if deployment.claim is None or not deployment.claim.has_done(progress.index):
        return Missing()
    match step:
        case StopConsumers():
            return _state_of_stop(reconcile, step, progress, deployment)
        case StartConsumers():
            return Finished(
                f"{step.to_replicas} replicas asked for; {tell_moves(step.forecast, reconcile.plan.group.system)}"
            )
        case UpdateTemplate():
            return Finished(f"the new template is in; {tell_moves(step.forecast, reconcile.plan.group.system)}")


def _state_of_marks(step: MarkVictims, deployment: DeploymentObservation) -> State:
    if deployment.live_pods is None:
        return Unfinished(f"the pods of {deployment.title} could not be read")
    costs = {pod.name: pod.deletion_cost for pod in deployment.live_pods}
    gone = [name for name in step.pods if name not in costs]
    if gone:
        return Impossible(f"{', '.join(gone)}, which was to stop, is no longer in {deployment.title}")
    done = all(costs[name] == step.deletion_cost for name in step.pods)
    return Finished(f"{', '.join(step.pods)} will stop first") if done else Missing()


def _state_of_stop(
    reconcile: Reconcile, step: StopConsumers, progress: StepProgress, deployment: DeploymentObservation
) -> State:
    if deployment.live_pods is None:
        return Unfinished(f"the pods of {deployment.title} could not be read")
    live = {pod.name for pod in deployment.live_pods}
    if len(live) > step.to_replicas:
        return Unfinished(f"{len(live)} pods of {deployment.title} go on, {step.to_replicas} are to stay")
    went = {pod.name for pod in progress.pods_before} - live
    deviation = _deviation(reconcile, progress, deployment.name, went)
    message = f"{', '.join(sorted(went)) or 'no pod'} stopped; {tell_moves(step.forecast, reconcile.plan.group.system)}"
    return Finished(message, deviation)


def _deviation(reconcile: Reconcile, progress: StepProgress, deployment: str, went: set[str]) -> str | None:
    """Return the pods that stopped although others were marked; pods may also end by themselves."""
    before = {pod.name for pod in progress.pods_before}
    marked = {
        name
        for step in reconcile.plan.steps[: progress.index]
        if isinstance(step, MarkVictims) and deployment_of(reconcile.plan, step) == deployment
        for name in step.pods
    } & before
    step = reconcile.plan.steps[progress.index]
    if isinstance(step, StopConsumers) and step.stopping is not None:
        marked = {victim.pod for victim in step.stopping} & before
    if not marked or marked == went:
        return None
    return f"{_names(went - marked)} stopped where {_names(marked - went)} was marked: other queues move than forecast"


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "no other pod"


def _state_of_creation(reconcile: Reconcile, step: CreateDeployment) -> State:
    deployment = reconcile.observation.deployment(step.deployment)
    if deployment is None:
        return Unfinished(f"Deployment {step.deployment} could not be read")
    if deployment.facts is None:
        return Missing()
    if deployment.claim is None or deployment.claim.plan != reconcile.key:
        return Impossible(f"Deployment {step.deployment} was created by somebody else")
    return Finished(f"Deployment {step.deployment} is there")


def _state_of_deletion(reconcile: Reconcile, step: DeleteDeployment) -> State:
    deployment = reconcile.observation.deployment(step.deployment)
    if deployment is None:
        return Unfinished(f"Deployment {step.deployment} could not be read")
    return Missing() if deployment.facts is not None else Finished(f"Deployment {step.deployment} is gone")


def _state_of_readiness(reconcile: Reconcile, step: AwaitReady) -> State:
    name = deployment_of(reconcile.plan, step)
    deployment = reconcile.observation.deployment(name)
    if deployment is None or deployment.facts is None or deployment.facts.pods is None:
        return Unfinished(f"the pods of {with_kind(reconcile.plan, name)} could not be read")
    pods = [pod for pod in deployment.facts.pods if not pod.has_finished]
    ready = sum(pod.is_ready and not pod.is_ending for pod in pods)
    newest = deployment.facts.is_observed and deployment.facts.updated == step.replicas
    if newest and ready == len(pods) == step.replicas:
        return Finished(f"{ready} of {step.replicas} pods are ready")
    old = "" if newest else ", not all of the newest template"
    return Unfinished(
        f"{ready} of {step.replicas} pods of {with_kind(reconcile.plan, name)} are ready, {len(pods)} are there{old}"
    )


def _state_of_settling(reconcile: Reconcile, step: AwaitSettled, progress: StepProgress) -> State:
    name = group_of(reconcile.plan, step)
    group = fresh_group(reconcile.observation, name)
    if group is None or group.members is None:
        return Unfinished(f"the members of group {name} could not be read", _forget(progress))
    if group.members and group.strategy is not None and group.strategy != step.strategy:
        return Impossible(f"group {name} allocates by {group.strategy}, the step expects {step.strategy}")
    why = (missing_queues(reconcile, group) if step.members else None) or _why_unsettled(step, group)
    if why is not None:
        return Unfinished(why, _forget(progress))
    fingerprint = _fingerprint(group)
    # Seen at a time to come: the server's clock went back, and its former time may be hours away.
    if progress.seen != fingerprint or progress.seen_at is None or progress.seen_at > group.at:
        return Unfinished("settled once, to be seen again", replace(progress, seen=fingerprint, seen_at=group.at))
    if group.at - progress.seen_at < SETTLED_APART:
        return Unfinished("settled once, to be seen again")
    return Finished(_moves_message(reconcile, step, group))


def _forget(progress: StepProgress) -> StepProgress | None:
    return replace(progress, seen=None, seen_at=None) if progress.seen is not None else None


def _why_unsettled(step: AwaitSettled, group: GroupObservation) -> str | None:
    assert group.members is not None
    if len(group.members) != step.members:
        return f"group {group.name} has {len(group.members)} of {step.members} members"
    if not step.members:
        return None
    if group.owners is None or group.misplaced is None or group.is_rebalancing is None or group.strategy is None:
        return f"who owns the queues of group {group.name} could not be read"
    if group.is_rebalancing:
        return f"group {group.name} is rebalancing"
    doubled = sum(len(owners) != 1 for _, owners in group.owners)
    if group.misplaced or doubled:
        expected = "read by a member" if group.shares_messages else f"owned as {group.strategy} says"
        return f"not every queue of group {group.name} is {expected}"
    return None


def _fingerprint(group: GroupObservation) -> str:
    text = repr((group.members, group.epoch, [(str(queue), owners) for queue, owners in group.owners or ()]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _moves_message(reconcile: Reconcile, step: AwaitSettled, group: GroupObservation) -> str:
    shared = replace(step, strategy=POP, options=None, new_room=None)
    awaited = shared if group.shares_messages and step.strategy != SHARE else step
    message = f"{step.everybody} of group {group.name} {awaited.share}"
    if group.shares_messages:
        return message
    basis = basis_of(reconcile.plan, group.name)
    if basis is None or not group.owners:
        return message
    moved = moved_queues(basis.forecast.owners_before, group.owners)
    forecast = tell_moves(basis.forecast.moved_queues, basis.group.system)
    verb = "has" if moved == 1 else "have"
    noun = queues(moved, basis.group.system)
    return f"{message}; {noun} {verb} another owner than before, forecast: {forecast}"


def _state_of_lag(reconcile: Reconcile, step: AwaitLag) -> State:
    name = group_of(reconcile.plan, step)
    group = fresh_group(reconcile.observation, name)
    if group is None:
        return Unfinished(f"the lag of group {name} could not be read")
    if (missing := missing_queues(reconcile, group)) is not None:
        return Unfinished(missing)
    waiting = group.lag_messages if step.queues is None else _lag_in(group, step.queues)
    limits = [
        *([("messages", waiting, step.messages)] if step.messages is not None else []),
        *([("seconds", group.lag_seconds, step.seconds)] if step.seconds is not None else []),
    ]
    known = [(unit, lag, most) for unit, lag, most in limits if lag is not None]
    if len(known) < len(limits):
        return Unfinished(f"the lag of group {name} could not be read")
    if all(lag <= most for _, lag, most in known):
        return Finished(" and ".join(f"{lag:.0f} {unit} behind, at most {most} wanted" for unit, lag, most in known))
    bounds = " or ".join(f"{most} {unit}" for unit, _, most in known)
    return Unfinished(f"group {name} is further behind than {bounds}")


def _lag_in(group: GroupObservation, entries: Sequence[str]) -> int | None:
    """Return how many messages wait in these queues, ``None`` where one of them was not read."""
    lag_by_queue = {str(entry.queue): entry.lag for entry in group.offsets}
    lags = [lag_by_queue.get(queue) for queue in queues_named(entries)]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if len(known) == len(lags) else None


def _state_of_offsets(reconcile: Reconcile, step: OffsetStep) -> State:
    own = fresh_group(reconcile.observation, reconcile.plan.group.group)
    if own is None or reconcile.observation.offsets_set is None:
        return Unfinished(f"the offsets of group {offsets_group(step)} could not be read")
    if (missing := missing_queues(reconcile, own)) is not None:
        return Unfinished(missing)
    return (
        Finished(f"the offsets of group {offsets_group(step)} are set")
        if reconcile.observation.offsets_set
        else Missing()
    )
