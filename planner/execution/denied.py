"""An effect that the server answered and did not have: tried again, but never for ever. Each end is bounded by a time
in the status, and says why.

A request without any answer is no matter of this module: then the status cannot be written either, and a later
reconcile tries the same effect again.
"""

from datetime import datetime, timedelta
from typing import Final

from planner.execution.backward import begin_undo, step_to_undo
from planner.execution.effects import DropClaim, Effect, MarkPods
from planner.execution.engine import decide
from planner.execution.moves import Move, Perform, Reconcile
from planner.execution.observation import Observation
from planner.execution.phases import Phase
from planner.execution.plan_targets import deployment_of, with_kind
from planner.execution.ports import ConflictError, DeniedError, ImpossibleError, StoredPlan
from planner.rollout.steps import UpdateTemplate

CONTESTED_AFTER: Final = timedelta(seconds=10)
"""A conflict or two belong to every rollout, as controllers write too; one so long after the first try is reported."""
TIDY_S: Final = 60
"""Seconds for which a plan that is over tries to give a Deployment free. A claim that stays binds no other plan."""


def decide_denied(
    stored: StoredPlan, observation: Observation, denied: Perform, error: ConflictError | DeniedError, now: datetime
) -> Move | None:
    """Return the move after an effect that was denied; ``None`` where the next reconcile just tries again.

    A plan that is over may have another effect to try: what one request is denied does not keep the next one back.
    """
    reconcile = Reconcile(stored, observation, now, denied.leftovers)
    if reconcile.status.phase is Phase.RUNNING:
        return _not_done(reconcile, error)
    if reconcile.status.phase is Phase.ABORTING and step_to_undo(reconcile) is not None:
        return _not_undone(reconcile, error)
    return _not_tidied(reconcile, denied.effect, error)


def _not_done(reconcile: Reconcile, error: ConflictError | DeniedError) -> Move | None:
    """What is tried again is bounded by the step's own limit, before its effect."""
    progress = reconcile.status.current
    assert progress is not None
    if isinstance(error, ImpossibleError):
        return begin_undo(reconcile, f"step {progress.index + 1} cannot be done: {error}")
    trying_since = progress.started_at + timedelta(seconds=progress.paused_s)
    if isinstance(error, ConflictError) and reconcile.now - trying_since < CONTESTED_AFTER:
        return None
    return reconcile.wait(str(error))


def _not_undone(reconcile: Reconcile, error: ConflictError | DeniedError) -> Move | None:
    progress = step_to_undo(reconcile)
    assert progress is not None
    assert progress.undo_since is not None
    number, limit_s = progress.index + 1, reconcile.plan.steps[progress.index].time_limit_seconds
    if isinstance(error, ImpossibleError):
        return reconcile.stuck(f"step {number} cannot be undone: {error}")
    if reconcile.past(progress.undo_since, limit_s):
        return reconcile.stuck(f"step {number} was not undone within {limit_s} s: {error}")
    return None if isinstance(error, ConflictError) else reconcile.wait(str(error))


def _not_tidied(reconcile: Reconcile, effect: Effect, error: ConflictError | DeniedError) -> Move | None:
    """A plan that is over ends without having tidied up, and says so; one that is about to begin waits."""
    if not isinstance(effect, DropClaim | MarkPods):
        return None if isinstance(error, ConflictError) else reconcile.wait(str(error), reconcile.plan.valid_until)
    if not reconcile.past(_over_since(reconcile), TIDY_S):
        return None if isinstance(error, ConflictError) else reconcile.wait(str(error))
    leftovers = {
        **reconcile.leftovers,
        (type(effect), effect.deployment): f"{_words_of_leftover(reconcile, effect)}: {error}",
    }
    return decide(reconcile.stored, reconcile.observation, reconcile.now, leftovers)


def _words_of_leftover(reconcile: Reconcile, effect: DropClaim | MarkPods) -> str:
    """Return in words what is left behind without the effect."""
    name = effect.deployment
    named = with_kind(reconcile.plan, name)
    if isinstance(effect, MarkPods):
        return f"a pod's deletion cost stays on {named}"
    updates = (step for step in reconcile.plan.steps if isinstance(step, UpdateTemplate))
    if any(deployment_of(reconcile.plan, step) == name for step in updates):
        return f"the plan's claim stays on {named}, and so do the limits of its update"
    return f"the plan's claim stays on {named}"


def _over_since(reconcile: Reconcile) -> datetime:
    """Return since when nothing is left to do but to tidy up, or the latest time from which that can be."""
    status = reconcile.status
    if status.phase is Phase.APPROVED:
        return reconcile.plan.valid_until
    if status.verdict is not None:
        return status.verdict.judged_at
    return max((step.undone_at for step in status.steps if step.undone_at), default=status.phase_since or reconcile.now)
