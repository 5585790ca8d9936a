"""A plan that runs: which move brings it one step on, or begins its undo."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from planner.execution import drift
from planner.execution.backward import begin_undo, why_irreversible
from planner.execution.checks import state_of
from planner.execution.effects import Create, Delete, Effect, MarkPods, SetReplicas, SetTemplate, offsets_to_set
from planner.execution.fence import foreign_change, foreign_undo, ready_after
from planner.execution.group_drift import in_use
from planner.execution.marks import LostMarks, lost_marks, others_marked
from planner.execution.moves import Move, Perform, Reconcile, Write
from planner.execution.observation import Claim, DeploymentObservation
from planner.execution.phases import Phase
from planner.execution.plan_targets import deployment_of, fewest_ready, offsets_group, with_kind
from planner.execution.progress import PodBefore, StepProgress
from planner.execution.scalers import set_scaler
from planner.execution.states import Finished, Impossible, Missing, Unfinished
from planner.model.pods import Pod
from planner.rollout.explain import tell_step
from planner.rollout.steps import (
    CheckForecast,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    OffsetStep,
    ResetOffsets,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)

_OnDeployment = StartConsumers | StopConsumers | MarkVictims | UpdateTemplate | DeleteDeployment
REMARK_FOR: Final = timedelta(seconds=15)
"""For how long pods are marked again whose deletion cost another writer sets: one that goes on would win anyway."""
MARKS_STAY_FOR: Final = timedelta(seconds=5)
"""How much longer marks that were lost must stay untouched before the stop: a ReplicaSet reads them a moment after."""

EffectStep = _OnDeployment | CreateDeployment | SetAutoscaler | OffsetStep


def decide_running(reconcile: Reconcile) -> Move:
    """Return the next move of a plan in ``RUNNING``."""
    if (ended := _interruption(reconcile)) is not None:
        return ended
    if reconcile.stored.requests.pause:
        return reconcile.enter(Phase.PAUSED, "paused by a person")
    index = reconcile.status.step
    rest = reconcile.plan.steps[index:]
    if all(isinstance(step, CheckForecast) for step in rest):
        return reconcile.enter(Phase.VERIFYING, "all steps are done: the forecast is compared with what was observed")
    if reconcile.status.current is None:
        return _begin(reconcile, index, rest[0])
    return _go_on(reconcile, rest[0], reconcile.status.current)


def decide_paused(reconcile: Reconcile) -> Move:
    """Return the next move of a plan in ``PAUSED``: none, until a person resumes or aborts it."""
    if (ended := _interruption(reconcile)) is not None:
        return ended
    if reconcile.stored.requests.pause:
        return reconcile.wait("paused by a person")
    resumed = reconcile.status.enter(Phase.RUNNING, "resumed by a person", reconcile.now)
    current, since = reconcile.status.current, reconcile.status.phase_since
    if current is not None and since is not None:
        spent = max(0.0, (reconcile.now - since).total_seconds())
        resumed = resumed.with_step(replace(current, paused_s=current.paused_s + spent))
    return Write(resumed, reason="Resumed")


def _interruption(reconcile: Reconcile) -> Move | None:
    """Return the move that stops the plan from going on; ``None`` while nothing stops it."""
    if (wrong := reconcile.edited or foreign_change(reconcile)) is not None:
        return reconcile.stuck(wrong)
    if (undone := foreign_undo(reconcile)) is not None:
        return begin_undo(reconcile, undone)
    return _abort(reconcile) if reconcile.is_to_end else None


def _abort(reconcile: Reconcile) -> Move | None:
    if (passed := why_irreversible(reconcile)) is None:
        return begin_undo(reconcile, "aborted by a person")
    current = reconcile.status.current
    if (
        current
        and isinstance(reconcile.plan.steps[current.index], OffsetStep)
        and reconcile.observation.offsets_fingerprint is None
    ):
        return None  # whether it comes too late shows once the brokers answer; until then nothing is set
    if passed not in reconcile.status.surprises:
        surprises = (*reconcile.status.surprises, passed)
        return Write(replace(reconcile.status, surprises=surprises, message=passed, held=None), reason="AbortTooLate")
    return None


def _begin(reconcile: Reconcile, index: int, step: Step) -> Move:
    """Write down that the step begins, before its effect: the next executor then knows its undo."""
    pods: tuple[Pod, ...] | None = ()
    if isinstance(step, StopConsumers | MarkVictims):
        deployment = reconcile.observation.deployment(deployment_of(reconcile.plan, step))
        pods = deployment.live_pods if deployment else None
    if pods is None:
        return _wait_or_undo(reconcile, step, _waiting_since(reconcile), "the pods could not be read")
    kept = [pod for pod in pods if not isinstance(step, MarkVictims) or pod.name in step.pods]
    before = tuple(PodBefore(pod.name, pod.deletion_cost) for pod in sorted(kept, key=lambda pod: pod.name))
    begun = reconcile.status.begin(StepProgress(index, step.kind, reconcile.now, pods_before=before))
    message = f"step {index + 1} of {len(reconcile.plan.steps)}: {tell_step(step, reconcile.plan.group.system)}"
    return Write(replace(begun, message=message), reason="StepBegun")


def _waiting_since(reconcile: Reconcile) -> datetime:
    """Return when the step that comes next could have begun: when the last one ended, or the plan went on."""
    finished_at = [step.finished_at for step in reconcile.status.steps if step.finished_at is not None]
    return max([reconcile.status.phase_since or reconcile.now, *finished_at[-1:]])


def _go_on(reconcile: Reconcile, step: Step, progress: StepProgress) -> Move:
    state = state_of(reconcile, step, progress)
    since = progress.started_at + timedelta(seconds=progress.paused_s)
    match state:
        case Finished():
            return _finish(reconcile, progress, state)
        case Impossible():
            return begin_undo(reconcile, f"step {progress.index + 1} cannot be done: {state.why}")
        case Unfinished(progress=StepProgress() as renewed) if not reconcile.past(since, step.time_limit_seconds):
            return reconcile.renew(renewed)
        case Unfinished():
            return _wait_or_undo(reconcile, step, since, state.why)
        case Missing():
            return _effect(reconcile, step, progress, since)


def _finish(reconcile: Reconcile, progress: StepProgress, state: Finished) -> Write:
    # The pods before a stop are of no use after it, and a status must stay small; marks need it for their undo.
    before = progress.pods_before if isinstance(reconcile.plan.steps[progress.index], MarkVictims) else ()
    done = replace(
        progress, finished_at=reconcile.now, seen=None, seen_at=None, pods_before=before, message=state.message
    )
    message = f"step {progress.index + 1} is done: {state.message}"
    status = replace(reconcile.status.with_step(done), held=None, message=message)
    if state.deviation is not None:
        status = replace(status, surprises=(*status.surprises, state.deviation))
    return Write(status, reason="StepDone")


def _wait_or_undo(reconcile: Reconcile, step: Step, since: datetime, why: str) -> Move:
    """Wait, but begin the undo once the step's time is over."""
    if reconcile.past(since, step.time_limit_seconds):
        return begin_undo(reconcile, f"{step.kind} was not done within {step.time_limit_seconds} s: {why}")
    return reconcile.wait(why, since + timedelta(seconds=step.time_limit_seconds))


