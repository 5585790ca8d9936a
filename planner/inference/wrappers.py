"""Our own strategies around an inner one: the hosts, clients and reservations that explain what was observed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from math import prod

import numpy as np

from planner.allocation.extra.names import host_of, stable_name
from planner.inference.even_strategies import even_strategies_that_fit
from planner.inference.explanation import Freedom, Options
from planner.inference.families import FamilyResult, SearchSpace, queue_document, subsets, with_inner
from planner.inference.observation import BoolArray, OwnershipView
from planner.model.queues import MessageQueue

_NAME = Callable[[str], str]


def specified_machine(space: SearchSpace) -> FamilyResult:
    """``SPECIFIED_MACHINE``: every set of hosts; a host that owns queues is in it, one that never does may be."""
    busy = {host_of(client) for view in space.views for client in _holders(view)}
    idle = sorted({host_of(client) for client in space.clients} - busy)
    sets, is_whole = subsets(idle, space.most_tried)
    fitting: list[Options] = []
    for more in sets:
        hosts = busy | more
        subviews = _each_subview(space.views, partial(_on_hosts, hosts=hosts))
        fitting += _with_inner_subviews(space, subviews, {"hosts": sorted(hosts)})
    reason = "no set of hosts fits with any inner strategy"
    return FamilyResult(Freedom.SETS, {"SPECIFIED_MACHINE": fitting} if fitting else {}, reason, is_whole)


def vip(space: SearchSpace) -> FamilyResult:
    """``VIP``: every set of VIP clients; the VIP queues are those that these own while others are there.

    Queues that were never observed while both kinds of clients were there may be VIP queues or not.
    """
    names = sorted({stable_name(client) for client in space.clients})
    sets, is_whole = subsets(names, space.most_tried)
    fitting: list[Options] = []
    for clients in sets:
        sure, free = _vip_queues(space.views, clients)
        if sure is None:
            continue
        choices, are_all = subsets([str(number) for number in range(len(free))], max(2, space.most_tried // len(sets)))
        is_whole = is_whole and are_all
        for chosen in choices:
            queues = sure | {free[int(number)] for number in chosen}
            subviews = _each_subview(space.views, partial(_vip_split, clients=clients, queues=queues))
            options = {"vip_queues": [queue_document(q) for q in sorted(queues)], "vip_clients": sorted(clients)}
            fitting += _with_inner_subviews(space, subviews, options)
    reason = "no set of VIP clients and queues fits with any inner strategy"
    return FamilyResult(Freedom.LISTS, {"VIP": fitting} if fitting else {}, reason, is_whole)


def static(space: SearchSpace) -> FamilyResult:
    """``STATIC``: every choice of reservations; a queue can be reserved for the client that owns it whenever it is
    there."""
    possible = _reservable(space.views)
    is_whole = prod(1 + len(names) for names in possible.values()) <= space.most_tried
    fitting: list[Options] = []
    for reserved in _reservations(possible, space.most_tried if is_whole else 2):
        if not _has_reserved(space.views, reserved):
            continue
        subviews = _each_subview(space.views, partial(_unreserved, reserved=reserved))
        lists: dict[str, list[Options]] = {}
        for queue, name in reserved.items():
            lists.setdefault(name, []).append(queue_document(queue))
        fitting += _with_inner_subviews(space, subviews, {"reserved": lists})
    reason = "no reservations fit with any inner strategy"
    is_whole = is_whole and all(view.is_complete for view in space.views)  # a silent client may have reservations
    return FamilyResult(Freedom.LISTS, {"STATIC": fitting} if fitting else {}, reason, is_whole)


def _with_inner_subviews(
    space: SearchSpace, subviews: Sequence[OwnershipView] | None, options: Options
) -> list[Options]:
    if subviews is None:
        return []
    return with_inner(even_strategies_that_fit(subviews, space.most_virtual_nodes), options)


Split = Iterable[tuple[BoolArray, BoolArray]]
"""Pairs of queues (columns) and the clients (rows) that share them."""


def _each_subview(
    views: Sequence[OwnershipView], split: Callable[[OwnershipView], Split]
) -> list[OwnershipView] | None:
    """Return the subviews of all views; ``None`` when a client outside a subview owns one of its queues."""
    subviews = []
    for view in views:
        for queues, clients in split(view):
            subview = view.subview(np.flatnonzero(queues), np.flatnonzero(clients))
            if subview is None:
                return None
            subviews.append(subview)
    return subviews


def _on_hosts(view: OwnershipView, hosts: set[str]) -> Split:
    yield np.ones(len(view.queues), dtype=np.bool_), _named(view, host_of, hosts)


def _named(view: OwnershipView, name_of: _NAME, names: Iterable[str]) -> BoolArray:
    chosen_names = set(names)
    return np.array([name_of(client) in chosen_names for client in view.clients], dtype=np.bool_)


def _holders(view: OwnershipView) -> Iterator[str]:
    return (view.clients[slot] for slot in np.flatnonzero(view.owned.any(axis=1)).tolist())


def _vip_queues(
    views: Sequence[OwnershipView], clients: frozenset[str]
) -> tuple[set[MessageQueue] | None, Sequence[MessageQueue]]:
    """Return the queues that are VIP's, ``None`` when views disagree, and those of which nothing is known."""
    word: dict[MessageQueue, bool] = {}
    for view in views:
        chosen = _named(view, stable_name, clients)
        if not chosen.any() or chosen.all():
            continue
        for column, queue in enumerate(view.queues):
            owned = view.owned[:, column]
            if owned.any() and word.setdefault(queue, bool(owned[chosen].any())) != owned[chosen].any():
                return None, ()
    everywhere = {queue for view in views for queue in view.queues}
    return {queue for queue, is_vip in word.items() if is_vip}, sorted(everywhere - word.keys())


