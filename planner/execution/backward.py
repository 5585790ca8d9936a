"""A plan that is undone: its steps are undone, the last one first, until the old state is there again."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from planner.execution.effects import Delete, DropClaim, MarkPods, RestoreTemplate, SetClaim, SetReplicas
from planner.execution.fence import foreign_change, ready_after, ready_now
from planner.execution.group_drift import fresh_group
from planner.execution.moves import Move, Perform, Reconcile, Write
from planner.execution.observation import Claim, DeploymentObservation
from planner.execution.phases import Phase
from planner.execution.plan_targets import deployment_of, fewest_ready, is_irreversible, with_kind
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


def begin_undo(reconcile: Reconcile, why: str, refusals: tuple[Refusal, ...] = ()) -> Write:
    """Return the move that begins to undo; where there is no way back any more, the plan is stuck."""
    if (passed := why_irreversible(reconcile)) is not None:
        return reconcile.stuck(f"{why}; {passed}")
    entered = reconcile.status.enter(Phase.ABORTING, why, reconcile.now)
    return Write(replace(entered, refusals=refusals), reason=Phase.ABORTING)


def why_irreversible(reconcile: Reconcile) -> str | None:
    """Return why the old state cannot be reached any more, ``None`` while it can."""
    for progress in reconcile.status.steps:
        step = reconcile.plan.steps[progress.index]
        if is_irreversible(reconcile.plan, step) and _may_be_in(reconcile, step, progress):
            return f"step {progress.index + 1} ({step.kind}) cannot be undone, so the plan can only go on"
    return None


def _may_be_in(reconcile: Reconcile, step: Step, progress: StepProgress) -> bool:
    if progress.finished_at is not None:
        return True
    if isinstance(step, DeleteDeployment):
        deployment = reconcile.observation.deployment(step.deployment)
        return deployment is None or deployment.facts is None
    # Nothing is written before it is noted what was there.
    return progress.seen is not None and reconcile.observation.offsets_fingerprint != progress.seen


def _steps_to_undo(status: RolloutStatus) -> Iterator[StepProgress]:
    """Yield the steps that were begun and are not undone, the last one first."""
    return (progress for progress in reversed(status.steps) if progress.undone_at is None)


def decide_aborting(reconcile: Reconcile) -> Move:
    """Return the next move of a plan in ``ABORTING``."""
    if reconcile.edited is not None:
        return reconcile.stuck(reconcile.edited)
    if (last := step_to_undo(reconcile)) is not None:
        if last.undo_since is None:
            return reconcile.renew(replace(last, undo_since=reconcile.now))
        return _undo(reconcile, reconcile.plan.steps[last.index], last)
    if (drop := drop_claim(reconcile)) is not None:
        return drop
    entered = reconcile.status.enter(
        Phase.ROLLED_BACK, f"the old state is there again: {reconcile.status.message}", reconcile.now
    )
    return Write(replace(entered, ended="old", surprises=reconcile.surprises), reason=Phase.ROLLED_BACK)


def step_to_undo(reconcile: Reconcile) -> StepProgress | None:
    """Return the step to be undone next, ``None`` once all are."""
    return next(_steps_to_undo(reconcile.status), None)


def drop_claim(reconcile: Reconcile) -> Perform | None:
    """Return the effect that gives one claimed Deployment free, ``None`` when none is claimed any more, or can be."""
    for deployment in reconcile.claimed.values():
        if deployment.facts is not None and (DropClaim, deployment.name) not in reconcile.leftovers:
            return Perform(_drop(deployment.facts), reconcile.leftovers)
    return None


def _drop(facts: Deployment) -> DropClaim:
    return DropClaim(facts.name, facts.resource_version, facts.kind, facts.api_version)


def clear_marks(reconcile: Reconcile) -> Perform | None:
    """Return the effect that gives pods their deletion cost back where they outlived their mark, and that can be."""
    for progress in reconcile.status.steps:
        step = reconcile.plan.steps[progress.index]
        unmark = _unmark(reconcile, step, progress) if isinstance(step, MarkVictims) else None
        if unmark is not None and (MarkPods, unmark.deployment) not in reconcile.leftovers:
            return Perform(unmark, reconcile.leftovers)
    return None


def _undo(reconcile: Reconcile, step: Step, progress: StepProgress) -> Move:
    match step:
        case StartConsumers() | StopConsumers():
            return _undo_count(reconcile, step, progress)
        case UpdateTemplate():
            return _undo_template(reconcile, step, progress)
        case MarkVictims():
            unmark = _unmark(reconcile, step, progress)
            return _note_undone(reconcile, progress) if unmark is None else Perform(unmark)
        case CreateDeployment():
            return _undo_create(reconcile, step, progress)
        case SetAutoscaler():
            return _undo_scaler(reconcile, step, progress)
        case _:
            return _note_undone(reconcile, progress)


def _note_undone(reconcile: Reconcile, progress: StepProgress) -> Write:
    return reconcile.renew(replace(progress, undone_at=reconcile.now))


def _wait_or_stuck(reconcile: Reconcile, step: Step, progress: StepProgress, why: str) -> Move:
    since = progress.undo_since or reconcile.now
    if reconcile.past(since, step.time_limit_seconds):
        return reconcile.stuck(f"step {progress.index + 1} was not undone within {step.time_limit_seconds} s: {why}")
    return reconcile.wait(why, since + timedelta(seconds=step.time_limit_seconds))


def _undo_count(reconcile: Reconcile, step: StartConsumers | StopConsumers, progress: StepProgress) -> Move:
    deployment = _ours(reconcile, step, progress)
    if not isinstance(deployment, DeploymentObservation):
        return deployment
    assert deployment.facts is not None
    if not _has_undone(deployment, progress):
        # Also where the effect never came in: a request of ours that is still on its way must find another version.
        return _count_back(reconcile, step, progress, deployment)
    if deployment.facts.replicas != step.from_replicas:
        return reconcile.stuck(
            f"somebody set {deployment.title} to {deployment.facts.replicas} replicas, which is left so"
        )
    if isinstance(step, StopConsumers) and (deployment.ready is None or deployment.ready < step.from_replicas):
        why = f"{deployment.ready} of {step.from_replicas} pods of {deployment.title} are ready again"
        return _wait_or_stuck(reconcile, step, progress, why)
    return _note_undone(reconcile, progress)


def _ours(reconcile: Reconcile, step: _Undoable, progress: StepProgress) -> DeploymentObservation | Move:
    """Return the step's Deployment, which is there, or the move for one that is unknown, gone or not ours."""
    name = deployment_of(reconcile.plan, step)
    deployment = reconcile.observation.deployment(name)
    if deployment is None:
        return _wait_or_stuck(reconcile, step, progress, f"{with_kind(reconcile.plan, name)} could not be read")
    if (foreign := foreign_change(reconcile)) is not None:
        return reconcile.stuck(foreign)
    return deployment if deployment.facts is not None else reconcile.stuck(f"{with_kind(reconcile.plan, name)} is gone")


