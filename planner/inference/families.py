"""Families of strategies: from what was observed to every set of parameters under which a strategy explains it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from planner.allocation.rocketmq import Averagely, AveragelyByCircle, ConsistentHash, MachineRoom, PopSharing
from planner.allocation.rocketmq.consistent_hash import DEFAULT_VIRTUAL_NODES
from planner.allocation.rocketmq.machine_room import room_of_broker
from planner.allocation.strategy import Strategy
from planner.inference.even_strategies import HASH, EvenStrategies, expected, rows_right, virtual_nodes_that_fit
from planner.inference.explanation import Freedom, Options
from planner.inference.observation import OwnershipView
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class Search:
    """How far to search.

    When the members name a strategy, hashing is tried with up to ``most_virtual_nodes``, and up to ``most_tried`` sets
    of parameters of any other; when nobody names one, with up to ``guessed_virtual_nodes`` and ``most_guessed``.
    ``broker_rooms`` are room maps that somebody knows (broker to room; without any they are derived from the brokers'
    names), ``client_rooms`` the rooms of known clients.
    """

    most_virtual_nodes: int = 1_024
    guessed_virtual_nodes: int = 256
    most_tried: int = 4_096
    most_guessed: int = 64
    broker_rooms: tuple[Mapping[str, str], ...] = ()
    client_rooms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """All views of one group, and whether its members name their strategy."""

    views: tuple[OwnershipView, ...]
    search: Search
    is_named: bool

    @property
    def most_tried(self) -> int:
        """How many sets of parameters of one strategy to try."""
        return self.search.most_tried if self.is_named else self.search.most_guessed

    @property
    def most_virtual_nodes(self) -> int:
        """Up to how many virtual nodes to try hashing with."""
        return self.search.most_virtual_nodes if self.is_named else self.search.guessed_virtual_nodes

    @property
    def clients(self) -> tuple[str, ...]:
        """Every client id ever observed, in order of appearance."""
        return tuple(dict.fromkeys(client for view in self.views for client in view.clients))

    @property
    def brokers(self) -> tuple[str, ...]:
        """Every broker with a queue, in order of appearance."""
        return tuple(dict.fromkeys(queue.broker for view in self.views for queue in view.queues))


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """What one family found: for each strategy's name the sets of parameters that explain what was observed.

    ``reason`` says in a sentence why nothing was found. Without ``is_whole`` there are more sets than were tried.
    """

    freedom: Freedom
    parameters: Mapping[str, Sequence[Options]]
    reason: str = ""
    is_whole: bool = True


Family = Callable[[SearchSpace], FamilyResult]


def averagely(space: SearchSpace) -> FamilyResult:
    """``AVG``: no parameter."""
    return _plain(space, Averagely())


def by_circle(space: SearchSpace) -> FamilyResult:
    """``AVG_BY_CIRCLE``: no parameter."""
    return _plain(space, AveragelyByCircle())


def _plain(space: SearchSpace, strategy: Strategy) -> FamilyResult:
    wrong = first_wrong(space.views, strategy, strategy.name)
    return FamilyResult(Freedom.NONE, {} if wrong else {strategy.name: [{}]}, wrong or "")


def consistent_hash(space: SearchSpace) -> FamilyResult:
    """``CONSISTENT_HASH``: every number of virtual nodes, the default first."""
    most = space.most_virtual_nodes
    fitting = virtual_nodes_that_fit(space.views, most).tolist()
    if not fitting:
        wrong = first_wrong(space.views, ConsistentHash(), f"{HASH} with {DEFAULT_VIRTUAL_NODES} virtual nodes")
        return FamilyResult(Freedom.NUMBER, {}, f"no number of virtual nodes up to {most} fits: {wrong}")
    fitting.sort(key=lambda nodes: (nodes != DEFAULT_VIRTUAL_NODES, nodes))
    freedom = Freedom.NONE if fitting[0] == DEFAULT_VIRTUAL_NODES else Freedom.NUMBER
    return FamilyResult(freedom, {HASH: [{"virtual_nodes": nodes} for nodes in fitting]})


def pop_averagely(space: SearchSpace) -> FamilyResult:
    """The broker's POP mode over ``AVG``."""
    return _pop(space, Averagely())


def pop_by_circle(space: SearchSpace) -> FamilyResult:
    """The broker's POP mode over ``AVG_BY_CIRCLE``."""
    return _pop(space, AveragelyByCircle())


def _pop(space: SearchSpace, inner: Strategy) -> FamilyResult:
    """Return every ``popShareQueueNum`` that makes a difference and fits.

    0 stands for everything that lets everybody take everything; among m clients that is m - 1 and more, too.
    """
    if any(_is_exclusive(view) for view in space.views):
        return FamilyResult(
            Freedom.NUMBER, {}, f"{inner.name} in POP mode lets members share queues, but each has one owner"
        )
    most = max((len(set(view.clients)) for view in space.views), default=0)
    shares = range(max(1, min(most - 1, space.most_tried)))
    fitting = [{"pop_share_queues": share} for share in shares if is_right(space.views, PopSharing(inner, share))]
    wrong = first_wrong(space.views, PopSharing(inner, 0), f"{inner.name} in POP mode with popShareQueueNum 0")
    parameters = {inner.name: fitting} if fitting else {}
    return FamilyResult(Freedom.NUMBER, parameters, f"no popShareQueueNum fits: {wrong}", len(shares) >= most - 1)


