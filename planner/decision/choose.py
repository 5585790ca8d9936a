"""The choice within the bounds: the count that costs least, or the smallest one; the best one where none meets them.

Which of the first two is the policy's to say (``Objective.wait``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from planner.decision.bill_words import describe_choice, describe_difference
from planner.decision.decision import Decision, DecisionBill, HoldCause, Rejection
from planner.decision.growth import vain_growth
from planner.decision.hold_reasons import (
    HoldReason,
    first_reason_against_fewer,
    first_reason_to_hold,
    slow,
    standing_still,
)
from planner.decision.least_cost import CountBills, bill_counts
from planner.decision.misses import RECOVERY_S, Delay, delays, lasting_misses, recovery_s
from planner.decision.objective import Objective
from planner.decision.pace import KEEPS_UP_S, falls_behind, keeps_up
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.words import counted, duration, pods, pods_between, scaled

LATE_MINUTE_H = 1.0
"""A minute beyond the objective is worth so many hours of one consumer (decision.md, measured at this price)."""

REBALANCE_H = 0.25
"""What it costs to go back once the backlog is gone, in hours of one consumer, at the same place."""

CLEARLY_BETTER = 0.01
"""A count that misses the objective is taken if it lowers the busiest consumer's utilisation by more than this."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The arguments against one outcome: ``lasting`` sentences, ``delays`` while a backlog is worked off."""

    outcome: CandidateOutcome
    lasting: tuple[str, ...]
    delays: tuple[Delay, ...]

    @property
    def late_s(self) -> float:
        return max((delay.late_s for delay in self.delays), default=0.0)

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.lasting, *(delay.sentence for delay in self.delays))


def decide(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], objective: Objective, at: datetime
) -> Decision:
    """Return the decision on the group at time ``at``; outcomes of other strategies than the group's are ignored.

    Of the useful counts that meet every lasting bound the one wins that costs least over possible futures of the load
    (``Objective.wait``); without that objective the smallest, or a larger one where the time that it saves on a backlog
    is worth its consumers. Where none meets them, the best one wins if it is better than the present
    count. When the winner is the present count, or the data cannot carry a decision, the answer is hold.
    """
    reason = first_reason_to_hold(snapshot, objective, at)
    if reason is not None:
        return _hold(snapshot, at, reason, ())
    verdicts = _verdicts(snapshot, outcomes, objective)
    bills = _bills(snapshot, verdicts, objective)
    if objective.wait is not None and bills is None and verdicts:
        return _hold(snapshot, at, (HoldCause.UNKNOWN_RATES, "the mean arrival rate of some queue is unknown"), ())
    current = snapshot.count
    chosen = _choose(verdicts, current, objective, bills)
    rejected = tuple(_rejections(verdicts, chosen, objective, bills))
    if chosen is None:
        return _hold(snapshot, at, (HoldCause.NO_COUNT_MEETS, _none_better(verdicts, objective)), rejected)
    target = chosen.outcome.count
    bill = bills.shown(target) if bills and bills.weighs(target) and not chosen.lasting else None
    late = bills.why_none_keeps_up(_weighed_counts(verdicts, objective, bills)) if bills and bill else ""
    why = _explain_bill(bill, current, chosen, late) if bill else _why(chosen, objective)
    at_best = HoldCause.NO_COUNT_MEETS if late else HoldCause.RIGHT_ALREADY
    reason = _reason_to_stay(snapshot, chosen, objective, at, (at_best, why))
    if reason is not None:
        return _hold(snapshot, at, reason, rejected, bill)
    return Decision(
        group=snapshot.group,
        decided_at=at,
        strategy=snapshot.strategy,
        current=current,
        target=target,
        reason=f"Scale from {pods_between(current, target, chosen.outcome.members_per_pod)}: {why}.",
        rejected=rejected,
        bill=bill,
        members_per_pod=chosen.outcome.members_per_pod,
    )