def _has_undone(deployment: DeploymentObservation, progress: StepProgress) -> bool:
    return deployment.claim is not None and deployment.claim.has_undone(progress.index)


def _count_back(
    reconcile: Reconcile,
    step: StartConsumers | StopConsumers,
    progress: StepProgress,
    deployment: DeploymentObservation,
) -> Move:
    facts = deployment.facts
    assert facts is not None
    left, now, floor = (
        ready_after(reconcile, deployment.name, step.from_replicas),
        ready_now(reconcile),
        fewest_ready(reconcile.plan),
    )
    if left is None or now is None:
        return _wait_or_stuck(reconcile, step, progress, f"the pods of {deployment.title} could not be read")
    if left < min(floor, now):
        return _wait_or_stuck(reconcile, step, progress, f"only {left} consumers would stay ready, {floor} must")
    claim = Claim(reconcile.key, progress.index, is_undoing=True)
    return Perform(
        SetReplicas(deployment.name, step.from_replicas, claim, facts.resource_version, facts.kind, facts.api_version)
    )


def _undo_template(reconcile: Reconcile, step: UpdateTemplate, progress: StepProgress) -> Move:
    deployment = _ours(reconcile, step, progress)
    if not isinstance(deployment, DeploymentObservation):
        return deployment
    assert deployment.facts is not None
    claim, version = Claim(reconcile.key, progress.index, is_undoing=True), deployment.facts.resource_version
    if not _has_undone(deployment, progress):
        if deployment.claim is not None and deployment.claim.mark < progress.index:
            # Its effect never came in; one that comes yet must find another version. A later step's mark shows it did.
            return Perform(SetClaim(deployment.name, claim, version))
        return Perform(RestoreTemplate(deployment.name, step.from_revision, claim, version))
    facts = deployment.facts
    if not facts.is_observed or facts.updated != facts.replicas or deployment.ready != facts.replicas:
        why = f"{deployment.ready} pods are ready, {facts.updated} of {facts.replicas} have the old template"
        return _wait_or_stuck(reconcile, step, progress, why)
    if _another_comes_back(reconcile, progress) and (left := _left_over(reconcile, facts)) is not None:
        return _wait_or_stuck(reconcile, step, progress, left)
    return _note_undone(reconcile, progress)


