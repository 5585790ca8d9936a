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
    return best if _is_better(best.outcome, present.outcome, objective) and best.outcome.count > current else None


def _is_better(outcome: CandidateOutcome, present: CandidateOutcome, objective: Objective) -> bool:
    relieved = changeable_utilisation(present, objective) - changeable_utilisation(outcome, objective)
    caught_up = _behind(present, objective) - _behind(outcome, objective)
    return caught_up > CLEARLY_BETTER or (caught_up >= -CLEARLY_BETTER and relieved > CLEARLY_BETTER)


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
    """Return the smallest count that is right but for a hot queue, else the one that comes closest to the bound.

    It is among those at which the owner of a hot queue falls behind least, where one consumer can work that queue off.
    """
    bound = objective.max_utilisation
    least = min((_behind(verdict.outcome, objective) for verdict in allowed), default=0.0)
    return min(
        (verdict for verdict in allowed if _behind(verdict.outcome, objective) - least <= CLEARLY_BETTER),
        key=lambda verdict: (max(changeable_utilisation(verdict.outcome, objective), bound), verdict.outcome.count),
        default=None,
    )


def changeable_utilisation(outcome: CandidateOutcome, objective: Objective) -> float:
    """Return the utilisation that a count can change: what a hot queue takes of its owner is left out."""
    hot_share = _hot_share(outcome, objective)
    if hot_share is None:
        return _utilisation(outcome)
    hot = _hot_owner(outcome)
    shares = [
        load.utilisation - (hot_share if load.client == hot else 0.0)
        for load in outcome.loads
        if load.utilisation is not None
    ]
    return max(shares, default=0.0) if len(shares) == len(outcome.loads) else float("inf")


def _behind(outcome: CandidateOutcome, objective: Objective) -> float:
    """Return the part of a hot queue's load, in consumers, that its owner never works off and one with less would."""
    hot_share = _hot_share(outcome, objective)
    if hot_share is None or hot_share > 1.0:
        return 0.0
    hot = _hot_owner(outcome)
    used = [load.utilisation or 0.0 for load in outcome.loads if load.client == hot]
    return max(0.0, max(used, default=0.0) - 1.0)


def _hot_share(outcome: CandidateOutcome, objective: Objective) -> float | None:
    """Return what the hottest queue takes of one consumer where that alone is above the bound, else ``None``."""
    share = outcome.hot_utilisation
    return None if share is None or share <= objective.max_utilisation else share


def _hot_owner(outcome: CandidateOutcome) -> str | None:
    return next((owned.owner for owned in outcome.owners if owned.queue == outcome.hot_queue), None)


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
