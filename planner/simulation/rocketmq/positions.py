"""What one leave moves, for every client that may leave, by the strategies that go by names and by positions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.allocation.rocketmq import ConsistentHash
from planner.allocation.strategy import NOBODY, Strategy
from planner.model.queues import MessageQueue
from planner.simulation.moves import MoveRange

Topics = Sequence[Sequence[MessageQueue]]
"""The sorted queues of each topic."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One client that may leave, and the queues that change owner when it does, its own included."""

    client: str
    moved: int


def departures(strategy: Strategy, topics: Topics, clients: Sequence[str]) -> tuple[Departure, ...]:
    """Return every client with what its leave moves, exactly, the fewest first (equal ones in client order).

    16 queues under AVG with 4 clients: 5 when the second or third leaves, 7 for the first, 9 for the last.
    """
    if strategy.is_positional and len(set(clients)) == len(clients):
        moved = count_moved_by_position(strategy, topics, clients, len(clients) - 1)
    else:
        before = owner_names(strategy, topics, clients)
        moved = [
            count_changed(before, owner_names(strategy, topics, [*clients[:position], *clients[position + 1 :]]))
            for position in range(len(clients))
        ]
    all_departures = (Departure(client, count) for client, count in zip(clients, moved, strict=True))
    return tuple(sorted(all_departures, key=lambda departure: departure.moved))


def leave_range(strategy: Strategy, topics: Topics, clients: Sequence[str], count: int) -> MoveRange | None:
    """Return the exact range of moved queues when ``count`` of the clients stay, for strategies that go by names.

    Under CONSISTENT_HASH nothing moves between clients that stay, so the moved queues are those of the leaving ones,
    however many leave. Elsewhere one leave is tried for every client; ``None`` for several, as every choice would have
    to be tried.
    """
    leaving = len(clients) - count
    if isinstance(strategy, ConsistentHash) and len(set(clients)) == len(clients):
        owners = strategy.owners([queue for queues in topics for queue in queues], clients)
        sizes = np.bincount(owners[owners != NOBODY], minlength=len(clients))
        order = np.argsort(sizes, kind="stable")
        fewest, most = int(sizes[order[:leaving]].sum()), int(sizes[order[count:]].sum())
        return MoveRange(fewest, most, _positions(order[leaving:]), _positions(order[:count]))
    if leaving != 1:
        return None
    all_departures = departures(strategy, topics, clients)
    cheapest, dearest = (list(clients).index(departure.client) for departure in (all_departures[0], all_departures[-1]))
    others = [tuple(position for position in range(len(clients)) if position != gone) for gone in (cheapest, dearest)]
    return MoveRange(all_departures[0].moved, all_departures[-1].moved, others[0], others[1])


def _positions(order: NDArray[np.intp]) -> tuple[int, ...]:
    return tuple(sorted(order.tolist()))


def count_moved_by_position(strategy: Strategy, topics: Topics, clients: Sequence[str], count_after: int) -> list[int]:
    """Return the moved queues for every position that comes or goes, in one pass over the queues.

    With the extra client at position p of the larger list, the smaller list's client o stands at o below p and at
    o + 1 from p on. A queue stays exactly when its two owners correspond so.
    """
    larger = max(len(clients), count_after)
    same, shifted = np.zeros(larger + 1, dtype=np.intp), np.zeros(larger + 1, dtype=np.intp)
    owned = 0
    for queues in topics:
        before = strategy.owners(queues, clients)
        after = strategy.owners(queues, [f"{position:09}" for position in range(count_after)])
        small, large = (before, after) if count_after == larger else (after, before)
        owned_in_both = (small != NOBODY) & (large != NOBODY)
        same += np.bincount(small[owned_in_both & (large == small)], minlength=larger + 1)
        shifted += np.bincount(small[owned_in_both & (large == small + 1)], minlength=larger + 1)
        owned += int((before != NOBODY).sum())
    stay_below = np.append(0, np.cumsum(same))[:larger]
    stay_from = shifted.sum() - np.append(0, np.cumsum(shifted))[:larger]
    return [int(moved) for moved in owned - stay_below - stay_from]


def owner_names(strategy: Strategy, topics: Topics, clients: Sequence[str]) -> list[str | None]:
    """Return the owner's id of every queue, topics one after the other."""
    table = [*clients, None]
    return [table[owner] for queues in topics for owner in strategy.owners(queues, clients).tolist()]


def count_changed(before: Sequence[str | None], after: Sequence[str | None]) -> int:
    """Return how many queues that had an owner have another one, or none, afterwards."""
    return sum(old is not None and old != new for old, new in zip(before, after, strict=True))
