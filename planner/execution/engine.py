"""``decide``: one plan, one look, one time -> one move. Pure; everything between two turns stands in the status.

Level-triggered: a move follows from what is, never from what was done before. So whoever dies between an effect and
the note of it, the next turn finds the effect in and writes the note.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from planner.execution import drift
from planner.execution.backward import aborting, clear_marks, drop_claim
from planner.execution.codes import Code
from planner.execution.course import created, deployments
from planner.execution.effects import SetClaim
from planner.execution.forward import paused, running
from planner.execution.look import Claim, Look
from planner.execution.moves import Done, Move, Perform, Turn, Untidy, Write
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import Refusal, StepProgress
from planner.rollout.steps import CheckForecast
from planner.verification.judge import judge
from planner.verification.seen import Seen
from planner.verification.verdict import Verdict


def decide(stored: StoredPlan, look: Look, now: datetime, untidy: Untidy | None = None) -> Move:
    """Return the one move that the plan's phase, the world and the time ask for.

    A plan that is over ends without what is ``untidy``, and says why.
    """
    phase = stored.status.phase
    return Done(phase) if phase.is_final else _MOVES[phase](Turn(stored, look, now, untidy or {}))


def _pending(turn: Turn) -> Move:
    if (over := _over(turn)) is not None:
        return turn.refuse(*over)
    approval = turn.stored.requests.approval
    if approval is None:
        return turn.hold("waits for approval", turn.plan.valid_until)
    if (differs := drift.digest_differs(turn)) is not None:
        return turn.hold(differs.sentence, turn.plan.valid_until)
    if (untyped := _unconfirmed(turn)) is not None:
        return turn.hold(untyped, turn.plan.valid_until)
    entered = turn.status.enter(Phase.APPROVED, f"approved by {approval.by or 'somebody not named'}", turn.now)
    return Write(replace(entered, approval=approval, refusals=()), reason=Phase.APPROVED)


def _approved(turn: Turn) -> Move:
    if (over := _over(turn)) is not None:
        return drop_claim(turn) or turn.refuse(*over)
    if (lost := _approval_lost(turn)) is not None:
        return drop_claim(turn) or turn.refuse(Phase.PENDING, (lost,))
    if turn.stored.requests.pause:
        return turn.hold("paused by a person before its first step", turn.plan.valid_until)
    found = drift.before_start(turn)
    if found.refusals:
        return drop_claim(turn) or turn.refuse(Phase.REFUSED, found.refusals)
    for unknown in found.unknowns:
        return turn.hold(unknown, turn.plan.valid_until)
    return _claim(turn) or turn.enter(Phase.RUNNING, "the plan fits: its steps begin")


def _claim(turn: Turn) -> Perform | None:
    """Return the effect that claims one more Deployment, ``None`` once all that are there are this plan's."""
    for name in deployments(turn.plan):
        found = turn.look.deployment(name)
        if found is None or found.facts is None or name in turn.claimed or name in created(turn.plan):
            continue
        return Perform(SetClaim(name, Claim(turn.key), found.facts.resource_version))
    return None


def _over(turn: Turn) -> tuple[Phase, tuple[Refusal, ...]] | None:
    if turn.is_to_end:
        return Phase.REFUSED, (Refusal(Code.WITHDRAWN, "withdrawn by a person before its first step"),)
    if turn.now >= turn.plan.valid_until:
        return Phase.EXPIRED, (drift.expired(turn),)
    return None


def _approval_lost(turn: Turn) -> Refusal | None:
    if turn.stored.requests.approval is None:
        return Refusal(Code.DIGEST_DIFFERS, "the approval was taken back")
    return drift.digest_differs(turn)


def _unconfirmed(turn: Turn) -> str | None:
    missing = [phrase for phrase in turn.plan.confirmations if phrase not in turn.stored.requests.confirmed]
    return f"waits for somebody to type {missing[0]!r}" if missing else None


def _verifying(turn: Turn) -> Move:
    """All steps are done; what is left is to judge, to tidy up, and to give the Deployments free."""
    if turn.status.verdict is None:
        return _judge(turn)
    marks = None if turn.edited else clear_marks(turn)
    if (tidy := marks or drop_claim(turn)) is not None:
        return tidy
    told = "; ".join(turn.status.verdict.misses) or f"the forecast is {turn.status.verdict.fit}"
    entered = turn.status.enter(Phase.SUCCEEDED, f"the new state is there: {told}", turn.now)
    return Write(replace(entered, ended="new", surprises=turn.surprises), reason=Phase.SUCCEEDED)


def _judge(turn: Turn) -> Move:
    if turn.edited is not None:
        told = "the plan was changed after its last step, so that its forecast can no longer be judged"
        status = replace(turn.status, verdict=Verdict(turn.now, ()), surprises=(*turn.status.surprises, told))
        return Write(status, reason="Verified")
    check = next((step for step in turn.plan.steps if isinstance(step, CheckForecast)), None)
    seen, since = turn.look.seen, turn.status.phase_since or turn.now
    limit_s = check.time_limit_seconds if check else 0
    waits = not turn.is_to_end and not turn.past(since, limit_s)
    if (seen is None or not seen.is_complete) and waits:
        return turn.hold("not all of the change was seen yet", since + timedelta(seconds=limit_s))
    verdict = judge(turn.plan.forecast, seen or Seen(), turn.now)
    checked = tuple(
        StepProgress(index, step.kind, since, finished_at=turn.now, message=f"the forecast is {verdict.fit}")
        for index, step in enumerate(turn.plan.steps)
        if index >= len(turn.status.steps)
    )
    status = replace(turn.status, verdict=verdict, steps=(*turn.status.steps, *checked), held=None)
    return Write(status, reason="Verified")


_MOVES: Final[Mapping[Phase, Callable[[Turn], Move]]] = {
    Phase.PENDING: _pending,
    Phase.APPROVED: _approved,
    Phase.RUNNING: running,
    Phase.PAUSED: paused,
    Phase.ABORTING: aborting,
    Phase.VERIFYING: _verifying,
}
