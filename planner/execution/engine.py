"""``decide``: one plan, one observation, one time -> one move. Pure: the status holds all between two reconciles.

Level-triggered: a move follows from what is, never from what was done before. So when an executor dies between an
effect and the note of it, the next reconcile finds the effect in and writes the note.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from planner.execution import drift
from planner.execution.backward import clear_marks, decide_aborting, drop_claim
from planner.execution.codes import Code
from planner.execution.effects import SetClaim
from planner.execution.forward import decide_paused, decide_running
from planner.execution.moves import Done, Leftovers, Move, Perform, Reconcile, Write
from planner.execution.observation import Claim, Observation
from planner.execution.phases import Phase
from planner.execution.plan_targets import created_deployments, deployments
from planner.execution.ports import StoredPlan
from planner.execution.progress import Refusal, StepProgress
from planner.rollout.steps import CheckForecast
from planner.verification.judge import judge
from planner.verification.observed_change import ObservedChange
from planner.verification.verdict import OtherVerdict, Verdict


def decide(stored: StoredPlan, observation: Observation, now: datetime, leftovers: Leftovers | None = None) -> Move:
    """Return the one move that the plan's phase, the cluster and the time ask for.

    A plan that is over ends without what is ``leftovers``, and says why.
    """
    phase = stored.status.phase
    return Done(phase) if phase.is_final else _MOVES[phase](Reconcile(stored, observation, now, leftovers or {}))


def _decide_pending(reconcile: Reconcile) -> Move:
    if (over := _end_before_start(reconcile)) is not None:
        return reconcile.refuse(*over)
    approval = reconcile.stored.requests.approval
    if approval is None:
        return reconcile.wait("waits for approval", reconcile.plan.valid_until)
    if (differs := drift.digest_differs(reconcile)) is not None:
        return reconcile.wait(differs.sentence, reconcile.plan.valid_until)
    if (untyped := _missing_confirmation(reconcile)) is not None:
        return reconcile.wait(untyped, reconcile.plan.valid_until)
    entered = reconcile.status.enter(
        Phase.APPROVED, f"approved by {approval.by or 'somebody not named'}", reconcile.now
    )
    return Write(replace(entered, approval=approval, refusals=()), reason=Phase.APPROVED)


def _decide_approved(reconcile: Reconcile) -> Move:
    if (over := _end_before_start(reconcile)) is not None:
        return drop_claim(reconcile) or reconcile.refuse(*over)
    if (lost := _approval_lost(reconcile)) is not None:
        return drop_claim(reconcile) or reconcile.refuse(Phase.PENDING, (lost,))
    if reconcile.stored.requests.pause:
        return reconcile.wait("paused by a person before its first step", reconcile.plan.valid_until)
    differences = drift.before_start(reconcile)
    if differences.refusals:
        return drop_claim(reconcile) or reconcile.refuse(Phase.REFUSED, differences.refusals)
    for unknown in differences.unknowns:
        return reconcile.wait(unknown, reconcile.plan.valid_until)
    return _claim(reconcile) or reconcile.enter(Phase.RUNNING, "the plan fits: its steps begin")


def _claim(reconcile: Reconcile) -> Perform | None:
    """Return the effect that claims one more Deployment, ``None`` once all that are there are this plan's."""
    for name in deployments(reconcile.plan):
        deployment = reconcile.observation.deployment(name)
        if (
            deployment is None
            or deployment.facts is None
            or name in reconcile.claimed
            or name in created_deployments(reconcile.plan)
        ):
            continue
        facts, claim = deployment.facts, Claim(reconcile.key)
        return Perform(SetClaim(name, claim, facts.resource_version, facts.kind, facts.api_version))
    return None


def _end_before_start(reconcile: Reconcile) -> tuple[Phase, tuple[Refusal, ...]] | None:
    if reconcile.is_to_end:
        return Phase.REFUSED, (Refusal(Code.WITHDRAWN, "withdrawn by a person before its first step"),)
    if reconcile.now >= reconcile.plan.valid_until:
        return Phase.EXPIRED, (drift.expiry(reconcile),)
    return None


