"""What would do instead of more pods: more threads, larger batches, more members a process. A what-if, no forecast.

It is bounded by the queues, by the clients' own settings and by what was measured. What consumers share beyond that
(what their listeners call, the processors of a pod) nobody reports: every figure is the most that may come of it.
"""

from collections.abc import Iterable
from typing import Final

from planner.model.snapshot import GroupSnapshot
from planner.simulation.group_model import group_model
from planner.simulation.need import Need
from planner.simulation.outcome import CandidateOutcome
from planner.text.words import counted, scaled

USED: Final = 0.8
"""A group whose busiest consumer is used less than this needs neither more pods nor anything instead of them."""


def second_lever(
    snapshot: GroupSnapshot,
    staying: CandidateOutcome | None,
    chosen: CandidateOutcome | None,
    bound: float | None = None,
) -> str | None:
    """Return what would do instead of going from ``staying`` to ``chosen``, without the last stop.

    Where ``chosen`` adds no pod it is what would do without another one. ``bound`` is how much the busiest consumer may
    be used (0 to 1). ``None`` where no more pods are asked for and the present ones carry the load.
    """
    used = staying.utilisation if staying else None
    added = chosen.count - snapshot.count if chosen else 0
    if not snapshot.clients or (added <= 0 and (used is None or used < min(bound or USED, USED))):
        return None
    unit = scaled(snapshot.members_per_pod or 1)
    instead = f"Instead of {counted(added, f'more {unit}')}" if added > 0 else f"Without another {unit}"
    factor = _factor(snapshot, staying, chosen if added > 0 else None, bound)
    return group_model(snapshot).instead_of_pods(
        Need(instead, factor, chosen.members if chosen and added > 0 else None, used)
    )


def _factor(
    snapshot: GroupSnapshot, staying: CandidateOutcome | None, chosen: CandidateOutcome | None, bound: float | None
) -> float:
    """Return how many times what a member does now it would have to do."""
    now, then = (outcome.utilisation if outcome else None for outcome in (staying, chosen))
    if chosen is None:
        return max((now or 1.0) / (bound or USED), 1.0)
    if now and then:
        return max(now / then, 1.0)
    return chosen.members / len(snapshot.clients)


def next_useful(outcomes: Iterable[CandidateOutcome], current: int) -> CandidateOutcome | None:
    """Return the outcome of the smallest useful count above the present one, of those that keep up where any does.

    ``None`` without any.
    """
    more = [outcome for outcome in outcomes if outcome.count > current and outcome.is_useful]
    enough = [outcome for outcome in more if outcome.keeps_up]
    return min(enough or more, key=lambda outcome: outcome.count, default=None)
