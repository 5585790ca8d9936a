"""Which count is best: the one that costs least, or the smallest one; the closest one where none meets the bounds.

Which of the first two is the policy's to say (``Objective.wait``).
"""

from collections.abc import Mapping, Sequence

from planner.decision.least_cost import CountBills
from planner.decision.misses import RECOVERY_S
from planner.decision.objective import Objective
from planner.decision.verdicts import Verdict, can_be_chosen
from planner.simulation.outcome import CandidateOutcome

LATE_MINUTE_H = 1.0
"""A minute beyond the objective is worth so many hours of one consumer (decision.md, measured at this price)."""

REBALANCE_H = 0.25
"""What it costs to go back once the backlog is gone, in hours of one consumer, at the same place."""

CLEARLY_BETTER = 0.01
"""A count that misses the objective is taken if it lowers the busiest consumer's utilisation by more than this."""


def best_count(
    verdicts: Mapping[int, Verdict], current: int, objective: Objective, bills: CountBills | None
) -> Verdict | None:
    """Return the count to have, ``None`` where none meets the lasting bounds or is better than the present one."""
    allowed = [
        verdict
        for count, verdict in verdicts.items()
        if objective.lowest <= count <= objective.highest and can_be_chosen(verdict.outcome, objective)
    ]
    able = [verdict for verdict in allowed if not verdict.lasting]
    if bills is not None:
        if weighed := weighed_counts(verdicts, objective, bills):
            return verdicts[bills.cheapest(weighed)]
    elif able:
        smallest = min(verdict.outcome.count for verdict in able)
        return min(able, key=lambda verdict: (_cost_h(verdict, smallest, objective), verdict.outcome.count))
    best = closest_to_bound(allowed, objective)
    if best is None or best.outcome.utilisation is None:
        return None
    present = verdicts.get(current)
    if present is None or not objective.lowest <= current <= objective.highest:
        return best
    is_better = (
        changeable_utilisation(present.outcome, objective) - changeable_utilisation(best.outcome, objective)
        > CLEARLY_BETTER
    )
    return best if is_better and best.outcome.count > current else None


def weighed_counts(verdicts: Mapping[int, Verdict], objective: Objective, bills: CountBills) -> list[int]:
    """Return the counts of which the cheapest is taken.

    The present one is among them although a smaller one may relieve as much: that one is then weighed against it.
    """
    return [
        count
        for count, verdict in verdicts.items()
        if bills.weighs(count)
        and not verdict.lasting
        and objective.lowest <= count <= objective.highest
        and (verdict.outcome.is_current or can_be_chosen(verdict.outcome, objective))
    ]


def closest_to_bound(allowed: Sequence[Verdict], objective: Objective) -> Verdict | None:
    """Return the smallest count that is right but for a hot queue, else the one that comes closest to the bound."""
    bound = objective.max_utilisation
    return min(
        allowed,
        key=lambda verdict: (max(changeable_utilisation(verdict.outcome, objective), bound), verdict.outcome.count),
        default=None,
    )


def changeable_utilisation(outcome: CandidateOutcome, objective: Objective) -> float:
    """Return the utilisation that a count can change: what a hot queue takes of its owner is left out.

    Not so where its owner falls behind by what lies beside a queue that one consumer could work off.
    """
    hot_share = outcome.hot_utilisation
    if hot_share is None or hot_share <= objective.max_utilisation:
        return _utilisation(outcome)
    hot = next((owned.owner for owned in outcome.owners if owned.queue == outcome.hot_queue), None)
    shares = [
        _changeable(load.utilisation, hot_share if load.client == hot else 0.0)
        for load in outcome.loads
        if load.utilisation is not None
    ]
    return max(shares, default=0.0) if len(shares) == len(outcome.loads) else float("inf")


def _changeable(utilisation: float, hot_share: float) -> float:
    return utilisation if hot_share <= 1.0 < utilisation else utilisation - hot_share


def _cost_h(verdict: Verdict, smallest: int, objective: Objective) -> float:
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
