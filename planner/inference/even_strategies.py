"""The strategies that give out queues evenly over clients: which of them, with which parameter, gives what was
observed.

``AVG``, ``AVG_BY_CIRCLE`` and ``CONSISTENT_HASH`` stand alone or inside another strategy, which then hands them
subviews.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.allocation.rocketmq import Averagely, AveragelyByCircle, ConsistentHash
from planner.allocation.rocketmq.consistent_hash import (
    Points,
    Ring,
    build_ring,
    java_bytes,
    queue_points,
    ring_points,
)
from planner.allocation.strategy import Strategy, holdings_of
from planner.inference.observation import BoolArray, IntArray, OwnershipView

EVEN: tuple[Strategy, ...] = (Averagely(), AveragelyByCircle())
"""The even strategies without a parameter."""

HASH = ConsistentHash().name


@dataclass(frozen=True, slots=True)
class EvenStrategies:
    """What gives exactly what was observed: the even strategies without a parameter by name, and the virtual nodes of
    hashing."""

    even: tuple[str, ...]
    virtual_nodes: tuple[int, ...]


def even_strategies_that_fit(subviews: Sequence[OwnershipView], most_virtual_nodes: int) -> EvenStrategies:
    """Return the even strategies under which every client of every subview owns what it says it owns.

    Hashing is tried with 0 to ``most_virtual_nodes`` virtual nodes.
    """
    even = tuple(
        strategy.name
        for strategy in EVEN
        if all(_owns_right(subview, strategy.owners(subview.queues, subview.clients)) for subview in subviews)
    )
    return EvenStrategies(even, tuple(virtual_nodes_that_fit(subviews, most_virtual_nodes).tolist()))


def expected(view: OwnershipView, strategy: Strategy) -> BoolArray:
    """Return which client would own what under the strategy, clients in rows and queues in columns."""
    table = np.zeros(view.owned.shape, dtype=np.bool_)
    holdings = holdings_of(strategy, view.queues, view.clients)
    table[holdings.holders, holdings.picks] = True
    return table


def rows_right(view: OwnershipView, strategy: Strategy) -> BoolArray:
    """Return for each client whether the strategy gives it what it says it owns; a silent client is right."""
    right: BoolArray = (expected(view, strategy) == view.owned).all(axis=1) | ~view.known
    return right


def virtual_nodes_that_fit(subviews: Sequence[OwnershipView], most: int) -> IntArray:
    """Return the numbers of virtual nodes, 0 to ``most``, under which all that is known is right, ascending."""
    alive = np.arange(most + 1, dtype=np.intp)
    for subview in subviews:
        if len(set(subview.clients)) < len(subview.clients):
            alive = np.array([nodes for nodes in alive.tolist() if _is_right(subview, nodes)], dtype=np.intp)
        else:
            alive = _surviving(subview, alive)
        if not len(alive):
            break
    return alive


def virtual_nodes_right(view: OwnershipView, most: int) -> BoolArray:
    """Return for 0 to ``most`` virtual nodes (rows) and each client whether it owns what hashing gives it."""
    if len(set(view.clients)) < len(view.clients):
        return np.array([rows_right(view, ConsistentHash(nodes)) for nodes in range(most + 1)], dtype=np.bool_)
    right = np.ones((most + 1, len(view.clients)), dtype=np.bool_)
    right[0] = ~view.owned.any(axis=1)
    rows = np.arange(1, most + 1)
    for column, nearest in enumerate(_nearest(view, most)):
        owners, owns = _owners(nearest), view.owned[:, column]
        right[rows, owners] &= owns[owners]
        for holder in np.flatnonzero(owns).tolist():
            right[1:, holder] &= owners == holder
    return right | ~view.known


def _is_right(subview: OwnershipView, nodes: int) -> bool:
    return _owns_right(subview, _ring(tuple(subview.clients), nodes).lookup(queue_points(subview.queues)))


def _owns_right(subview: OwnershipView, owners: IntArray) -> bool:
    """Return whether every client that reports owns exactly the queues of which it is the owner."""
    table = owners == np.arange(len(subview.clients))[:, None]
    return bool(((table == subview.owned).all(axis=1) | ~subview.known).all())


@lru_cache(maxsize=1_024)
def _ring(clients: tuple[str, ...], nodes: int) -> Ring:
    """Return the ring of a list in which an id occurs twice: laid node by node, so worth keeping."""
    return build_ring(clients, nodes)


def _surviving(subview: OwnershipView, alive: IntArray) -> IntArray:
    """Return those numbers of virtual nodes under which everything known of the subview is right."""
    if not subview.known.any():
        return alive
    none = alive[:0] if subview.owned.any() else alive[alive == 0]
    some = alive[alive > 0]
    for column, nearest in enumerate(_nearest(subview, int(some.max(initial=0)))):
        some = some[_right_owners(subview, column)[_owners(nearest[:, some - 1])]]
        if not len(some):
            break
    return np.concatenate((none, some))


def _right_owners(subview: OwnershipView, column: int) -> BoolArray:
    """Return for each client whether the queue may be its own: the one that says so, or else a silent one."""
    holders = np.flatnonzero(subview.owned[:, column])
    if not len(holders):
        return ~subview.known
    right = np.zeros(len(subview.clients), dtype=np.bool_)
    if len(holders) == 1:
        right[holders] = True
    return right


def _nearest(view: OwnershipView, most: int) -> Iterator[Points]:
    """Yield for each queue how far the nearest point of each client (last one first) lies under 1 to ``most`` nodes.

    A queue's owner is the client with the nearest point at or after its own. Each further node can only come nearer, so
    one running minimum answers all numbers at once.
    """
    if not view.clients or not most:
        return
    points = np.stack([_points(client, most)[:most] for client in reversed(view.clients)])
    for point in queue_points(view.queues):
        distances = points - point  # unsigned: it wraps round the ring
        yield np.minimum.accumulate(distances, axis=1)


def _owners(nearest: Points) -> IntArray:
    """Return the owner for each column; of equal points the later client's counts (``ConsistentHashRouter``)."""
    owners: IntArray = len(nearest) - 1 - np.argmin(nearest, axis=0)
    return owners


def _points(client: str, most: int) -> Points:
    """Return at least ``most`` ring points; counts are rounded up so that one table serves them all."""
    return _point_table(client, 1 << max(0, most - 1).bit_length())


@lru_cache(maxsize=2_048)
def _point_table(client: str, count: int) -> Points:
    prefix = java_bytes(client)
    return ring_points(b"%s-%d" % (prefix, number) for number in range(count))
