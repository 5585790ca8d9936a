"""Our own strategies around an inner one: the hosts, clients and reservations that explain what was seen."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from math import prod

import numpy as np

from planner.allocation.extra.names import host_of, stable_name
from planner.inference.explanation import Freedom, Options
from planner.inference.families import Found, World, queue_document, subsets, with_inner
from planner.inference.observation import BoolArray, View
from planner.inference.spreads import spreads_that_fit
from planner.model.queues import MessageQueue

_NAME = Callable[[str], str]


def specified_machine(world: World) -> Found:
    """``SPECIFIED_MACHINE``: every set of hosts; a host that holds queues is in it, one that never does may be."""
    busy = {host_of(client) for view in world.views for client in _holders(view)}
    idle = sorted({host_of(client) for client in world.clients} - busy)
    sets, is_whole = subsets(idle, world.most_tried)
    fitting: list[Options] = []
    for more in sets:
        hosts = busy | more
        parts = _each_part(world.views, partial(_on_hosts, hosts=hosts))
        fitting += _with_inner_parts(world, parts, {"hosts": sorted(hosts)})
    reason = "no set of hosts fits with any inner strategy"
    return Found(Freedom.SETS, {"SPECIFIED_MACHINE": fitting} if fitting else {}, reason, is_whole)


def vip(world: World) -> Found:
    """``VIP``: every set of VIP clients; the VIP queues are those that these hold while others are there.

    Queues that were never seen while both kinds of clients were there may be VIP queues or not.
    """
    names = sorted({stable_name(client) for client in world.clients})
    sets, is_whole = subsets(names, world.most_tried)
    fitting: list[Options] = []
    for clients in sets:
        sure, free = _vip_queues(world.views, clients)
        if sure is None:
            continue
        choices, are_all = subsets([str(place) for place in range(len(free))], max(2, world.most_tried // len(sets)))
        is_whole = is_whole and are_all
        for chosen in choices:
            queues = sure | {free[int(place)] for place in chosen}
            parts = _each_part(world.views, partial(_vip_parts, clients=clients, queues=queues))
            options = {"vip_queues": [queue_document(q) for q in sorted(queues)], "vip_clients": sorted(clients)}
            fitting += _with_inner_parts(world, parts, options)
    reason = "no set of VIP clients and queues fits with any inner strategy"
    return Found(Freedom.LISTS, {"VIP": fitting} if fitting else {}, reason, is_whole)


def static(world: World) -> Found:
    """``STATIC``: every choice of reservations; a queue can be reserved for whoever holds it whenever it is there."""
    possible = _reservable(world.views)
    is_whole = prod(1 + len(names) for names in possible.values()) <= world.most_tried
    fitting: list[Options] = []
    for reserved in _reservations(possible, world.most_tried if is_whole else 2):
        if not _has_reserved(world.views, reserved):
            continue
        parts = _each_part(world.views, partial(_unreserved, reserved=reserved))
        lists: dict[str, list[Options]] = {}
        for queue, name in reserved.items():
            lists.setdefault(name, []).append(queue_document(queue))
        fitting += _with_inner_parts(world, parts, {"reserved": lists})
    reason = "no reservations fit with any inner strategy"
    is_whole = is_whole and all(view.is_complete for view in world.views)  # a silent client may have reservations
    return Found(Freedom.LISTS, {"STATIC": fitting} if fitting else {}, reason, is_whole)


def _with_inner_parts(world: World, parts: Sequence[View] | None, options: Options) -> list[Options]:
    if parts is None:
        return []
    return with_inner(spreads_that_fit(parts, world.most_virtual_nodes), options)


Split = Iterable[tuple[BoolArray, BoolArray]]
"""Pairs of queues (columns) and the clients (rows) that share them."""


def _each_part(views: Sequence[View], split: Callable[[View], Split]) -> list[View] | None:
    """Return the parts of all views; ``None`` when a client outside a part holds one of its queues."""
    parts = []
    for view in views:
        for queues, clients in split(view):
            part = view.part(np.flatnonzero(queues), np.flatnonzero(clients))
            if part is None:
                return None
            parts.append(part)
    return parts


def _on_hosts(view: View, hosts: set[str]) -> Split:
    yield np.ones(len(view.queues), dtype=np.bool_), _named(view, host_of, hosts)


def _named(view: View, name_of: _NAME, names: Iterable[str]) -> BoolArray:
    wanted = set(names)
    return np.array([name_of(client) in wanted for client in view.clients], dtype=np.bool_)


def _holders(view: View) -> Iterator[str]:
    return (view.clients[slot] for slot in np.flatnonzero(view.held.any(axis=1)).tolist())


def _vip_queues(
    views: Sequence[View], clients: frozenset[str]
) -> tuple[set[MessageQueue] | None, Sequence[MessageQueue]]:
    """Return the queues that are VIP's, ``None`` when views disagree, and those of which nothing tells."""
    word: dict[MessageQueue, bool] = {}
    for view in views:
        chosen = _named(view, stable_name, clients)
        if not chosen.any() or chosen.all():
            continue
        for place, queue in enumerate(view.queues):
            held = view.held[:, place]
            if held.any() and word.setdefault(queue, bool(held[chosen].any())) != held[chosen].any():
                return None, ()
    everywhere = {queue for view in views for queue in view.queues}
    return {queue for queue, is_vip in word.items() if is_vip}, sorted(everywhere - word.keys())


