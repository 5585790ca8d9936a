"""An effect that the server answered and did not have: tried again, but never for ever. Each end is bounded by a time
in the status, and says why.

What was not answered at all is no matter of this module: then the status cannot be written either, and a later turn
tries the same effect again.
"""

from datetime import datetime, timedelta
from typing import Final

from planner.execution.backward import turn_back, undoing
from planner.execution.course import deployment_of
from planner.execution.effects import DropClaim, Effect, MarkPods
from planner.execution.engine import decide
from planner.execution.look import Look
from planner.execution.moves import Move, Perform, Turn
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, DeniedError, ImpossibleError, StoredPlan
from planner.rollout.steps import UpdateTemplate

CONTESTED_AFTER: Final = timedelta(seconds=10)
"""A conflict or two belong to every rollout, as controllers write too; one so long after the first try is told."""
TIDY_S: Final = 60
"""Seconds for which a plan that is over tries to give a Deployment free. A claim that stays binds nobody."""


def decide_denied(
    stored: StoredPlan, look: Look, denied: Perform, error: ConflictError | DeniedError, now: datetime
) -> Move | None:
    """Return the move after an effect that was not had; ``None`` where the next turn just tries again.

    A plan that is over may have another effect to try: what one request is denied does not keep the next one back.
    """
    turn = Turn(stored, look, now, denied.untidy)
    if turn.status.phase is Phase.RUNNING:
        return _not_done(turn, error)
    if turn.status.phase is Phase.ABORTING and undoing(turn) is not None:
        return _not_undone(turn, error)
    return _not_tidied(turn, denied.effect, error)


def _not_done(turn: Turn, error: ConflictError | DeniedError) -> Move | None:
    """What is tried again is bounded by the step's own limit, before its effect."""
    progress = turn.status.current
    assert progress is not None
    if isinstance(error, ImpossibleError):
        return turn_back(turn, f"step {progress.index + 1} cannot be done: {error}")
    trying_since = progress.started_at + timedelta(seconds=progress.paused_s)
    if isinstance(error, ConflictError) and turn.now - trying_since < CONTESTED_AFTER:
        return None
    return turn.hold(str(error))


def _not_undone(turn: Turn, error: ConflictError | DeniedError) -> Move | None:
    progress = undoing(turn)
    assert progress is not None
    assert progress.undo_since is not None
    number, limit_s = progress.index + 1, turn.plan.steps[progress.index].time_limit_seconds
    if isinstance(error, ImpossibleError):
        return turn.stuck(f"step {number} cannot be undone: {error}")
    if turn.past(progress.undo_since, limit_s):
        return turn.stuck(f"step {number} was not undone within {limit_s} s: {error}")
    return None if isinstance(error, ConflictError) else turn.hold(str(error))


def _not_tidied(turn: Turn, effect: Effect, error: ConflictError | DeniedError) -> Move | None:
    """A plan that is over ends without having tidied up, and says so; one that is about to begin waits."""
    if not isinstance(effect, DropClaim | MarkPods):
        return None if isinstance(error, ConflictError) else turn.hold(str(error), turn.plan.valid_until)
    if not turn.past(_over_since(turn), TIDY_S):
        return None if isinstance(error, ConflictError) else turn.hold(str(error))
    untidy = {**turn.untidy, (type(effect), effect.deployment): f"{_left(turn, effect)}: {error}"}
    return decide(turn.stored, turn.look, turn.now, untidy)


def _left(turn: Turn, effect: DropClaim | MarkPods) -> str:
    """Return in words what is left behind without the effect."""
    name = effect.deployment
    if isinstance(effect, MarkPods):
        return f"a pod's deletion cost stays on Deployment {name}"
    updates = (step for step in turn.plan.steps if isinstance(step, UpdateTemplate))
    if any(deployment_of(turn.plan, step) == name for step in updates):
        return f"the plan's claim stays on Deployment {name}, and so do the limits of its update"
    return f"the plan's claim stays on Deployment {name}"


def _over_since(turn: Turn) -> datetime:
    """Return since when nothing is left to do but to tidy up, or the latest time from which that can be."""
    status = turn.status
    if status.phase is Phase.APPROVED:
        return turn.plan.valid_until
    if status.verdict is not None:
        return status.verdict.judged_at
    return max((step.undone_at for step in status.steps if step.undone_at), default=status.phase_since or turn.now)
