"""What each member runs by its own list: RocketMQ clients allocate alone, and two strategies can meet in one group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.allocation.rocketmq import Averagely, AveragelyByCircle, MachineRoom, PopSharing
from planner.allocation.rocketmq.consistent_hash import DEFAULT_VIRTUAL_NODES
from planner.allocation.rocketmq.machine_room import room_of_broker
from planner.allocation.strategy import Strategy
from planner.inference.even_strategies import HASH, rows_right, virtual_nodes_right
from planner.inference.explanation import Evidence, Explanation, Freedom, MemberExplanation, Options
from planner.inference.families import SearchSpace, config, subsets
from planner.inference.observation import OwnershipView


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One strategy with one set of parameters, and the clients whose own list it explains."""

    strategy: str
    options: Options
    freedom: Freedom
    clients: frozenset[str]


def explain_members(space: SearchSpace, named: Mapping[str, str]) -> tuple[MemberExplanation, ...]:
    """Return for each client that reports what it owns the strategies that explain its own list, the simplest first.

    ``named`` maps a client to the strategy that it names; only that one is then tried. ``CONFIG`` counts only where it
    is named: it explains every list.
    """
    candidates = list(_candidates(space))
    observed_clients = [
        client for client in space.clients if any(_row(view, client) is not None for view in space.views)
    ]
    return tuple(
        MemberExplanation(client, named.get(client), tuple(_explanations(space, client, candidates, named.get(client))))
        for client in observed_clients
    )


def two_strategies(members: Sequence[MemberExplanation]) -> tuple[MemberExplanation, ...] | None:
    """Return the members with the explanations of the simplest pair of strategies that covers them all.

    ``None`` where no two strategies do. Of several pairs with as little freedom all count.
    """
    cost: dict[str, Freedom] = {}
    for explanation in (explanation for member in members for explanation in member.explanations):
        cost[explanation.strategy] = max(cost.get(explanation.strategy, Freedom.NONE), explanation.freedom)
    pairs = [pair for pair in combinations(sorted(cost), 2) if all(_is_covered(member, pair) for member in members)] + [
        (name, name) for name in cost if all(_is_covered(member, (name,)) for member in members)
    ]
    if not pairs:
        return None
    least = min(cost[first] + cost[second] for first, second in pairs)
    names = {name for first, second in pairs if cost[first] + cost[second] == least for name in (first, second)}
    return tuple(
        MemberExplanation(
            member.client,
            member.named,
            tuple(explanation for explanation in member.explanations if explanation.strategy in names),
        )
        for member in members
    )


def _is_covered(member: MemberExplanation, names: Iterable[str]) -> bool:
    return any(explanation.strategy in names for explanation in member.explanations)


def _explanations(
    space: SearchSpace, client: str, candidates: Sequence[_Candidate], named: str | None
) -> Iterator[Explanation]:
    evidence = _evidence(space, client)
    by_name: dict[tuple[str, bool], list[_Candidate]] = {}
    for candidate in candidates:
        if client in candidate.clients and named in (None, candidate.strategy):
            by_name.setdefault((candidate.strategy, "pop_share_queues" in candidate.options), []).append(candidate)
    if named == "CONFIG":
        result = config(space)
        lists = result.parameters.get("CONFIG", [{"config": {}}])[0]["config"]
        yield Explanation("CONFIG", ({"config": {client: lists.get(client, [])}},), result.freedom, evidence)
    for (name, _), group in sorted(by_name.items(), key=lambda entry: (entry[1][0].freedom, entry[0])):
        yield Explanation(name, tuple(candidate.options for candidate in group), group[0].freedom, evidence)


def _candidates(space: SearchSpace) -> Iterator[_Candidate]:
    for strategy in (Averagely(), AveragelyByCircle()):
        yield _Candidate(strategy.name, {}, Freedom.NONE, _right_clients(space, strategy))
    yield from _hashing(space)
    most = max((len(set(view.clients)) for view in space.views), default=0)
    for inner in (Averagely(), AveragelyByCircle()):
        for share in range(max(1, min(most - 1, space.search.most_guessed))):
            clients = _right_clients(space, PopSharing(inner, share))
            yield _Candidate(inner.name, {"pop_share_queues": share}, Freedom.NUMBER, clients)
    for machine_rooms in _room_sets(space):
        strategy_of_rooms = MachineRoom(frozenset(machine_rooms))
        yield _Candidate(
            strategy_of_rooms.name,
            {"consumer_rooms": sorted(machine_rooms)},
            Freedom.SETS,
            _right_clients(space, strategy_of_rooms),
        )


def _hashing(space: SearchSpace) -> Iterator[_Candidate]:
    most = space.most_virtual_nodes
    wrong: dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
    for view in space.views:
        right = virtual_nodes_right(view, most)
        for slot, client in enumerate(view.clients):
            wrong[client] = wrong.get(client, np.zeros(most + 1, dtype=np.bool_)) | ~right[:, slot]
    for nodes in sorted(range(most + 1), key=lambda number: (number != DEFAULT_VIRTUAL_NODES, number)):
        freedom = Freedom.NONE if nodes == DEFAULT_VIRTUAL_NODES else Freedom.NUMBER
        clients = frozenset(client for client, missed in wrong.items() if not missed[nodes])
        yield _Candidate(HASH, {"virtual_nodes": nodes}, freedom, clients)


def _room_sets(space: SearchSpace) -> Sequence[frozenset[str]]:
    machine_rooms = {room_of_broker(broker) for broker in space.brokers}
    named = sorted(machine_room for machine_room in machine_rooms if machine_room is not None)
    return subsets(named, space.search.most_guessed)[0] if named else ()


def _right_clients(space: SearchSpace, strategy: Strategy) -> frozenset[str]:
    wrong = {
        view.clients[slot] for view in space.views for slot in np.flatnonzero(~rows_right(view, strategy)).tolist()
    }
    return frozenset(space.clients) - wrong


def _row(view: OwnershipView, client: str) -> int | None:
    """Return the client's row, ``None`` when it is not there or does not report its queues."""
    if client not in view.clients:
        return None
    slot = list(view.clients).index(client)
    return slot if view.known[slot] else None


def _evidence(space: SearchSpace, client: str) -> Evidence:
    rows = [(view, _row(view, client)) for view in space.views]
    queues = sum(int(view.owned[slot].sum()) for view, slot in rows if slot is not None)
    return Evidence(queues, queues, len({view.snapshot for view, slot in rows if slot is not None}))
