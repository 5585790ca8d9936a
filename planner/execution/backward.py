"""A plan that turns back: its steps are undone, the last one first, until the old state is there again."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from planner.execution.course import deployment_of, fewest_ready, has_no_way_back
from planner.execution.effects import Delete, DropClaim, MarkPods, RestoreTemplate, SetClaim, SetReplicas
from planner.execution.fence import overruled, ready_after, ready_now
from planner.execution.group_drift import seen_group
from planner.execution.look import Claim, DeploymentLook
from planner.execution.moves import Move, Perform, Turn, Write
from planner.execution.phases import Phase
from planner.execution.progress import Refusal, RolloutStatus, StepProgress
from planner.execution.scalers import find_scaler, our_claim, set_scaler, state_of_scaler
from planner.model.deployments import Deployment
from planner.rollout.steps import (
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)

_Undoable = StartConsumers | StopConsumers | UpdateTemplate


def turn_back(turn: Turn, why: str, refusals: tuple[Refusal, ...] = ()) -> Write:
    """Return the move that begins to undo; where there is no way back any more, the plan is stuck."""
    if (passed := late(turn)) is not None:
        return turn.stuck(f"{why}; {passed}")
    entered = turn.status.enter(Phase.ABORTING, why, turn.now)
    return Write(replace(entered, refusals=refusals), reason=Phase.ABORTING)


def late(turn: Turn) -> str | None:
    """Return why the old state cannot be reached any more, ``None`` while it can."""
    for progress in turn.status.steps:
        step = turn.plan.steps[progress.index]
        if has_no_way_back(turn.plan, step) and _may_be_in(turn, step, progress):
            return f"step {progress.index + 1} ({step.kind}) cannot be undone, so the plan can only go on"
    return None


def _may_be_in(turn: Turn, step: Step, progress: StepProgress) -> bool:
    if progress.finished_at is not None:
        return True
    if isinstance(step, DeleteDeployment):
        found = turn.look.deployment(step.deployment)
        return found is None or found.facts is None
    # Nothing is written before it is noted what was there.
    return progress.seen is not None and turn.look.offsets_seen != progress.seen


def _left(status: RolloutStatus) -> Iterator[StepProgress]:
    """Yield the steps that were begun and are not undone, the last one first."""
    return (progress for progress in reversed(status.steps) if progress.undone_at is None)


def aborting(turn: Turn) -> Move:
    """Return the next move of a plan in ``ABORTING``."""
    if turn.edited is not None:
        return turn.stuck(turn.edited)
    if (last := undoing(turn)) is not None:
        if last.undo_since is None:
            return turn.renew(replace(last, undo_since=turn.now))
        return _undo(turn, turn.plan.steps[last.index], last)
    if (drop := drop_claim(turn)) is not None:
        return drop
    entered = turn.status.enter(Phase.ROLLED_BACK, f"the old state is there again: {turn.status.message}", turn.now)
    return Write(replace(entered, ended="old", surprises=turn.surprises), reason=Phase.ROLLED_BACK)


def undoing(turn: Turn) -> StepProgress | None:
    """Return the step whose turn it is to be undone, ``None`` once all are."""
    return next(_left(turn.status), None)


def drop_claim(turn: Turn) -> Perform | None:
    """Return the effect that gives one claimed Deployment free, ``None`` when none is claimed any more, or can be."""
    for found in turn.claimed.values():
        if found.facts is not None and (DropClaim, found.name) not in turn.untidy:
            return Perform(DropClaim(found.name, found.facts.resource_version), turn.untidy)
    return None


def clear_marks(turn: Turn) -> Perform | None:
    """Return the effect that gives pods their deletion cost back where they outlived their mark, and that can be."""
    for progress in turn.status.steps:
        step = turn.plan.steps[progress.index]
        unmark = _unmark(turn, step, progress) if isinstance(step, MarkVictims) else None
        if unmark is not None and (MarkPods, unmark.deployment) not in turn.untidy:
            return Perform(unmark, turn.untidy)
    return None


def _undo(turn: Turn, step: Step, progress: StepProgress) -> Move:
    match step:
        case StartConsumers() | StopConsumers():
            return _undo_count(turn, step, progress)
        case UpdateTemplate():
            return _undo_template(turn, step, progress)
        case MarkVictims():
            unmark = _unmark(turn, step, progress)
            return _undone(turn, progress) if unmark is None else Perform(unmark)
        case CreateDeployment():
            return _undo_create(turn, step, progress)
        case SetAutoscaler():
            return _undo_scaler(turn, step, progress)
        case _:
            return _undone(turn, progress)


def _undone(turn: Turn, progress: StepProgress) -> Write:
    return turn.renew(replace(progress, undone_at=turn.now))


def _held(turn: Turn, step: Step, progress: StepProgress, why: str) -> Move:
    since = progress.undo_since or turn.now
    if turn.past(since, step.time_limit_seconds):
        return turn.stuck(f"step {progress.index + 1} was not undone within {step.time_limit_seconds} s: {why}")
    return turn.hold(why, since + timedelta(seconds=step.time_limit_seconds))


def _undo_count(turn: Turn, step: StartConsumers | StopConsumers, progress: StepProgress) -> Move:
    found = _ours(turn, step, progress)
    if not isinstance(found, DeploymentLook):
        return found
    assert found.facts is not None
    if not _has_undone(found, progress):
        # Also where the effect never came in: a request of ours that is still on its way must find another version.
        return _count_back(turn, step, progress, found)
    if found.facts.replicas != step.from_replicas:
        return turn.stuck(f"somebody set Deployment {found.name} to {found.facts.replicas} replicas, which is left so")
    if isinstance(step, StopConsumers) and (found.ready is None or found.ready < step.from_replicas):
        told = f"{found.ready} of {step.from_replicas} pods of Deployment {found.name} are ready again"
        return _held(turn, step, progress, told)
    return _undone(turn, progress)


def _ours(turn: Turn, step: _Undoable, progress: StepProgress) -> DeploymentLook | Move:
    """Return the step's Deployment, which is there, or the move for one that is not seen, gone or somebody else's."""
    name = deployment_of(turn.plan, step)
    found = turn.look.deployment(name)
    if found is None:
        return _held(turn, step, progress, f"Deployment {name} could not be read")
    if (foreign := overruled(turn)) is not None:
        return turn.stuck(foreign)
    return found if found.facts is not None else turn.stuck(f"Deployment {name} is gone")


def _has_undone(found: DeploymentLook, progress: StepProgress) -> bool:
    return found.claim is not None and found.claim.has_undone(progress.index)


def _count_back(
    turn: Turn, step: StartConsumers | StopConsumers, progress: StepProgress, found: DeploymentLook
) -> Move:
    assert found.facts is not None
    left, now, floor = ready_after(turn, found.name, step.from_replicas), ready_now(turn), fewest_ready(turn.plan)
    if left is None or now is None:
        return _held(turn, step, progress, f"the pods of Deployment {found.name} could not be read")
    if left < min(floor, now):
        return _held(turn, step, progress, f"only {left} consumers would stay ready, {floor} must")
    claim = Claim(turn.key, progress.index, is_undoing=True)
    return Perform(SetReplicas(found.name, step.from_replicas, claim, found.facts.resource_version))


def _undo_template(turn: Turn, step: UpdateTemplate, progress: StepProgress) -> Move:
    found = _ours(turn, step, progress)
    if not isinstance(found, DeploymentLook):
        return found
    assert found.facts is not None
    claim, version = Claim(turn.key, progress.index, is_undoing=True), found.facts.resource_version
    if not _has_undone(found, progress):
        if found.claim is not None and found.claim.mark < progress.index:
            # Its effect never came in; one that comes yet must find another version. A later step's mark tells it did.
            return Perform(SetClaim(found.name, claim, version))
        return Perform(RestoreTemplate(found.name, step.from_revision, claim, version))
    facts = found.facts
    if not facts.is_observed or facts.updated != facts.replicas or found.ready != facts.replicas:
        told = f"{found.ready} pods are ready, {facts.updated} of {facts.replicas} have the old template"
        return _held(turn, step, progress, told)
    if _another_comes_back(turn, progress) and (left := _left_over(turn, facts)) is not None:
        return _held(turn, step, progress, left)
    return _undone(turn, progress)


def _another_comes_back(turn: Turn, progress: StepProgress) -> bool:
    earlier = (turn.plan.steps[one.index] for one in _left(turn.status) if one.index < progress.index)
    return any(isinstance(step, UpdateTemplate) for step in earlier)


def _left_over(turn: Turn, facts: Deployment) -> str | None:
    """Return who is left of a template that was taken back, ``None`` once nobody is.

    Pods that are about to end, and members that ended without a word, must not meet those of a template before it: two
    rolls are there as the first and the last of their lists have no assignor in common (INCONSISTENT_GROUP_PROTOCOL).
    """
    if facts.pods is None:
        return f"the pods of Deployment {facts.name} could not be read"
    there = sum(not pod.has_finished for pod in facts.pods)
    if there > facts.replicas:
        return f"{there} pods of Deployment {facts.name} are there, {facts.replicas} are to stay"
    name = turn.plan.group.group
    group = seen_group(turn.look, name)
    if group is None or group.members is None:
        return f"the members of group {name} could not be read"
    if len(group.members) > facts.replicas:
        return f"group {name} has {len(group.members)} members, {facts.replicas} are to stay"
    return None


def _undo_create(turn: Turn, step: CreateDeployment, progress: StepProgress) -> Move:
    found = turn.look.deployment(step.deployment)
    if found is None:
        return _held(turn, step, progress, f"Deployment {step.deployment} could not be read")
    if found.facts is None or found.claim is None or found.claim.plan != turn.key:
        return _undone(turn, progress)
    if found.facts.pods is None or found.facts.replicas:
        return _held(turn, step, progress, f"Deployment {step.deployment} still has pods")
    return Perform(Delete(found.name, found.facts.uid, found.facts.resource_version))


def _undo_scaler(turn: Turn, step: SetAutoscaler, progress: StepProgress) -> Move:
    found = find_scaler(turn, step)
    if isinstance(found, str):
        return _held(turn, step, progress, found)
    if found is None:
        return _undone(turn, progress)
    claim = our_claim(turn, found)
    if claim is not None and claim.has_undone(progress.index):
        return _undone(turn, progress)
    if state_of_scaler(found) not in (step.before, step.after):
        return turn.stuck(f"somebody set {step.named} to {state_of_scaler(found)}, which is left so")
    # Also where the effect never came in: a request of ours that is still on its way must find another version.
    return Perform(set_scaler(turn, step, step.before, Claim(turn.key, progress.index, is_undoing=True)))


def _unmark(turn: Turn, step: MarkVictims, progress: StepProgress) -> MarkPods | None:
    found = turn.look.deployment(deployment_of(turn.plan, step))
    before = {pod.name: pod.deletion_cost for pod in progress.pods_before}
    pods = tuple(
        (pod.name, pod.uid, before.get(pod.name, 0))
        for pod in (found.live_pods if found else None) or ()
        if pod.name in step.pods and pod.deletion_cost == step.deletion_cost != before.get(pod.name, 0)
    )
    return MarkPods(found.name, pods) if found and pods else None