def _vip_split(view: OwnershipView, clients: frozenset[str], queues: set[MessageQueue]) -> Split:
    chosen = _named(view, stable_name, clients)
    is_vip = np.array([queue in queues for queue in view.queues], dtype=np.bool_)
    yield is_vip, chosen if chosen.any() else ~chosen
    yield ~is_vip, ~chosen if not chosen.all() else chosen


def _reservable(views: Sequence[OwnershipView]) -> dict[MessageQueue, tuple[str, ...]]:
    """Return for each queue the names that own it whenever they are there and report their queues, and do so at least
    once."""
    able: dict[MessageQueue, dict[str, bool]] = {}
    for view in views:
        slots = _first_slots(view)
        for column, queue in enumerate(view.queues):
            names = able.setdefault(queue, {})
            for name, slot in slots.items():
                if view.known[slot]:
                    names[name] = names.get(name, True) and bool(view.owned[slot, column])
    return {queue: tuple(name for name, owns in names.items() if owns) for queue, names in able.items()}


def _first_slots(view: OwnershipView) -> dict[str, int]:
    slots: dict[str, int] = {}
    for slot, client in enumerate(view.clients):
        slots.setdefault(stable_name(client), slot)
    return slots


def _reservations(possible: Mapping[MessageQueue, Sequence[str]], most: int) -> Iterator[dict[MessageQueue, str]]:
    """Yield choices: everything reserved first, nothing last; of more than ``most`` only these two."""
    choices = [(*names, None) for names in possible.values()]
    every = product(*choices)
    some = (
        (tuple(names_of_queue[0] for names_of_queue in choices), (None,) * len(choices))
        if most <= 2
        else islice(every, most)
    )
    for chosen in dict.fromkeys(some):
        yield {queue: name for queue, name in zip(possible, chosen, strict=True) if name is not None}


def _has_reserved(views: Sequence[OwnershipView], reserved: Mapping[MessageQueue, str]) -> bool:
    """Return whether every client that is there owns what is reserved for it, and nobody else does."""
    for view in views:
        slots = _first_slots(view)
        for column, queue in enumerate(view.queues):
            slot = slots.get(reserved.get(queue, ""))
            if slot is None:
                continue
            others = np.flatnonzero(view.owned[:, column]).tolist()
            if others != [slot] and (others or view.known[slot]):
                return False
    return True


def _unreserved(view: OwnershipView, reserved: Mapping[MessageQueue, str]) -> Split:
    slots = _first_slots(view)
    free = np.array([reserved.get(queue) not in slots for queue in view.queues], dtype=np.bool_)
    yield free, np.ones(len(view.clients), dtype=np.bool_)
