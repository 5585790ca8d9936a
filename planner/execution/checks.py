"""Whether a step is done, as far as can be seen: each check is one small function of the turn."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Final

from planner.execution.course import deployment_of, group_of, offsets_group
from planner.execution.group_drift import missing_queues, moved_queues, seen_group
from planner.execution.look import DeploymentLook, GroupLook
from planner.execution.moves import Turn
from planner.execution.progress import StepProgress
from planner.execution.scalers import scaler_done
from planner.execution.states import Finished, Hopeless, Missing, State, Unfinished
from planner.rollout.explain import tell_moves
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
from planner.words import queues

SETTLED_APART: Final = timedelta(seconds=5)
"""Between the two looks that must find a group settled. A member that does not yet know of another shows in the first
look already, as ownership is held against all members; the second finds a rebalance that had only just begun."""


Waiting = AwaitReady | AwaitSettled | AwaitLag | PauseForPerson | CheckForecast
"""The steps that change nothing."""


def state_of(turn: Turn, step: Step, progress: StepProgress) -> State:
    """Return how far the step is that ``progress`` has begun."""
    match step:
        case CreateDeployment():
            return _created(turn, step)
        case DeleteDeployment():
            return _deleted(turn, step)
        case CloneOffsets() | ResetOffsets():
            return _offsets(turn, step)
        case SetAutoscaler():
            return scaler_done(turn, step, progress)
        case StartConsumers() | StopConsumers() | UpdateTemplate() | MarkVictims():
            return _changed(turn, step, progress)
        case _:
            return _awaited(turn, step, progress)


def _awaited(turn: Turn, step: Waiting, progress: StepProgress) -> State:
    match step:
        case AwaitReady():
            return _ready(turn, step)
        case AwaitSettled():
            return _settled(turn, step, progress)
        case AwaitLag():
            return _lag(turn, step)
        case PauseForPerson():
            answered = progress.index in turn.stored.requests.answered
            return Finished("a person has let the plan go on") if answered else Unfinished(step.question)
        case CheckForecast():
            return Finished("judged at the end")


def _changed(
    turn: Turn, step: StartConsumers | UpdateTemplate | StopConsumers | MarkVictims, progress: StepProgress
) -> State:
    found = turn.look.deployment(deployment_of(turn.plan, step))
    if found is None or found.facts is None:
        return Unfinished(f"Deployment {deployment_of(turn.plan, step)} could not be read")
    if isinstance(step, MarkVictims):
        return _marked(step, found)
    if found.claim is None or not found.claim.has_done(progress.index):
        return Missing()
    match step:
        case StopConsumers():
            return _stopped(turn, step, progress, found)
        case StartConsumers():
            return Finished(
                f"{step.to_replicas} replicas asked for; {tell_moves(step.forecast, turn.plan.group.system)}"
            )
        case UpdateTemplate():
            return Finished(f"the new template is in; {tell_moves(step.forecast, turn.plan.group.system)}")


def _marked(step: MarkVictims, found: DeploymentLook) -> State:
    if found.live_pods is None:
        return Unfinished(f"the pods of Deployment {found.name} could not be read")
    costs = {pod.name: pod.deletion_cost for pod in found.live_pods}
    gone = [name for name in step.pods if name not in costs]
    if gone:
        return Hopeless(f"{', '.join(gone)}, which was to stop, is no longer in Deployment {found.name}")
    done = all(costs[name] == step.deletion_cost for name in step.pods)
    return Finished(f"{', '.join(step.pods)} will stop first") if done else Missing()


def _stopped(turn: Turn, step: StopConsumers, progress: StepProgress, found: DeploymentLook) -> State:
    if found.live_pods is None:
        return Unfinished(f"the pods of Deployment {found.name} could not be read")
    live = {pod.name for pod in found.live_pods}
    if len(live) > step.to_replicas:
        return Unfinished(f"{len(live)} pods of Deployment {found.name} go on, {step.to_replicas} are to stay")
    went = {pod.name for pod in progress.pods_before} - live
    surprise = _unexpected(turn, progress, found.name, went)
    told = f"{', '.join(sorted(went)) or 'no pod'} stopped; {tell_moves(step.forecast, turn.plan.group.system)}"
    return Finished(told, surprise)


def _unexpected(turn: Turn, progress: StepProgress, deployment: str, went: set[str]) -> str | None:
    """Return who stopped although another was marked; pods may also end by themselves, which looks the same."""
    before = {pod.name for pod in progress.pods_before}
    marked = {
        name
        for step in turn.plan.steps[: progress.index]
        if isinstance(step, MarkVictims) and deployment_of(turn.plan, step) == deployment
        for name in step.pods
    } & before
    if not marked or marked == went:
        return None
    return f"{_names(went - marked)} stopped where {_names(marked - went)} was marked: other queues move than forecast"


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "no other pod"


def _created(turn: Turn, step: CreateDeployment) -> State:
    found = turn.look.deployment(step.deployment)
    if found is None:
        return Unfinished(f"Deployment {step.deployment} could not be read")
    if found.facts is None:
        return Missing()
    if found.claim is None or found.claim.plan != turn.key:
        return Hopeless(f"Deployment {step.deployment} was created by somebody else")
    return Finished(f"Deployment {step.deployment} is there")


def _deleted(turn: Turn, step: DeleteDeployment) -> State:
    found = turn.look.deployment(step.deployment)
    if found is None:
        return Unfinished(f"Deployment {step.deployment} could not be read")
    return Missing() if found.facts is not None else Finished(f"Deployment {step.deployment} is gone")


def _ready(turn: Turn, step: AwaitReady) -> State:
    name = deployment_of(turn.plan, step)
    found = turn.look.deployment(name)
    if found is None or found.facts is None or found.facts.pods is None:
        return Unfinished(f"the pods of Deployment {name} could not be read")
    pods = [pod for pod in found.facts.pods if not pod.has_finished]
    ready = sum(pod.is_ready and not pod.is_ending for pod in pods)
    newest = found.facts.is_observed and found.facts.updated == step.replicas
    if newest and ready == len(pods) == step.replicas:
        return Finished(f"{ready} of {step.replicas} pods are ready")
    old = "" if newest else ", not all of the newest template"
    return Unfinished(f"{ready} of {step.replicas} pods of Deployment {name} are ready, {len(pods)} are there{old}")


def _settled(turn: Turn, step: AwaitSettled, progress: StepProgress) -> State:
    name = group_of(turn.plan, step)
    group = seen_group(turn.look, name)
    if group is None or group.members is None:
        return Unfinished(f"the members of group {name} could not be read", _forget(progress))
    if group.members and group.strategy is not None and group.strategy != step.strategy:
        return Hopeless(f"group {name} allocates by {group.strategy}, the step expects {step.strategy}")
    why = (missing_queues(turn, group) if step.members else None) or _unsettled(step, group)
    if why is not None:
        return Unfinished(why, _forget(progress))
    seen = _fingerprint(group)
    if progress.seen != seen or progress.seen_at is None:
        return Unfinished("settled once, to be seen again", replace(progress, seen=seen, seen_at=group.at))
    if group.at - progress.seen_at < SETTLED_APART:
        return Unfinished("settled once, to be seen again")
    return Finished(_told_moves(turn, step, group))


def _forget(progress: StepProgress) -> StepProgress | None:
    return replace(progress, seen=None, seen_at=None) if progress.seen is not None else None


def _unsettled(step: AwaitSettled, group: GroupLook) -> str | None:
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
        return f"not every queue of group {group.name} is owned as {group.strategy} says"
    return None


def _fingerprint(group: GroupLook) -> str:
    said = repr((group.members, group.epoch, [(str(queue), owners) for queue, owners in group.owners or ()]))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _told_moves(turn: Turn, step: AwaitSettled, group: GroupLook) -> str:
    if group.shares_messages:
        return f"all {step.members} members of group {group.name} take messages of every queue"
    told = f"all {step.members} members of group {group.name} own what {step.strategy} gives them"
    if group.name != turn.plan.group.group or not group.owners:
        return told
    moved = moved_queues(turn.plan.forecast.owners_before, group.owners)
    forecast = tell_moves(turn.plan.forecast.moved_queues, turn.plan.group.system)
    verb = "has" if moved == 1 else "have"
    return f"{told}; {queues(moved, turn.plan.group.system)} {verb} another owner than before, forecast: {forecast}"


def _lag(turn: Turn, step: AwaitLag) -> State:
    name = group_of(turn.plan, step)
    group = seen_group(turn.look, name)
    if group is None:
        return Unfinished(f"the lag of group {name} could not be read")
    if (missing := missing_queues(turn, group)) is not None:
        return Unfinished(missing)
    wanted = [
        *([("messages", group.lag_messages, step.messages)] if step.messages is not None else []),
        *([("seconds", group.lag_seconds, step.seconds)] if step.seconds is not None else []),
    ]
    known = [(unit, lag, most) for unit, lag, most in wanted if lag is not None]
    if len(known) < len(wanted):
        return Unfinished(f"the lag of group {name} could not be read")
    if all(lag <= most for _, lag, most in known):
        return Finished(" and ".join(f"{lag:.0f} {unit} behind, at most {most} wanted" for unit, lag, most in known))
    bounds = " or ".join(f"{most} {unit}" for unit, _, most in known)
    return Unfinished(f"group {name} is further behind than {bounds}")


def _offsets(turn: Turn, step: OffsetStep) -> State:
    own = seen_group(turn.look, turn.plan.group.group)
    if own is None or turn.look.offsets_set is None:
        return Unfinished(f"the offsets of group {offsets_group(step)} could not be read")
    if (missing := missing_queues(turn, own)) is not None:
        return Unfinished(missing)
    return Finished(f"the offsets of group {offsets_group(step)} are set") if turn.look.offsets_set else Missing()
