"""Which consumer counts are worth having when queues weigh differently: the largest load at every count."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.allocation.ordering import java_sorted
from planner.allocation.rocketmq import Averagely, AveragelyByCircle, ConsistentHash, MachineRoom
from planner.allocation.rocketmq.consistent_hash import client_points, queue_points
from planner.allocation.strategy import NOBODY, Strategy
from planner.model.queues import MessageQueue

Loads = NDArray[np.float64]
Counts = NDArray[np.intp]
Topic = tuple[Sequence[MessageQueue], Loads]
"""The sorted queues of one topic and the weight of each (a rate, or 1)."""

_CELLS = 1 << 20
"""Cells of a table that is worked on at once, so that memory stays bounded whatever the group."""


def undominated_counts(counts: Sequence[int], largest: Loads) -> tuple[int, ...]:
    """Return the counts that no smaller one equals or beats: their largest load is below all before.

    Counts 1 2 3 4 with largest loads 8 4 5 3: 1, 2 and 4.
    """
    best = np.minimum.accumulate(largest)
    is_new = np.append(True, best[1:] < best[:-1])
    return tuple(count for count, new in zip(counts, is_new.tolist(), strict=False) if new)


def largest_loads(
    strategy: Strategy, topics: Sequence[Topic], highest: int, clients: Sequence[str] | None = None
) -> Loads:
    """Return the largest load of one consumer, all topics together, for the counts 1 to ``highest``.

    Where names decide (``is_positional`` is false), ``clients`` are those present: the first n of them at count n, in
    the order in which they would start. Queues without an owner weigh on no client.
    """
    if highest < 1 or not topics:
        return np.zeros(max(0, highest))
    add = _ADDITIONS.get(type(strategy))
    if add is not None:
        return _row_maxima(lambda counts, table: [add(strategy, topic, counts, table) for topic in topics], highest)
    if isinstance(strategy, ConsistentHash) and strategy.virtual_nodes and clients and _are_distinct(clients):
        return _hash_loads(strategy, topics, clients[:highest])
    return _loads_by_allocation(strategy, topics, highest, clients)


def _are_distinct(clients: Sequence[str]) -> bool:
    return len(set(clients)) == len(clients)


def _row_maxima(fill: Callable[[Counts, Loads], object], highest: int) -> Loads:
    """Return the row maxima of the table of loads by (count, client), filled some rows at a time."""
    rows = max(1, _CELLS // highest)
    maxima = []
    for first in range(1, highest + 1, rows):
        counts = np.arange(first, min(first + rows, highest + 1), dtype=np.intp)
        table = np.zeros((len(counts), int(counts[-1])))
        fill(counts, table)
        maxima.append(table.max(axis=1))
    return np.concatenate(maxima)


def _add_blocks(_: Strategy, topic: Topic, counts: Counts, table: Loads) -> None:
    """Add AVG's loads: differences of running sums at the block bounds."""
    weights = topic[1]
    share, larger = np.divmod(len(weights), counts)
    slots = np.arange(table.shape[1] + 1, dtype=np.intp)
    bounds = slots * share[:, None] + np.minimum(slots, larger[:, None])
    sums = np.append(0.0, np.cumsum(weights))[np.minimum(bounds, len(weights))]
    table += sums[:, 1:] - sums[:, :-1]


def _add_circle(_: Strategy, topic: Topic, counts: Counts, table: Loads) -> None:
    """Add AVG_BY_CIRCLE's loads."""
    weights = topic[1]
    owners = np.arange(len(weights), dtype=np.intp) % counts[:, None]
    _add_owned(owners, weights, table)


def _add_rooms(strategy: Strategy, topic: Topic, counts: Counts, table: Loads) -> None:
    """Add MACHINE_ROOM's loads: equal blocks, and the remainder one each from the tail."""
    assert isinstance(strategy, MachineRoom)
    weights = topic[1][strategy.kept(topic[0])]
    indices = np.arange(len(weights), dtype=np.intp)
    share = (len(weights) // counts)[:, None]
    regular = share * counts[:, None]
    owners = np.where(indices < regular, indices // np.maximum(share, 1), indices - regular)
    _add_owned(owners, weights, table)


def _add_owned(owners: NDArray[np.intp], weights: Loads, table: Loads) -> None:
    """Add the weights to their owners' cells, row by row of ``owners``."""
    rows, width = table.shape
    cells = owners + (np.arange(rows, dtype=np.intp) * width)[:, None]
    row_weights = np.broadcast_to(weights, owners.shape)
    table += np.bincount(cells.ravel(), weights=row_weights.ravel(), minlength=rows * width).reshape(rows, width)


_ADDITIONS: dict[type, Callable[[Strategy, Topic, Counts, Loads], None]] = {
    Averagely: _add_blocks,
    AveragelyByCircle: _add_circle,
    MachineRoom: _add_rooms,
}


def _hash_loads(strategy: ConsistentHash, topics: Sequence[Topic], clients: Sequence[str]) -> Loads:
    """Return the largest loads under CONSISTENT_HASH when the clients start one after the other.

    A queue belongs to the client whose next virtual node is nearest ahead of it; a newcomer takes it exactly when its
    own is nearer. So the owner at every count is a running minimum over the clients, in the order of starting. On
    equal points the client that sorts last wins, hence its rank in the low bits.
    """
    queues = [queue for topic in topics for queue in topic[0]]
    weights = np.concatenate([topic[1] for topic in topics])
    rank_of = {client: rank for rank, client in enumerate(java_sorted(clients))}
    client_of_rank = np.empty(len(clients), dtype=np.intp)
    for index, client in enumerate(clients):
        client_of_rank[len(clients) - 1 - rank_of[client]] = index
    nearest = _nearest(queue_points(queues), clients, strategy.virtual_nodes)
    lowered = np.array([len(clients) - 1 - rank_of[client] for client in clients], dtype=np.uint64)
    best = np.minimum.accumulate((nearest << np.uint64(32)) | lowered, axis=1)
    owners = client_of_rank[(best & np.uint64(0xFFFFFFFF)).astype(np.intp)].T

    def fill(counts: Counts, table: Loads) -> None:
        _add_owned(owners[counts[0] - 1 : counts[-1]], weights, table)

    return _row_maxima(fill, len(clients))


def _nearest(points: NDArray[np.uint32], clients: Sequence[str], virtual_nodes: int) -> NDArray[np.uint64]:
    """Return for each queue and client the distance round the ring to the client's next virtual node."""
    distances = np.empty((len(points), len(clients)), dtype=np.uint64)
    step = max(1, _CELLS // max(1, len(points) * virtual_nodes))
    for first in range(0, len(clients), step):
        own = np.stack([client_points(client, 0, virtual_nodes) for client in clients[first : first + step]], axis=1)
        distances[:, first : first + step] = (own[:, None, :] - points[:, None]).min(axis=0)
    return distances


def _loads_by_allocation(
    strategy: Strategy, topics: Sequence[Topic], highest: int, clients: Sequence[str] | None
) -> Loads:
    """Return the largest loads by allocating at every count; without names, clients stand for positions."""
    names = clients if clients is not None else [f"{position:09}" for position in range(highest)]
    largest = []
    for count in range(1, min(highest, len(names)) + 1):
        present = java_sorted(names[:count])
        loads = np.zeros(count)
        for queues, weights in topics:
            owners = strategy.owners(queues, present)
            owned = owners != NOBODY
            loads += np.bincount(owners[owned], weights=weights[owned], minlength=count)
        largest.append(loads.max())
    return np.array(largest)
