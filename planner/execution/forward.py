"""A plan that runs: which move brings it one step on, or makes it turn back."""

from dataclasses import replace
from datetime import datetime, timedelta

from planner.execution import drift
from planner.execution.backward import late, turn_back
from planner.execution.checks import state_of
from planner.execution.course import deployment_of, fewest_ready, offsets_group
from planner.execution.effects import Create, Delete, Effect, MarkPods, SetReplicas, SetTemplate, offsets_to_set
from planner.execution.fence import overruled, ready_after, taken_back
from planner.execution.group_drift import in_use
from planner.execution.look import Claim, DeploymentLook
from planner.execution.moves import Move, Perform, Turn, Write
from planner.execution.phases import Phase
from planner.execution.progress import PodBefore, StepProgress
from planner.execution.scalers import set_scaler
from planner.execution.states import Finished, Hopeless, Missing, Unfinished
from planner.model.deployments import Pod
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
EffectStep = _OnDeployment | CreateDeployment | SetAutoscaler | OffsetStep


def running(turn: Turn) -> Move:
    """Return the next move of a plan in ``RUNNING``."""
    if (ended := _interrupted(turn)) is not None:
        return ended
    if turn.stored.requests.pause:
        return turn.enter(Phase.PAUSED, "paused by a person")
    index = turn.status.step
    rest = turn.plan.steps[index:]
    if all(isinstance(step, CheckForecast) for step in rest):
        return turn.enter(Phase.VERIFYING, "all steps are done: the forecast is held against what was seen")
    if turn.status.current is None:
        return _begin(turn, index, rest[0])
    return _go_on(turn, rest[0], turn.status.current)


def paused(turn: Turn) -> Move:
    """Return the next move of a plan in ``PAUSED``: none, until a person resumes or aborts it."""
    if (ended := _interrupted(turn)) is not None:
        return ended
    if turn.stored.requests.pause:
        return turn.hold("paused by a person")
    resumed = turn.status.enter(Phase.RUNNING, "resumed by a person", turn.now)
    current, since = turn.status.current, turn.status.phase_since
    if current is not None and since is not None:
        spent = max(0.0, (turn.now - since).total_seconds())
        resumed = resumed.with_step(replace(current, paused_s=current.paused_s + spent))
    return Write(resumed, reason="Resumed")


def _interrupted(turn: Turn) -> Move | None:
    """Return the move that ends the way forward; ``None`` while nobody stands in it."""
    if (wrong := turn.edited or overruled(turn)) is not None:
        return turn.stuck(wrong)
    if (undone := taken_back(turn)) is not None:
        return turn_back(turn, undone)
    return _aborted(turn) if turn.is_to_end else None


def _aborted(turn: Turn) -> Move | None:
    if (passed := late(turn)) is None:
        return turn_back(turn, "aborted by a person")
    current = turn.status.current
    if current and isinstance(turn.plan.steps[current.index], OffsetStep) and turn.look.offsets_seen is None:
        return None  # whether it comes too late shows once the brokers answer; until then nothing is set
    if passed not in turn.status.surprises:
        surprises = (*turn.status.surprises, passed)
        return Write(replace(turn.status, surprises=surprises, message=passed, held=None), reason="AbortTooLate")
    return None


def _begin(turn: Turn, index: int, step: Step) -> Move:
    """Write down that the step begins, before its effect: whoever comes next then knows its undo."""
    pods: tuple[Pod, ...] | None = ()
    if isinstance(step, StopConsumers | MarkVictims):
        found = turn.look.deployment(deployment_of(turn.plan, step))
        pods = found.live_pods if found else None
    if pods is None:
        return _limited(turn, step, _waiting_since(turn), "the pods could not be read")
    kept = [pod for pod in pods if not isinstance(step, MarkVictims) or pod.name in step.pods]
    before = tuple(PodBefore(pod.name, pod.deletion_cost) for pod in sorted(kept, key=lambda pod: pod.name))
    begun = turn.status.begin(StepProgress(index, step.kind, turn.now, pods_before=before))
    told = f"step {index + 1} of {len(turn.plan.steps)}: {tell_step(step, turn.plan.group.system)}"
    return Write(replace(begun, message=told), reason="StepBegun")


def _waiting_since(turn: Turn) -> datetime:
    """Return when the step that comes next could have begun: when the last one ended, or the plan went on."""
    ends = [step.finished_at for step in turn.status.steps if step.finished_at is not None]
    return max([turn.status.phase_since or turn.now, *ends[-1:]])


def _go_on(turn: Turn, step: Step, progress: StepProgress) -> Move:
    state = state_of(turn, step, progress)
    since = progress.started_at + timedelta(seconds=progress.paused_s)
    match state:
        case Finished():
            return _finish(turn, progress, state)
        case Hopeless():
            return turn_back(turn, f"step {progress.index + 1} cannot be done: {state.why}")
        case Unfinished(progress=StepProgress() as renewed) if not turn.past(since, step.time_limit_seconds):
            return turn.renew(renewed)
        case Unfinished():
            return _limited(turn, step, since, state.why)
        case Missing():
            return _effect(turn, step, progress, since)