def _approval_lost(reconcile: Reconcile) -> Refusal | None:
    if reconcile.stored.requests.approval is None:
        return Refusal(Code.DIGEST_DIFFERS, "the approval was taken back")
    return drift.digest_differs(reconcile)


def _missing_confirmation(reconcile: Reconcile) -> str | None:
    missing = [phrase for phrase in reconcile.plan.confirmations if phrase not in reconcile.stored.requests.confirmed]
    return f"waits for somebody to type {missing[0]!r}" if missing else None


def _decide_verifying(reconcile: Reconcile) -> Move:
    """All steps are done; what is left is to judge, to tidy up, and to give the Deployments free."""
    if reconcile.status.verdict is None:
        return _judge(reconcile)
    marks = None if reconcile.edited else clear_marks(reconcile)
    if (tidy := marks or drop_claim(reconcile)) is not None:
        return tidy
    verdict = "; ".join(reconcile.status.verdict.misses) or f"the forecast is {reconcile.status.verdict.fit}"
    entered = reconcile.status.enter(Phase.SUCCEEDED, f"the new state is there: {verdict}", reconcile.now)
    return Write(replace(entered, ended="new", surprises=reconcile.surprises), reason=Phase.SUCCEEDED)


def _judge(reconcile: Reconcile) -> Move:
    if reconcile.edited is not None:
        reason = "the plan was changed after its last step, so that its forecast can no longer be judged"
        status = replace(
            reconcile.status, verdict=Verdict(reconcile.now, ()), surprises=(*reconcile.status.surprises, reason)
        )
        return Write(status, reason="Verified")
    check = next((step for step in reconcile.plan.steps if isinstance(step, CheckForecast)), None)
    change, since = reconcile.observation.change, reconcile.status.phase_since or reconcile.now
    limit_s = check.time_limit_seconds if check else 0
    waits = not reconcile.is_to_end and not reconcile.past(since, limit_s)
    others = dict(reconcile.observation.other_changes)
    needed = [change, *(others.get(other.group.group) for other in reconcile.plan.others or ())]
    if waits and not all(each is not None and each.is_complete for each in needed):
        return reconcile.wait("not all of the change was seen yet", since + timedelta(seconds=limit_s))
    verdict = judge(reconcile.plan.forecast, change or ObservedChange(), reconcile.now)
    verdict = replace(verdict, others=_judge_others(reconcile, others))
    checked = tuple(
        StepProgress(index, step.kind, since, finished_at=reconcile.now, message=f"the forecast is {verdict.fit}")
        for index, step in enumerate(reconcile.plan.steps)
        if index >= len(reconcile.status.steps)
    )
    status = replace(reconcile.status, verdict=verdict, steps=(*reconcile.status.steps, *checked), held=None)
    return Write(status, reason="Verified")


def _judge_others(reconcile: Reconcile, changes: Mapping[str, ObservedChange]) -> tuple[OtherVerdict, ...] | None:
    """Return the verdict's part for each other group of the same pods, ``None`` where there is none."""
    names = [(other.group.group, other.forecast) for other in reconcile.plan.others or ()]
    parts = ((name, judge(forecast, changes.get(name, ObservedChange()), reconcile.now)) for name, forecast in names)
    return tuple(OtherVerdict(name, verdict.figures) for name, verdict in parts) or None


_MOVES: Final[Mapping[Phase, Callable[[Reconcile], Move]]] = {
    Phase.PENDING: _decide_pending,
    Phase.APPROVED: _decide_approved,
    Phase.RUNNING: decide_running,
    Phase.PAUSED: decide_paused,
    Phase.ABORTING: decide_aborting,
    Phase.VERIFYING: _decide_verifying,
}
