"""What is predicted for members that share messages: no queue has an owner, so that none moves and none is hot."""

from collections.abc import Sequence

from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad, OwnedQueue


def shared_outcome(
    snapshot: GroupSnapshot,
    loads: Sequence[ConsumerLoad],
    unknowns: Sequence[str],
    *,
    most_queues: int,
    is_useful: bool,
) -> CandidateOutcome:
    """Return the outcome of members with these loads, the busiest first; ``most_queues`` is how many one reads."""
    first = loads[0]
    return CandidateOutcome(
        count=len(loads),
        strategy=snapshot.strategy or "",
        is_current=len(loads) == len(snapshot.clients),
        is_useful=is_useful,
        largest_share=most_queues,
        moved_fewest=0,
        moved_most=0,
        utilisation=first.utilisation,
        keeps_up=None if first.utilisation is None else first.utilisation < 1.0,
        wait_s=first.wait_s,
        drain_s=first.drain_s,
        hot_queue=None,
        hot_utilisation=None,
        loads=tuple(loads),
        owners=tuple(OwnedQueue(state.queue, None) for state in snapshot.data_queues),
        unknowns=tuple(unknowns),
    )


def sharing_clients(snapshot: GroupSnapshot, count: int, staying: Sequence[str] | None) -> tuple[str, ...]:
    """Return who the ``count`` members are: ``staying`` or the first of the present ones, then newcomers."""
    newcomers = (f"new consumer {number}" for number in range(1, count - len(snapshot.clients) + 1))
    return (*(staying or snapshot.clients)[:count], *newcomers)


def unknown_of_shared(snapshot: GroupSnapshot, count: int, staying: Sequence[str] | None) -> tuple[str, ...]:
    """Return in sentences what is not known of any group whose members share messages."""
    unknowns = []
    if count < len(snapshot.clients) and staying is None:
        unknowns.append(f"which {len(snapshot.clients) - count} consumers stop: shown for the last in order")
    if snapshot.capacity is None:
        unknowns.append("what one consumer can do: no utilisation, wait or drain time follows")
    return tuple(unknowns)
