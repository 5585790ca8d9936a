"""The choice: the smallest useful count that meets the objective."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from planner.decision.decision import Decision, HoldCause, Rejection
from planner.decision.grounds import first_ground_to_hold
from planner.decision.objective import Objective
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad

RECOVERY_S = 600.0
"""How long a wait above the objective may last where the policy does not say when a backlog must be gone."""


def decide(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], objective: Objective, at: datetime
) -> Decision:
    """Return the decision on the group at time ``at``; outcomes of other strategies than the group's are ignored.

    The smallest useful count whose outcome breaks no bound wins; when that is the present count, or none
    does, or the data cannot carry a decision, the answer is hold.
    """
    current = len(snapshot.clients)
    ground = first_ground_to_hold(snapshot, objective, at)
    if ground is not None:
        cause, why = ground
        return _hold(snapshot, at, cause, f"Hold at {_consumers(current)}: {why}.", ())
    ordered = sorted((o for o in outcomes if o.strategy == snapshot.strategy), key=lambda o: o.count)
    broken = {outcome.count: tuple(broken_bounds(outcome, objective)) for outcome in ordered}
    chosen = next((o for o in ordered if _can_be_chosen(o, objective) and not broken[o.count]), None)
    rejected = tuple(_rejections(ordered, broken, chosen, objective))
    if chosen is None:
        return _hold(snapshot, at, HoldCause.NO_COUNT_MEETS, _none_meets(ordered, current, objective), rejected)
    if chosen.count == current:
        reason = f"Hold at {_consumers(current)}: {_why(chosen)}, and no smaller count meets the objective."
        return _hold(snapshot, at, HoldCause.RIGHT_ALREADY, reason, rejected)
    capacity = snapshot.capacity
    if chosen.count > max(current, objective.lowest) and capacity is not None and capacity.is_lower_bound:
        reason = f"Hold at {_consumers(current)}: {_perhaps_enough(capacity)}."
        return _hold(snapshot, at, HoldCause.UNKNOWN_CAPACITY, reason, rejected)
    return Decision(
        group=snapshot.group,
        decided_at=at,
        strategy=snapshot.strategy,
        current=current,
        target=chosen.count,
        reason=f"Scale from {current} to {_consumers(chosen.count)}: then {_why(chosen)}.",
        rejected=rejected,
    )


def _perhaps_enough(capacity: Capacity) -> str:
    """A bound from below shows that fewer consumers are enough, never that more are needed."""
    return (
        f"what one consumer can do is known as {capacity.source}; whether more are needed shows when one is busy, or "
        "state spec.capacity in the policy"
    )


def _can_be_chosen(outcome: CandidateOutcome, objective: Objective) -> bool:
    """A count below which the policy forbids to go needs no smaller one to compare with."""
    return outcome.is_useful or outcome.count == objective.lowest


def broken_bounds(outcome: CandidateOutcome, objective: Objective) -> Iterator[str]:
    """Yield one sentence for each bound of the objective that the outcome breaks, or cannot be shown to meet."""
    if not objective.lowest <= outcome.count <= objective.highest:
        yield f"the policy allows {objective.lowest} to {objective.highest} consumers"
    if outcome.utilisation is None:
        yield "the busiest consumer's utilisation is unknown"
    elif outcome.utilisation > objective.max_utilisation:
        yield (
            f"the busiest consumer would be used at {outcome.utilisation:.0%}, "
            f"above the bound of {objective.max_utilisation:.0%}{_hot_note(outcome, objective)}"
        )
    yield from _broken_wait(outcome, objective)
    wanted = objective.backlog_gone_s
    if wanted is not None and (outcome.drain_s is None or outcome.drain_s > wanted):
        yield f"the backlog would {_gone(outcome.drain_s)}, the objective is {wanted:.0f} s"


def _broken_wait(outcome: CandidateOutcome, objective: Objective) -> Iterator[str]:
    """No count makes a backlog vanish at once: the wait must be back under the bound in time."""
    wanted = objective.oldest_message_s
    if wanted is None:
        return
    in_time_s = objective.backlog_gone_s or RECOVERY_S
    recoveries = [recovery_s(load, wanted) for load in outcome.loads]
    known = [recovery for recovery in recoveries if recovery is not None]
    if len(known) < len(recoveries):
        yield f"a new message would wait longer than {wanted:.0f} s for good"
    elif max(known, default=0.0) > in_time_s:
        yield (
            f"a new message would wait longer than {wanted:.0f} s for another {max(known):.0f} s, "
            f"the objective allows {in_time_s:.0f} s"
        )


def recovery_s(load: ConsumerLoad, wanted_s: float) -> float | None:
    """Return how long, in seconds, a new message still waits longer than ``wanted_s``; ``None`` for ever or unknown.

    The backlog falls evenly to 0 over ``drain_s``, and with it the wait.
    """
    if load.drain_s is None or load.wait_s is None:
        return None
    return 0.0 if load.wait_s <= wanted_s else load.drain_s * (1.0 - wanted_s / load.wait_s)


def _hot_note(outcome: CandidateOutcome, objective: Objective) -> str:
    if outcome.hot_utilisation is None or outcome.hot_utilisation <= objective.max_utilisation:
        return ""
    return f"; queue {outcome.hot_queue} alone takes {outcome.hot_utilisation:.0%}, so more consumers cannot help"


def _gone(drain_s: float | None) -> str:
    return "never be gone" if drain_s is None else f"be gone after {drain_s:.0f} s"


def _rejections(
    ordered: Sequence[CandidateOutcome],
    broken: dict[int, tuple[str, ...]],
    chosen: CandidateOutcome | None,
    objective: Objective,
) -> Iterator[Rejection]:
    for outcome in ordered:
        if chosen is not None and outcome.count == chosen.count:
            continue
        reasons = list(broken[outcome.count])
        if not _can_be_chosen(outcome, objective):
            reasons.append(
                f"one consumer fewer leaves nobody more than {outcome.largest_share} queues either: it relieves nobody"
            )
        if not reasons and chosen is not None:
            reasons.append(f"{_consumers(chosen.count)} are enough")
        yield Rejection(outcome.count, tuple(reasons))


def _none_meets(ordered: Sequence[CandidateOutcome], current: int, objective: Objective) -> str:
    allowed = [o for o in ordered if objective.lowest <= o.count <= objective.highest]
    if not allowed:
        return f"Hold at {_consumers(current)}: no useful count lies within the policy's bounds."
    best = min(allowed, key=lambda o: (o.utilisation if o.utilisation is not None else float("inf"), o.count))
    why = next(broken_bounds(best, objective), "it relieves nobody")
    return (
        f"Hold at {_consumers(current)}: no useful count from {objective.lowest} to {objective.highest} meets the "
        f"objective; with {best.count}, which comes closest, {why}."
    )


def _why(chosen: CandidateOutcome) -> str:
    busiest = f"the busiest consumer is used at {chosen.utilisation:.0%} at the recent upper rate"
    backlog = chosen.lag
    return f"{busiest} and the backlog of {backlog:,} messages will {_gone(chosen.drain_s)}" if backlog else busiest


def _consumers(count: int) -> str:
    return "1 consumer" if count == 1 else f"{count} consumers"


def _hold(
    snapshot: GroupSnapshot, at: datetime, cause: HoldCause, reason: str, rejected: tuple[Rejection, ...]
) -> Decision:
    current = len(snapshot.clients)
    return Decision(snapshot.group, at, snapshot.strategy, current, current, reason, rejected, cause)