def _is_exclusive(view: OwnershipView) -> bool:
    """Return whether no queue has two owners although several clients could share it."""
    can_share = len(set(view.clients)) > 1 and not view.queues[0].is_retry
    return can_share and view.all_known and not (view.owned.sum(axis=0) > 1).any()


def machine_room(space: SearchSpace) -> FamilyResult:
    """``MACHINE_ROOM``: every set of rooms; a room whose queues somebody owns is in it, one left alone is not."""
    if all(room_of_broker(broker) is None for broker in space.brokers):
        return FamilyResult(Freedom.SETS, {}, "MACHINE_ROOM gives out nothing, as no broker's name carries a room")
    required, optional = _rooms(space.views)
    sets, is_whole = subsets(optional, space.most_tried)
    fitting: list[Options] = [
        {"consumer_rooms": sorted(required | more)}
        for more in sets
        if is_right(space.views, MachineRoom(frozenset(required | more)))
    ]
    wrong = first_wrong(space.views, MachineRoom(frozenset(required)), f"MACHINE_ROOM for rooms {_named(required)}")
    return FamilyResult(Freedom.SETS, {"MACHINE_ROOM": fitting} if fitting else {}, wrong or "", is_whole)


def _rooms(views: Sequence[OwnershipView]) -> tuple[set[str], list[str]]:
    """Return the rooms that must be among the consumers', and those of which nothing is known."""
    owned_rooms, unowned_rooms = set[str | None](), set[str | None]()
    everywhere = {room_of_broker(queue.broker) for view in views for queue in view.queues}
    for view in views:
        columns = set(np.flatnonzero(view.owned.any(axis=0)).tolist())
        for column, queue in enumerate(view.queues):
            if column in columns:
                owned_rooms.add(room_of_broker(queue.broker))
            elif view.all_known:
                unowned_rooms.add(room_of_broker(queue.broker))
    required = {room for room in owned_rooms if room is not None}
    return required, sorted(room for room in everywhere - owned_rooms - unowned_rooms if room is not None)


def _named(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def config(space: SearchSpace) -> FamilyResult:
    """``CONFIG``: each client's list is what it owns, which only a client that owns another part later refutes.

    The list of a client that does not report its queues is not among them: the search is then not whole.
    """
    word: dict[tuple[str, MessageQueue], bool] = {}
    for view in space.views:
        for slot in np.flatnonzero(view.known).tolist():
            for queue, owns in zip(view.queues, view.owned[slot].tolist(), strict=True):
                client = view.clients[slot]
                if word.setdefault((client, queue), owns) != owns:
                    return FamilyResult(Freedom.LISTS, {}, f"{client} holds {queue} at one time and not at another")
    lists: dict[str, list[Options]] = {client: [] for client, _ in word}
    for (client, queue), owns in sorted(word.items()):
        if owns:
            lists[client].append(queue_document(queue))
    is_whole = all(view.is_complete for view in space.views)
    return FamilyResult(Freedom.LISTS, {"CONFIG": [{"config": lists}]}, is_whole=is_whole)


def queue_document(queue: MessageQueue) -> Options:
    """Return the queue as options name it."""
    return {"topic": queue.topic, "broker": queue.broker, "queue_id": queue.queue_id}


def with_inner(strategies: EvenStrategies, options: Options) -> list[Options]:
    """Return the options with each inner strategy that fits, the default number of virtual nodes first."""
    nodes = sorted(strategies.virtual_nodes, key=lambda number: (number != DEFAULT_VIRTUAL_NODES, number))
    even = [{**options, "inner": name} for name in strategies.even]
    return [*even, *({**options, "inner": HASH, "virtual_nodes": number} for number in nodes)]


def is_right(views: Sequence[OwnershipView], strategy: Strategy) -> bool:
    """Return whether every client owns what the strategy gives it."""
    return all(rows_right(view, strategy).all() for view in views)


def first_wrong(views: Sequence[OwnershipView], strategy: Strategy, name: str) -> str | None:
    """Return in a sentence the first queue that the strategy gives to another client; ``None`` when there is none."""
    for view in views:
        wrong = (expected(view, strategy) != view.owned) & view.known[:, None]
        if wrong.any():
            column = int(np.flatnonzero(wrong.any(axis=0))[0])
            given = np.flatnonzero(expected(view, strategy)[:, column]).tolist()
            holders = np.flatnonzero(view.owned[:, column]).tolist()
            return f"{name} would give {view.queues[column]} to {_clients_at(view, given)}, but {_has(view, holders)}"
    return None


def _clients_at(view: OwnershipView, slots: Sequence[int]) -> str:
    return " and ".join(view.clients[slot] for slot in slots) or "nobody"


def _has(view: OwnershipView, slots: Sequence[int]) -> str:
    if not slots:
        return "nobody says it has it"
    return f"{_clients_at(view, slots)} {'has' if len(slots) == 1 else 'have'} it"


def subsets(names: Sequence[str], most: int) -> tuple[list[frozenset[str]], bool]:
    """Return all subsets, small ones first, and True; of more than ``most`` none, single ones and all, and False."""
    if 2 ** min(len(names), 64) <= most:
        return [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)], True
    return [frozenset(), *(frozenset((name,)) for name in names[: most - 2]), frozenset(names)], False