def _verdicts(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], objective: Objective
) -> dict[int, _Verdict]:
    """Return the arguments against each outcome of the group's own strategy, counts ascending."""
    return {
        outcome.count: _Verdict(outcome, tuple(lasting_misses(outcome, objective)), delays(outcome, objective))
        for outcome in sorted(outcomes, key=lambda outcome: outcome.count)
        if outcome.strategy == snapshot.strategy
    }


def _bills(snapshot: GroupSnapshot, verdicts: Mapping[int, _Verdict], objective: Objective) -> CountBills | None:
    """Return what the counts cost, ``None`` for a policy that does not weigh, or where the load is not known."""
    if objective.wait is None or snapshot.count not in verdicts:
        return None
    weighed = [verdict for verdict in verdicts.values() if _is_able(verdict, objective) or verdict.outcome.is_current]
    late_s = {verdict.outcome.count: verdict.late_s for verdict in weighed}
    return bill_counts(snapshot, [verdict.outcome for verdict in weighed], late_s, objective.wait)


def _is_able(verdict: _Verdict, objective: Objective) -> bool:
    """Return whether the count meets all lasting bounds and may be chosen."""
    is_allowed = objective.lowest <= verdict.outcome.count <= objective.highest
    return is_allowed and not verdict.lasting and _can_be_chosen(verdict.outcome, objective)


def _choose(
    verdicts: Mapping[int, _Verdict], current: int, objective: Objective, bills: CountBills | None
) -> _Verdict | None:
    """Return the count to have, ``None`` where none meets the lasting bounds or is better than the present one."""
    allowed = [
        verdict
        for count, verdict in verdicts.items()
        if objective.lowest <= count <= objective.highest and _can_be_chosen(verdict.outcome, objective)
    ]
    able = [verdict for verdict in allowed if not verdict.lasting]
    if bills is not None:
        if weighed := _weighed_counts(verdicts, objective, bills):
            return verdicts[bills.cheapest(weighed)]
    elif able:
        smallest = min(verdict.outcome.count for verdict in able)
        return min(able, key=lambda verdict: (_cost_h(verdict, smallest, objective), verdict.outcome.count))
    best = _closest(allowed, objective)
    if best is None or best.outcome.utilisation is None:
        return None
    present = verdicts.get(current)
    if present is None or not objective.lowest <= current <= objective.highest:
        return best
    is_better = _relief(present.outcome, objective) - _relief(best.outcome, objective) > CLEARLY_BETTER
    return best if is_better and best.outcome.count > current else None


def _weighed_counts(verdicts: Mapping[int, _Verdict], objective: Objective, bills: CountBills) -> list[int]:
    """Return the counts of which the cheapest is taken.

    The present one is among them although a smaller one may relieve as much: that one is then weighed against it.
    """
    return [
        count
        for count, verdict in verdicts.items()
        if bills.weighs(count)
        and not verdict.lasting
        and objective.lowest <= count <= objective.highest
        and (verdict.outcome.is_current or _can_be_chosen(verdict.outcome, objective))
    ]


def _closest(allowed: Sequence[_Verdict], objective: Objective) -> _Verdict | None:
    """Return the smallest count that is right but for a hot queue, else the one that comes closest to the bound."""
    bound = objective.max_utilisation
    return min(
        allowed,
        key=lambda verdict: (max(_relief(verdict.outcome, objective), bound), verdict.outcome.count),
        default=None,
    )


def _relief(outcome: CandidateOutcome, objective: Objective) -> float:
    """Return the utilisation that a count can change: what a hot queue takes of its owner is left out."""
    hot_share = outcome.hot_utilisation
    if hot_share is None or hot_share <= objective.max_utilisation:
        return _utilisation(outcome)
    hot = next((owned.owner for owned in outcome.owners if owned.queue == outcome.hot_queue), None)
    shares = [
        load.utilisation - (hot_share if load.client == hot else 0.0)
        for load in outcome.loads
        if load.utilisation is not None
    ]
    return max(shares, default=0.0) if len(shares) == len(outcome.loads) else float("inf")