def _finish(turn: Turn, progress: StepProgress, state: Finished) -> Write:
    # Who was there before a stop is of no use after it, and a status must stay small; marks need it for their undo.
    before = progress.pods_before if isinstance(turn.plan.steps[progress.index], MarkVictims) else ()
    done = replace(progress, finished_at=turn.now, seen=None, seen_at=None, pods_before=before, message=state.message)
    told = f"step {progress.index + 1} is done: {state.message}"
    status = replace(turn.status.with_step(done), held=None, message=told)
    if state.surprise is not None:
        status = replace(status, surprises=(*status.surprises, state.surprise))
    return Write(status, reason="StepDone")


def _limited(turn: Turn, step: Step, since: datetime, why: str) -> Move:
    """Hold, but turn back once the step's time is over."""
    if turn.past(since, step.time_limit_seconds):
        return turn_back(turn, f"{step.kind} was not done within {step.time_limit_seconds} s: {why}")
    return turn.hold(why, since + timedelta(seconds=step.time_limit_seconds))


def _effect(turn: Turn, step: Step, progress: StepProgress, since: datetime) -> Move:
    """Have the step's effect, if the world still is as the plan needs it. What would be late is not begun any more."""
    assert isinstance(step, EffectStep)
    if turn.past(since, step.time_limit_seconds):
        why = turn.status.held or "its time was over before it began"
        return turn_back(turn, f"{step.kind} could not be done within {step.time_limit_seconds} s: {why}")
    found = drift.before_start(turn) if drift.is_first_effect(turn) else drift.under_way(turn)
    if found.refusals:
        reasons = "; ".join(refusal.sentence for refusal in found.refusals)
        return turn_back(turn, f"the plan no longer fits before step {progress.index + 1}: {reasons}", found.refusals)
    for why in (*found.unknowns, *_not_yet(turn, step)):
        return _limited(turn, step, since, why)
    if isinstance(step, OffsetStep) and progress.seen is None:
        # Brokers are written to one after the other: only what was there before tells whether anything is in.
        return turn.renew(replace(progress, seen=turn.look.offsets_seen))
    return Perform(_effect_of(turn, step, progress.index))


def _not_yet(turn: Turn, step: EffectStep) -> tuple[str, ...]:
    """Return what must be waited for before the effect."""
    match step:
        case StopConsumers():
            return _too_few(turn, step)
        case UpdateTemplate():
            found = _known(turn, deployment_of(turn.plan, step))
            told = f"Deployment {found.name} is at revision {found.revision}, the step expects {step.from_revision}"
            return () if found.revision == step.from_revision else (told,)
        case DeleteDeployment():
            facts = _known(turn, step.deployment).facts
            is_empty = facts is not None and facts.replicas == 0 and facts.pods == ()
            return () if is_empty else (f"Deployment {step.deployment} still has pods",)
        case _ if isinstance(step, OffsetStep):
            return _not_set(turn, step)
        case _:
            return ()


def _too_few(turn: Turn, step: StopConsumers) -> tuple[str, ...]:
    """All pods must be ready: else those that are not would go before the victims, and too few would be left."""
    name = deployment_of(turn.plan, step)
    found = turn.look.deployment(name)
    left = ready_after(turn, name, step.to_replicas)
    if found is None or found.facts is None or found.ready is None or left is None:
        return (f"the pods of Deployment {name} could not be read",)
    if found.ready != step.from_replicas:
        return (f"{found.ready} of {step.from_replicas} pods of Deployment {name} are ready",)
    floor = fewest_ready(turn.plan)
    return () if left >= floor else (f"only {left} consumers would stay ready, {floor} must",)


def _not_set(turn: Turn, step: OffsetStep) -> tuple[str, ...]:
    if step.confirmation not in turn.stored.requests.confirmed:
        return (f"nobody has typed {step.confirmation!r}",)
    return tuple(str(getattr(why, "sentence", why)) for why in in_use(turn, offsets_group(step)))


def _effect_of(turn: Turn, step: EffectStep, index: int) -> Effect:
    claim = Claim(turn.key, index)
    match step:
        case SetAutoscaler():
            return set_scaler(turn, step, step.after, claim)
        case CloneOffsets() | ResetOffsets():
            return offsets_to_set(turn.plan, turn.key, step)
        case CreateDeployment():
            return Create(step.deployment, step, step.origin or turn.plan.deployment, claim)
        case _:
            return _effect_on(_known(turn, deployment_of(turn.plan, step)), step, claim)


def _effect_on(found: DeploymentLook, step: _OnDeployment, claim: Claim) -> Effect:
    assert found.facts is not None
    version = found.facts.resource_version
    match step:
        case StartConsumers() | StopConsumers():
            return SetReplicas(found.name, step.to_replicas, claim, version)
        case UpdateTemplate():
            return SetTemplate(found.name, step, claim, version)
        case MarkVictims():
            pods = [pod for pod in found.live_pods or () if pod.name in step.pods]
            return MarkPods(found.name, tuple((pod.name, pod.uid, step.deletion_cost) for pod in pods))
        case DeleteDeployment():
            return Delete(found.name, found.facts.uid, version)


def _known(turn: Turn, name: str) -> DeploymentLook:
    found = turn.look.deployment(name)
    if found is None or found.facts is None:
        raise ValueError(f"an effect on Deployment {name}, which was not seen")
    return found