def _another_comes_back(reconcile: Reconcile, progress: StepProgress) -> bool:
    earlier = (
        reconcile.plan.steps[begun.index] for begun in _steps_to_undo(reconcile.status) if begun.index < progress.index
    )
    return any(isinstance(step, UpdateTemplate) for step in earlier)


def _left_over(reconcile: Reconcile, facts: Deployment) -> str | None:
    """Return what is left of a template that was taken back, ``None`` once nothing is.

    Pods that are about to end, and members that ended without a word, must not meet those of a template before it: two
    rolls are there as the first and the last of their lists have no assignor in common (INCONSISTENT_GROUP_PROTOCOL).
    """
    if facts.pods is None:
        return f"the pods of {facts.title} could not be read"
    present = sum(not pod.has_finished for pod in facts.pods)
    if present > facts.replicas:
        return f"{present} pods of {facts.title} are there, {facts.replicas} are to stay"
    name = reconcile.plan.group.group
    group = fresh_group(reconcile.observation, name)
    if group is None or group.members is None:
        return f"the members of group {name} could not be read"
    if len(group.members) > facts.replicas:
        return f"group {name} has {len(group.members)} members, {facts.replicas} are to stay"
    return None


def _undo_create(reconcile: Reconcile, step: CreateDeployment, progress: StepProgress) -> Move:
    deployment = reconcile.observation.deployment(step.deployment)
    if deployment is None:
        return _wait_or_stuck(reconcile, step, progress, f"Deployment {step.deployment} could not be read")
    if deployment.facts is None or deployment.claim is None or deployment.claim.plan != reconcile.key:
        return _note_undone(reconcile, progress)
    if deployment.facts.pods is None or deployment.facts.replicas:
        return _wait_or_stuck(reconcile, step, progress, f"Deployment {step.deployment} still has pods")
    return Perform(Delete(deployment.name, deployment.facts.uid, deployment.facts.resource_version))


def _undo_scaler(reconcile: Reconcile, step: SetAutoscaler, progress: StepProgress) -> Move:
    scaler = find_scaler(reconcile, step)
    if isinstance(scaler, str):
        return _wait_or_stuck(reconcile, step, progress, scaler)
    if scaler is None:
        return _note_undone(reconcile, progress)
    claim = our_claim(reconcile, scaler)
    if claim is not None and claim.has_undone(progress.index):
        return _note_undone(reconcile, progress)
    if state_of_scaler(scaler) not in (step.before, step.after):
        return reconcile.stuck(f"somebody set {step.named} to {state_of_scaler(scaler)}, which is left so")
    # Also where the effect never came in: a request of ours that is still on its way must find another version.
    return Perform(set_scaler(reconcile, step, step.before, Claim(reconcile.key, progress.index, is_undoing=True)))


def _unmark(reconcile: Reconcile, step: MarkVictims, progress: StepProgress) -> MarkPods | None:
    deployment = reconcile.observation.deployment(deployment_of(reconcile.plan, step))
    before = {pod.name: pod.deletion_cost for pod in progress.pods_before}
    pods = tuple(
        (pod.name, pod.uid, before.get(pod.name, 0))
        for pod in (deployment.live_pods if deployment else None) or ()
        if pod.name in step.pods and pod.deletion_cost == step.deletion_cost != before.get(pod.name, 0)
    )
    return MarkPods(deployment.name, pods) if deployment and pods else None