def _effect(reconcile: Reconcile, step: Step, progress: StepProgress, since: datetime) -> Move:
    """Have the step's effect, if the cluster still is as the plan needs it. A late one is not begun any more."""
    assert isinstance(step, EffectStep)
    if reconcile.past(since, step.time_limit_seconds):
        why = reconcile.status.held or "its time was over before it began"
        return begin_undo(reconcile, f"{step.kind} could not be done within {step.time_limit_seconds} s: {why}")
    differences = (
        drift.before_start(reconcile) if drift.is_first_effect(reconcile) else drift.before_later_effect(reconcile)
    )
    if differences.refusals:
        reasons = "; ".join(refusal.sentence for refusal in differences.refusals)
        return begin_undo(
            reconcile, f"the plan no longer fits before step {progress.index + 1}: {reasons}", differences.refusals
        )
    for why in (*differences.unknowns, *_not_yet(reconcile, step)):
        return _wait_or_undo(reconcile, step, since, why)
    if isinstance(step, StopConsumers) and (move := _keep_marks(reconcile, step, progress, since)) is not None:
        return move
    if isinstance(step, OffsetStep) and progress.seen is None:
        # Brokers are written to one after the other: only the offsets from before show whether anything is in.
        return reconcile.renew(replace(progress, seen=reconcile.observation.offsets_fingerprint))
    return Perform(_effect_of(reconcile, step, progress.index))


def _keep_marks(reconcile: Reconcile, step: StopConsumers, progress: StepProgress, since: datetime) -> Move | None:
    """Return what must be done before a stop goes by the deletion costs, ``None`` once it can.

    Where another writer gave marked pods another cost, they are marked again, and stop once they have kept it for a
    while: whoever writes each time that it changes would else come between the stop and the ReplicaSet.
    """
    lost = lost_marks(reconcile, step)
    if lost is not None:
        return _restore_marks(reconcile, step, progress, since, lost)
    if progress.seen_at is None or reconcile.now >= (until := progress.seen_at + REMARK_FOR + MARKS_STAY_FOR):
        return None
    return reconcile.wait("the pods are marked again; none stops before it is seen that they stay so", until)


