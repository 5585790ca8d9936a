"""How many pods one decision may add or take away: an HPA's ``behavior`` with policies of type ``Pods``.

A limit guards against a figure that is wrong. It never makes a count that relieves nobody: where the next useful count
is farther away than the limit allows, the group holds and says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from planner.decision.decision import Decision, HoldCause, Rejection
from planner.decision.objective import Objective, StepLimit
from planner.model.snapshot import GroupSnapshot
from planner.text.words import duration, pods


@dataclass(frozen=True, slots=True)
class AllowedCounts:
    """The counts from ``least`` to ``most`` that the limits allow now; the present one is among them."""

    least: int
    most: int

    def bound(self, count: int) -> int:
        """Return the allowed count that is nearest."""
        return min(max(count, self.least), self.most)


def allowed_counts(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> AllowedCounts:
    """Return the counts that the policy's step limits allow at time ``at``.

    Of a limit's period, what the group has grown or shrunk since its begin is used up, as far as the snapshot shows it.
    A group outside the policy's bounds comes back to them at once, as an HPA brings it.
    """
    current, up, down = snapshot.count, objective.step_up, objective.step_down
    most = objective.highest if up is None else current + up.pods - max(_grown_by(snapshot, up, at), 0)
    least = objective.lowest if down is None else current - down.pods + max(-_grown_by(snapshot, down, at), 0)
    return AllowedCounts(min(least, current, objective.highest), max(most, current, objective.lowest))


def decide_within_steps(
    snapshot: GroupSnapshot, objective: Objective, at: datetime, decide_by: Callable[[Objective], Decision]
) -> Decision:
    """Return what ``decide_by`` says of the objective, or within the step limits where that goes beyond them.

    A hold where no allowed count on the way to the right one is better than the present one.
    """
    free = decide_by(objective)
    allowed = allowed_counts(snapshot, objective, at)
    if allowed.bound(free.target) == free.target:
        return free
    sentence = _explain_limit(free, objective, allowed)
    bounds = replace(objective, lowest=allowed.bound(objective.lowest), highest=allowed.bound(objective.highest))
    step = decide_by(bounds)
    if (step.target - step.current) * (free.target - free.current) > 0:
        reason = f"{step.reason.removesuffix('.')}; {sentence}."
        return replace(step, reason=reason, rejected=_rejections(step, allowed, sentence))
    reason = f"Hold at {_pods(free.current, free)}: {sentence}, and no count on the way there is better than now."
    rejected = (*_rejections(free, allowed, sentence), Rejection(free.target, (sentence,)))
    return replace(
        free,
        target=free.current,
        reason=reason,
        hold_cause=HoldCause.STEP_LIMIT,
        rejected=tuple(sorted(rejected, key=lambda each: each.count)),
    )


def _rejections(decision: Decision, allowed: AllowedCounts, sentence: str) -> tuple[Rejection, ...]:
    """Return the rejections, of counts beyond the limits with that sentence as their reason."""
    return tuple(
        each if allowed.bound(each.count) == each.count else Rejection(each.count, (sentence,))
        for each in decision.rejected
        if each.count != decision.current or not decision.is_hold
    )


def _explain_limit(free: Decision, objective: Objective, allowed: AllowedCounts) -> str:
    """Return which limit the right count is beyond, as half a sentence."""
    is_more = free.target > free.current
    limit, field = (objective.step_up, "scaleUp") if is_more else (objective.step_down, "scaleDown")
    assert limit is not None
    unused = abs((allowed.most if is_more else allowed.least) - free.current)
    period = f" within {duration(limit.period_s)}" if limit.period_s else " in one change"
    rest = f", of which {unused} are left now" if unused < limit.pods else ""
    return (
        f"{_pods(free.target, free)} would be right, but spec.behavior.{field} allows {limit.pods} "
        f"{'more' if is_more else 'fewer'}{period}{rest}"
    )


def _grown_by(snapshot: GroupSnapshot, limit: StepLimit, at: datetime) -> int:
    """Return by how many pods the group has grown in the period, negative for fewer; 0 where nobody watched."""
    begin = at - timedelta(seconds=limit.period_s)
    counts = [(point.at, point.consumers) for point in snapshot.recent if point.consumers is not None]
    earlier = [consumers for counted_at, consumers in counts if counted_at < begin]
    recent = [consumers for counted_at, consumers in counts if counted_at >= begin]
    if not limit.period_s or not recent:
        return 0
    return round((recent[-1] - (earlier[-1:] + recent)[0]) / (snapshot.members_per_pod or 1))


def _pods(count: int, decision: Decision) -> str:
    return pods(count, count * decision.members_per_pod)