def _cost_h(verdict: _Verdict, smallest: int, objective: Objective) -> float:
    """Return what a count costs beyond the smallest able one, in hours of one consumer.

    Its further consumers are paid until the backlog is gone and the group may shrink again, and going back is a
    rebalance more; each minute beyond the objective costs ``LATE_MINUTE_H``.
    """
    late_h = verdict.late_s / 60.0 * LATE_MINUTE_H
    further = verdict.outcome.count - smallest
    if further <= 0:
        return late_h
    kept_s = (verdict.outcome.drain_s or 0.0) + max(RECOVERY_S, objective.quiet_s or 0.0)
    return late_h + further * kept_s / 3600.0 + REBALANCE_H


def _utilisation(outcome: CandidateOutcome) -> float:
    return float("inf") if outcome.utilisation is None else outcome.utilisation


def _can_be_chosen(outcome: CandidateOutcome, objective: Objective) -> bool:
    """A count below which the policy forbids to go needs no smaller one to compare with."""
    return outcome.is_useful or outcome.count == objective.lowest


def _reason_to_stay(
    snapshot: GroupSnapshot, chosen: _Verdict, objective: Objective, at: datetime, at_best: HoldReason
) -> HoldReason | None:
    """Return why the group stays as it is although ``chosen`` won, ``None`` where it is to change.

    ``at_best`` is the reason where ``chosen`` is the present count.
    """
    current, target = snapshot.count, chosen.outcome.count
    if target < current:
        return first_reason_against_fewer(snapshot, objective, at)
    capacity = snapshot.capacity
    if target > current:
        if target <= objective.lowest or current < objective.lowest:
            return None
        if (vain := vain_growth(snapshot)) is not None:
            return HoldCause.GROWTH_DID_NOT_HELP, vain.describe(at)
        return _reason_not_to_grow(snapshot, capacity) if capacity and capacity.is_lower_bound else None
    if capacity is not None and capacity.slow_clients:
        return HoldCause.SLOW_MEMBERS, slow(capacity)
    cause, why = at_best
    smallest = "" if objective.wait is not None else ", and no smaller count meets the objective"
    return cause, f"{why}{smallest}"


def _reason_not_to_grow(snapshot: GroupSnapshot, capacity: Capacity) -> HoldReason | None:
    """Return why a bound from below is no reason to grow; it is one for a group that falls behind."""
    if capacity.slow_clients:
        return HoldCause.SLOW_MEMBERS, slow(capacity)
    if falls_behind(snapshot):
        return None
    if snapshot.standing_queues:
        return HoldCause.BLOCKED_QUEUES, standing_still(snapshot)
    if keeps_up(snapshot):
        return HoldCause.RIGHT_ALREADY, (
            f"{pods(snapshot.count, len(snapshot.clients))} keep up, nothing but the last {KEEPS_UP_S:.0f} s of "
            f"arrivals waits; whether fewer would do is not known, as what one can do is known as {capacity.source}"
        )
    return HoldCause.UNKNOWN_CAPACITY, _perhaps_enough(capacity)


def _perhaps_enough(capacity: Capacity) -> str:
    """A bound from below shows that fewer consumers are enough, never that more are needed."""
    return (
        f"what one consumer can do is known as {capacity.source}; whether more are needed shows when one is busy, or "
        "state spec.capacity in the policy"
    )


def _rejections(
    verdicts: Mapping[int, _Verdict], chosen: _Verdict | None, objective: Objective, bills: CountBills | None
) -> Iterator[Rejection]:
    for count, verdict in verdicts.items():
        if chosen is not None and count == chosen.outcome.count:
            continue
        reasons = list(verdict.sentences)
        if not _can_be_chosen(verdict.outcome, objective):
            reasons.append(
                f"one {scaled(verdict.outcome.members_per_pod)} fewer leaves nobody more than "
                f"{verdict.outcome.largest_share} queues either: it relieves nobody"
            )
        if not reasons and chosen is not None:
            reasons.append(_too_dear(verdict, chosen, bills))
        yield Rejection(count, tuple(reasons))