def _restore_marks(
    reconcile: Reconcile, step: StopConsumers, progress: StepProgress, since: datetime, lost: LostMarks
) -> Move:
    """Say who gave the pods another deletion cost, then give them the plan's again; whoever goes on is not fought."""
    if progress.seen_at is None:
        surprises = (*reconcile.status.surprises, f"{lost.changes}: marked again")
        noted = reconcile.status.with_step(replace(progress, seen_at=reconcile.now))
        return Write(replace(noted, surprises=surprises, message=surprises[-1]), reason="MarksLost")
    if reconcile.now < progress.seen_at + REMARK_FOR:
        return Perform(lost.effect)
    return _wait_or_undo(reconcile, step, since, f"{lost.changes}, and does so again: keep it from these pods")


def _not_yet(reconcile: Reconcile, step: EffectStep) -> tuple[str, ...]:
    """Return what must be waited for before the effect."""
    match step:
        case StopConsumers():
            return (*_too_few(reconcile, step), *others_marked(reconcile, step))
        case UpdateTemplate():
            deployment = _known_deployment(reconcile, deployment_of(reconcile.plan, step))
            mismatch = f"{deployment.title} is at revision {deployment.revision}, the step expects {step.from_revision}"
            return () if deployment.revision == step.from_revision else (mismatch,)
        case DeleteDeployment():
            facts = _known_deployment(reconcile, step.deployment).facts
            is_empty = facts is not None and facts.replicas == 0 and facts.pods == ()
            return () if is_empty else (f"Deployment {step.deployment} still has pods",)
        case _ if isinstance(step, OffsetStep):
            return _not_set(reconcile, step)
        case _:
            return ()


def _too_few(reconcile: Reconcile, step: StopConsumers) -> tuple[str, ...]:
    """All pods must be ready: else those that are not would go before the victims, and too few would be left."""
    name = deployment_of(reconcile.plan, step)
    deployment = reconcile.observation.deployment(name)
    left = ready_after(reconcile, name, step.to_replicas)
    if deployment is None or deployment.facts is None or deployment.ready is None or left is None:
        return (f"the pods of {with_kind(reconcile.plan, name)} could not be read",)
    if deployment.ready != step.from_replicas:
        return (f"{deployment.ready} of {step.from_replicas} pods of {with_kind(reconcile.plan, name)} are ready",)
    floor = fewest_ready(reconcile.plan)
    return () if left >= floor else (f"only {left} consumers would stay ready, {floor} must",)


def _not_set(reconcile: Reconcile, step: OffsetStep) -> tuple[str, ...]:
    if step.confirmation not in reconcile.stored.requests.confirmed:
        return (f"nobody has typed {step.confirmation!r}",)
    return tuple(str(getattr(why, "sentence", why)) for why in in_use(reconcile, offsets_group(step)))


def _effect_of(reconcile: Reconcile, step: EffectStep, index: int) -> Effect:
    claim = Claim(reconcile.key, index)
    match step:
        case SetAutoscaler():
            return set_scaler(reconcile, step, step.after, claim)
        case CloneOffsets() | ResetOffsets():
            return offsets_to_set(reconcile.plan, reconcile.key, step)
        case CreateDeployment():
            return Create(step.deployment, step, step.origin or reconcile.plan.deployment, claim)
        case _:
            return _effect_on(_known_deployment(reconcile, deployment_of(reconcile.plan, step)), step, claim)


def _effect_on(deployment: DeploymentObservation, step: _OnDeployment, claim: Claim) -> Effect:
    assert deployment.facts is not None
    facts, version = deployment.facts, deployment.facts.resource_version
    match step:
        case StartConsumers() | StopConsumers():
            return SetReplicas(deployment.name, step.to_replicas, claim, version, facts.kind, facts.api_version)
        case UpdateTemplate():
            return SetTemplate(deployment.name, step, claim, version)
        case MarkVictims():
            pods = [pod for pod in deployment.live_pods or () if pod.name in step.pods]
            return MarkPods(deployment.name, tuple((pod.name, pod.uid, step.deletion_cost) for pod in pods))
        case DeleteDeployment():
            return Delete(deployment.name, facts.uid, version)


def _known_deployment(reconcile: Reconcile, name: str) -> DeploymentObservation:
    deployment = reconcile.observation.deployment(name)
    if deployment is None or deployment.facts is None:
        raise ValueError(f"an effect on Deployment {name}, which was not seen")
    return deployment
