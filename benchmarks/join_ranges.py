"""What one join moves, for every position that a newcomer may take and every kind that it may be.

A newcomer's id is not known beforehand (address, process id, start time). What can be known is where it may sort among
the present ids and, for strategies that look into names, which of few kinds it is (its room, its host, its instance
name). Trying all of them gives an exact range. Under CONSISTENT_HASH the name itself decides through its hash: no range
below "between none and all" is exact there; the mean over all names is, and stands beside a sampled band.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.allocation.extra import SpecifiedMachine, Static, Vip
from planner.allocation.rocketmq import ConsistentHash, MachineRoomNearby
from planner.allocation.rocketmq.consistent_hash import build_ring, queue_points
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.simulation.rocketmq.positions import Topics, count_changed, count_moved_by_position, owner_names

RING = 2**32
_LEAST = "\x00"
_BAND = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class JoinCase:
    """What a newcomer may turn out to be: its position in the sorted list, and its kind where that matters."""

    position: int
    kind: str
    moved: int


@dataclass(frozen=True, slots=True)
class JoinRange:
    """What one newcomer moves over all cases; ``cases`` lists each of them.

    ``is_exact`` is false where a name's hash decides: then ``fewest`` and ``most`` are a band of 90 % of all names,
    ``mean`` is exact for names that hash evenly, and there are no cases.
    """

    fewest: int
    most: int
    mean: float
    is_exact: bool
    cases: tuple[JoinCase, ...] = ()


def join_range(
    strategy: Strategy, topics: Topics, clients: Sequence[str], samples: int = 400, seed: int = 1
) -> JoinRange:
    """Return what one newcomer moves, over every position and kind; ``samples`` and ``seed`` are for the hashed case.

    16 queues under AVG with 4 clients: 4 when it sorts in the middle, 6 when last, 10 when first.
    """
    if _uses_hash(strategy):
        return _hashed_join(strategy, topics, clients, samples, seed)
    if strategy.is_positional and len(set(clients)) == len(clients):
        moved = count_moved_by_position(strategy, topics, clients, len(clients) + 1)
        cases = [JoinCase(position, "any", count) for position, count in enumerate(moved)]
    else:
        cases = _try_joins(strategy, topics, clients)
    counts = [case.moved for case in cases]
    return JoinRange(min(counts), max(counts), float(np.mean(counts)), True, tuple(cases))


def _try_joins(strategy: Strategy, topics: Topics, clients: Sequence[str]) -> list[JoinCase]:
    """Return what each position and kind of newcomer moves, each tried with an id that sorts there."""
    before = owner_names(strategy, topics, clients)
    cases = []
    for position in range(len(clients) + 1):
        newcomer = (clients[position - 1] if position else "") + _LEAST
        joined = [*clients[:position], newcomer, *clients[position:]]
        for kind, adapted in newcomer_kinds(strategy, newcomer):
            cases.append(JoinCase(position, kind, count_changed(before, owner_names(adapted, topics, joined))))
    return cases


def newcomer_kinds(strategy: Strategy, newcomer: str) -> list[tuple[str, Strategy]]:
    """Return each kind of client that ``newcomer`` may be, with the strategy that takes it for that kind."""
    if isinstance(strategy, MachineRoomNearby):
        rooms = sorted({*strategy.broker_rooms.values(), *strategy.client_rooms.values()})
        return [
            (kind, replace(strategy, client_rooms={**strategy.client_rooms, newcomer: room}))
            for kind, room in [*((f"room {room}", room) for room in rooms), ("a room of its own", _unlike(rooms))]
        ]
    if isinstance(strategy, SpecifiedMachine):
        names = {"a named host": next(iter(sorted(strategy.hosts)), None), "another host": _unlike(strategy.hosts)}
    elif isinstance(strategy, Vip):
        names = {"VIP": next(iter(sorted(strategy.vip_clients)), None), "not VIP": _unlike(strategy.vip_clients)}
    elif isinstance(strategy, Static):
        reserved = set(strategy.reserved.values())
        names = {**{f"name {name}": name for name in sorted(reserved)}, "another name": _unlike(reserved)}
    else:
        return [("any", strategy)]
    return [
        (kind, replace(strategy, name_of=_rename_newcomer(newcomer, name, strategy.name_of)))
        for kind, name in names.items()
        if name is not None
    ]


def _rename_newcomer(newcomer: str, name: str, name_of: Callable[[str], str]) -> Callable[[str], str]:
    return lambda client: name if client == newcomer else name_of(client)


def _unlike(names: Iterable[str]) -> str:
    """Return a name that is none of these."""
    return max(names, key=len, default="") + _LEAST


def _uses_hash(strategy: Strategy) -> bool:
    return isinstance(getattr(strategy, "inner", strategy), ConsistentHash)


def _hashed_join(strategy: Strategy, topics: Topics, clients: Sequence[str], samples: int, seed: int) -> JoinRange:
    """Return the exact mean and a sampled band over names that hash evenly, for CONSISTENT_HASH itself.

    A newcomer takes a queue exactly when one of its virtual nodes falls between the queue's point and its owner's.
    """
    if not isinstance(strategy, ConsistentHash):
        raise BadInputError(
            f"strategy {strategy.name} over CONSISTENT_HASH: what a newcomer moves depends on its id: name it"
        )
    points = queue_points([queue for queues in topics for queue in queues])
    ring = build_ring(clients, strategy.virtual_nodes)
    if not len(ring.points):
        everything = 0 if not strategy.virtual_nodes else len(points)
        return JoinRange(everything, everything, float(everything), True)
    owner_points = np.searchsorted(ring.points, points) % len(ring.points)
    # 0 .. RING - 1 points ahead of the queue are the owner's to lose; on the owner's own point the later id wins.
    distances = (ring.points[owner_points] - points).astype(np.float64)
    mean = float((1 - (1 - distances / RING) ** strategy.virtual_nodes).sum())
    random = np.random.default_rng(seed)
    moved = []
    for _ in range(samples):
        own = np.sort(random.integers(0, RING, strategy.virtual_nodes, dtype=np.uint32))
        mine = (own[np.searchsorted(own, points) % len(own)] - points).astype(np.float64)
        moved.append(int((mine < distances).sum()))
    fewest, most = (int(value) for value in np.quantile(moved, _BAND, method="nearest"))
    return JoinRange(fewest, most, mean, False)