def _vip_parts(view: View, clients: frozenset[str], queues: set[MessageQueue]) -> Split:
    chosen = _named(view, stable_name, clients)
    is_vip = np.array([queue in queues for queue in view.queues], dtype=np.bool_)
    yield is_vip, chosen if chosen.any() else ~chosen
    yield ~is_vip, ~chosen if not chosen.all() else chosen


def _reservable(views: Sequence[View]) -> dict[MessageQueue, tuple[str, ...]]:
    """Return for each queue the names that hold it whenever they are there and tell, and do so at least once."""
    able: dict[MessageQueue, dict[str, bool]] = {}
    for view in views:
        slots = _first_slots(view)
        for place, queue in enumerate(view.queues):
            names = able.setdefault(queue, {})
            for name, slot in slots.items():
                if view.known[slot]:
                    names[name] = names.get(name, True) and bool(view.held[slot, place])
    return {queue: tuple(name for name, holds in names.items() if holds) for queue, names in able.items()}


def _first_slots(view: View) -> dict[str, int]:
    slots: dict[str, int] = {}
    for slot, client in enumerate(view.clients):
        slots.setdefault(stable_name(client), slot)
    return slots


def _reservations(possible: Mapping[MessageQueue, Sequence[str]], most: int) -> Iterator[dict[MessageQueue, str]]:
    """Yield choices: everything reserved first, nothing last; of more than ``most`` only these two."""
    choices = [(*names, None) for names in possible.values()]
    every = product(*choices)
    some = (tuple(one[0] for one in choices), (None,) * len(choices)) if most <= 2 else islice(every, most)
    for chosen in dict.fromkeys(some):
        yield {queue: name for queue, name in zip(possible, chosen, strict=True) if name is not None}


def _has_reserved(views: Sequence[View], reserved: Mapping[MessageQueue, str]) -> bool:
    """Return whether every client that is there holds what is reserved for it, and nobody else does."""
    for view in views:
        slots = _first_slots(view)
        for place, queue in enumerate(view.queues):
            slot = slots.get(reserved.get(queue, ""))
            if slot is None:
                continue
            others = np.flatnonzero(view.held[:, place]).tolist()
            if others != [slot] and (others or view.known[slot]):
                return False
    return True


def _unreserved(view: View, reserved: Mapping[MessageQueue, str]) -> Split:
    slots = _first_slots(view)
    free = np.array([reserved.get(queue) not in slots for queue in view.queues], dtype=np.bool_)
    yield free, np.ones(len(view.clients), dtype=np.bool_)
