"""What each member runs by its own list: RocketMQ clients allocate alone, and two strategies can meet in one group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.allocation.rocketmq import Averagely, AveragelyByCircle, MachineRoom, PopSharing
from planner.allocation.rocketmq.consistent_hash import DEFAULT_VIRTUAL_NODES
from planner.allocation.rocketmq.machine_room import room_of_broker
from planner.allocation.strategy import Strategy
from planner.inference.explanation import Evidence, Explanation, Freedom, MemberExplanation, Options
from planner.inference.families import World, config, subsets
from planner.inference.observation import View
from planner.inference.spreads import HASH, rows_right, virtual_nodes_right


@dataclass(frozen=True, slots=True)
class _Way:
    """One strategy with one set of parameters, and the clients whose own list it explains."""

    strategy: str
    options: Options
    freedom: Freedom
    clients: frozenset[str]


def explain_members(world: World, told: Mapping[str, str]) -> tuple[MemberExplanation, ...]:
    """Return for each client that tells what it owns the strategies that explain its own list, the simplest first.

    ``told`` maps a client to the strategy that it names; only that one is then tried. ``CONFIG`` counts only where it
    is named: it explains every list.
    """
    ways = list(_ways(world))
    telling = [client for client in world.clients if any(_row(view, client) is not None for view in world.views)]
    return tuple(
        MemberExplanation(client, told.get(client), tuple(_explanations(world, client, ways, told.get(client))))
        for client in telling
    )


def two_ways(members: Sequence[MemberExplanation]) -> tuple[MemberExplanation, ...] | None:
    """Return the members with the explanations of the simplest pair of strategies that covers them all.

    ``None`` where no two strategies do. Of several pairs with as little freedom all take part.
    """
    cost: dict[str, Freedom] = {}
    for one in (one for member in members for one in member.explanations):
        cost[one.strategy] = max(cost.get(one.strategy, Freedom.NONE), one.freedom)
    pairs = [pair for pair in combinations(sorted(cost), 2) if all(_is_covered(member, pair) for member in members)] + [
        (name, name) for name in cost if all(_is_covered(member, (name,)) for member in members)
    ]
    if not pairs:
        return None
    least = min(cost[one] + cost[other] for one, other in pairs)
    names = {name for one, other in pairs if cost[one] + cost[other] == least for name in (one, other)}
    return tuple(
        MemberExplanation(
            member.client, member.told, tuple(one for one in member.explanations if one.strategy in names)
        )
        for member in members
    )


def _is_covered(member: MemberExplanation, names: Iterable[str]) -> bool:
    return any(one.strategy in names for one in member.explanations)


def _explanations(world: World, client: str, ways: Sequence[_Way], told: str | None) -> Iterator[Explanation]:
    evidence = _evidence(world, client)
    by_name: dict[tuple[str, bool], list[_Way]] = {}
    for way in ways:
        if client in way.clients and told in (None, way.strategy):
            by_name.setdefault((way.strategy, "pop_share_queues" in way.options), []).append(way)
    if told == "CONFIG":
        found = config(world)
        lists = found.parameters.get("CONFIG", [{"config": {}}])[0]["config"]
        yield Explanation("CONFIG", ({"config": {client: lists.get(client, [])}},), found.freedom, evidence)
    for (name, _), group in sorted(by_name.items(), key=lambda entry: (entry[1][0].freedom, entry[0])):
        yield Explanation(name, tuple(way.options for way in group), group[0].freedom, evidence)


def _ways(world: World) -> Iterator[_Way]:
    for strategy in (Averagely(), AveragelyByCircle()):
        yield _Way(strategy.name, {}, Freedom.NONE, _right_clients(world, strategy))
    yield from _hashing(world)
    most = max((len(set(view.clients)) for view in world.views), default=0)
    for inner in (Averagely(), AveragelyByCircle()):
        for share in range(max(1, min(most - 1, world.search.most_guessed))):
            clients = _right_clients(world, PopSharing(inner, share))
            yield _Way(inner.name, {"pop_share_queues": share}, Freedom.NUMBER, clients)
    for rooms in _room_sets(world):
        in_rooms = MachineRoom(frozenset(rooms))
        yield _Way(in_rooms.name, {"consumer_rooms": sorted(rooms)}, Freedom.SETS, _right_clients(world, in_rooms))


def _hashing(world: World) -> Iterator[_Way]:
    most = world.most_virtual_nodes
    wrong: dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
    for view in world.views:
        right = virtual_nodes_right(view, most)
        for slot, client in enumerate(view.clients):
            wrong[client] = wrong.get(client, np.zeros(most + 1, dtype=np.bool_)) | ~right[:, slot]
    for nodes in sorted(range(most + 1), key=lambda number: (number != DEFAULT_VIRTUAL_NODES, number)):
        freedom = Freedom.NONE if nodes == DEFAULT_VIRTUAL_NODES else Freedom.NUMBER
        clients = frozenset(client for client, missed in wrong.items() if not missed[nodes])
        yield _Way(HASH, {"virtual_nodes": nodes}, freedom, clients)


def _room_sets(world: World) -> Sequence[frozenset[str]]:
    rooms = {room_of_broker(broker) for broker in world.brokers}
    named = sorted(room for room in rooms if room is not None)
    return subsets(named, world.search.most_guessed)[0] if named else ()


def _right_clients(world: World, strategy: Strategy) -> frozenset[str]:
    wrong = {
        view.clients[slot] for view in world.views for slot in np.flatnonzero(~rows_right(view, strategy)).tolist()
    }
    return frozenset(world.clients) - wrong


def _row(view: View, client: str) -> int | None:
    """Return the client's row, ``None`` when it is not there or does not tell."""
    if client not in view.clients:
        return None
    slot = list(view.clients).index(client)
    return slot if view.known[slot] else None


def _evidence(world: World, client: str) -> Evidence:
    rows = [(view, _row(view, client)) for view in world.views]
    queues = sum(int(view.held[slot].sum()) for view, slot in rows if slot is not None)
    return Evidence(queues, queues, len({view.snapshot for view, slot in rows if slot is not None}))