def _too_dear(verdict: _Verdict, chosen: _Verdict, bills: CountBills | None) -> str:
    if bills is not None:
        line, least = bills.whole.line(verdict.outcome.count), bills.whole.line(chosen.outcome.count)
        if line is None or least is None:
            return bills.why_unweighed(verdict.outcome.count)
        return describe_difference(line, least, chosen.outcome.members_per_pod)
    further = verdict.outcome.count - chosen.outcome.count
    if chosen.late_s and further > 0:
        return f"the {duration(chosen.late_s)} that it saves are not worth {_pods(further, chosen.outcome)} more"
    return f"{_pods(chosen.outcome.count, chosen.outcome)} are enough"


def _none_better(verdicts: Mapping[int, _Verdict], objective: Objective) -> str:
    allowed = [verdict for count, verdict in verdicts.items() if objective.lowest <= count <= objective.highest]
    if not allowed:
        return "no useful count lies within the policy's bounds"
    best = _closest(allowed, objective) or allowed[0]
    return (
        f"no useful count from {objective.lowest} to {objective.highest} meets the objective or is better; with "
        f"{best.outcome.count}, which comes closest, {_first(best.sentences)}"
    )


def _why(chosen: _Verdict, objective: Objective) -> str:
    outcome = chosen.outcome
    busiest = f"the busiest consumer is used at {outcome.utilisation:.0%} at the recent upper rate"
    if chosen.lasting:
        return (
            f"no allowed count meets the objective, and this one comes closest: {_first(chosen.lasting)}"
            f"{_backlog(outcome)}"
        )
    late = chosen.delays[0].late_s if chosen.delays else 0.0
    note = f", {duration(late)} later than the objective asks for, which more consumers are not worth" if late else ""
    return f"{busiest}{_backlog(outcome)}{note}{_wait(outcome, objective)}"


def _explain_bill(bill: DecisionBill, current: int, chosen: _Verdict, late: str) -> str:
    """Return why a count won by its bill; ``late`` says why messages are late with any count, where they are."""
    why = describe_choice(bill, current, chosen.outcome.count) + _backlog(chosen.outcome)
    return f"{late}; {why}" if late else why


def _backlog(outcome: CandidateOutcome) -> str:
    if outcome.lag is None:
        return "; how long the backlog takes is not known, as some queues have no committed offset yet"
    if not outcome.lag:
        return ""
    gone = "never be gone" if outcome.drain_s is None else f"be gone after {duration(outcome.drain_s)}"
    return f" and the backlog of {counted(outcome.lag, 'message')} will {gone}"


def _wait(outcome: CandidateOutcome, objective: Objective) -> str:
    """Say for how long a stated bound on the wait stays broken."""
    still_s, allowed_s = recovery_s(outcome, objective), objective.oldest_message_s
    if not still_s or allowed_s is None:
        return ""
    return f"; a new message waits {duration(outcome.wait_s)} now, below {duration(allowed_s)} in {duration(still_s)}"


def _first(sentences: Iterable[str]) -> str:
    return next(iter(sentences), "it relieves nobody")


def _pods(count: int, outcome: CandidateOutcome) -> str:
    return pods(count, count * outcome.members_per_pod)


def _hold(
    snapshot: GroupSnapshot,
    at: datetime,
    reason: HoldReason,
    rejected: tuple[Rejection, ...],
    bill: DecisionBill | None = None,
) -> Decision:
    cause, sentence = reason
    current = snapshot.count
    text = f"Hold at {pods(current, len(snapshot.clients))}: {sentence}."
    per_pod = snapshot.members_per_pod or 1
    return Decision(snapshot.group, at, snapshot.strategy, current, current, text, rejected, cause, bill, per_pod)
