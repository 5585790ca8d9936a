"""``MACHINE_ROOM_NEARBY``: which rooms of brokers and clients, and which inner strategy, explain what was seen.

The rooms are a user's code (``MachineRoomResolver``) and not visible. Brokers' rooms come from somebody who knows, or
from the brokers' names; clients' rooms follow from ownership: a room with a client of its own is served by nobody else.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.rocketmq import Averagely, MachineRoomNearby
from planner.inference.explanation import Freedom, Options
from planner.inference.families import Found, World, first_wrong, with_inner
from planner.inference.observation import IntArray, View
from planner.inference.spreads import spreads_that_fit

NEARBY = "MACHINE_ROOM_NEARBY"
ELSEWHERE = "elsewhere"
"""The room of clients that are in none of the brokers' rooms; which one it is makes no difference."""

_MOST_STEPS = 20_000
_SEPARATORS = ("@", "-", ".")

Rooms = Mapping[str, str]


def nearby(world: World) -> Found:
    """Return every pair of room maps with every inner strategy that explains what was seen."""
    found: dict[str, list[Options]] = defaultdict(list)
    is_whole, reason = True, ""
    for broker_rooms in _broker_rooms(world):
        maps = ClientRooms(world, broker_rooms)
        for client_rooms in maps.all():
            parts = _parts(world.views, broker_rooms, client_rooms)
            if parts is None:
                continue
            rooms = {"brokers": dict(broker_rooms), "clients": dict(client_rooms)}
            for fitting in with_inner(spreads_that_fit(parts, world.most_virtual_nodes), {}):
                inner, nodes = fitting["inner"], {key: value for key, value in fitting.items() if key != "inner"}
                found[f"{NEARBY}-{inner}"].append({"machine_rooms": rooms, **nodes})
            reason = reason or _reason(world, broker_rooms, client_rooms)
        is_whole = is_whole and maps.is_whole
    return Found(
        Freedom.SETS, dict(found), f"no rooms of brokers and clients fit: {reason}" if reason else "", is_whole
    )


def _reason(world: World, broker_rooms: Rooms, client_rooms: Rooms) -> str:
    return first_wrong(world.views, MachineRoomNearby(Averagely(), broker_rooms, client_rooms), f"{NEARBY}-AVG") or ""


def _broker_rooms(world: World) -> Sequence[Rooms]:
    """Return the room maps to try: the known ones, else those that the names suggest, each partition once."""
    brokers = world.brokers
    known = [rooms for rooms in world.search.broker_rooms if all(rooms.get(broker) for broker in brokers)]
    if known or not brokers:
        return known
    by_prefix = [
        {broker: broker.partition(separator)[0] for broker in brokers}
        for separator in _SEPARATORS
        if all(broker.find(separator) > 0 for broker in brokers)
    ]
    maps = [*by_prefix, {broker: broker for broker in brokers}]
    return list({_partition(rooms): rooms for rooms in reversed(maps)}.values())[::-1]


def _partition(rooms: Rooms) -> frozenset[frozenset[str]]:
    members: dict[str, set[str]] = defaultdict(set)
    for broker, room in rooms.items():
        members[room].add(broker)
    return frozenset(map(frozenset, members.values()))


def _parts(views: Sequence[View], broker_rooms: Rooms, client_rooms: Rooms) -> list[View] | None:
    """Return each room's queues with the clients that share them; ``None`` when somebody else holds one."""
    parts = []
    for view in views:
        rooms = np.array([broker_rooms[queue.broker] for queue in view.queues])
        homes = np.array([client_rooms[client] for client in view.clients])
        for room in dict.fromkeys(rooms.tolist()):
            slots: IntArray = np.flatnonzero(homes == room)
            part = view.part(np.flatnonzero(rooms == room), slots if len(slots) else np.arange(len(homes)))
            if part is None:
                return None
            parts.append(part)
    return parts


@dataclass
class ClientRooms:
    """All room maps of the clients that agree with who holds what in which broker room; rooms only, no inner strategy.

    A client in a room is one reason why nobody outside holds its queues. So two clients exclude each other's rooms when
    they were there together and one holds queues of the room that is the other's and not its own.
    """

    world: World
    broker_rooms: Rooms
    is_whole: bool = True

    def all(self) -> Iterator[Rooms]:
        """Yield the maps, at most as many as may be tried; ``is_whole`` tells afterwards whether these were all."""
        holds, present = self._times()
        clients = sorted(self.world.clients, key=lambda client: -sum(bin(t).count("1") for t in holds[client].values()))
        rooms = list(dict.fromkeys(self.broker_rooms.values()))
        outside = _free_name(rooms)
        choices = {client: self._choices(client, rooms, outside, holds[client]) for client in clients}

        def agree(one: str, room: str, other: str, home: str) -> bool:
            together = present[one] & present[other]
            return room == home or not together & (holds[one].get(home, 0) | holds[other].get(room, 0))

        yield from self._search(clients, choices, agree)

    def _search(
        self, clients: Sequence[str], choices: Mapping[str, Sequence[str]], agree: Callable[[str, str, str, str], bool]
    ) -> Iterator[Rooms]:
        chosen: dict[str, str] = {}
        left = [iter(choices[clients[0]])] if clients else []
        steps = maps = 0
        while left:
            client = clients[len(left) - 1]
            chosen.pop(client, None)
            room = next(left[-1], None)
            steps += 1
            if room is None:
                left.pop()
            elif all(agree(client, room, other, home) for other, home in chosen.items()):
                chosen[client] = room
                if len(left) < len(clients):
                    left.append(iter(choices[clients[len(left)]]))
                    continue
                yield dict(chosen)
                maps += 1
            if maps == self.world.most_tried or steps > _MOST_STEPS:
                self.is_whole = False
                return

    def _times(self) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
        """Return, as bits by snapshot, when each client held queues of which room, and when it was there."""
        holds: dict[str, dict[str, int]] = {client: defaultdict(int) for client in self.world.clients}
        present: dict[str, int] = defaultdict(int)
        for view in self.world.views:
            for slot, client in enumerate(view.clients):
                present[client] |= 1 << view.snapshot
                for pick in np.flatnonzero(view.held[slot]).tolist():
                    holds[client][self.broker_rooms[view.queues[pick].broker]] |= 1 << view.snapshot
        return holds, present

    def _choices(self, client: str, rooms: Sequence[str], outside: str, holds: Mapping[str, int]) -> Sequence[str]:
        """Return the client's possible rooms: the known one, else the likeliest first."""
        known = self.world.search.client_rooms.get(client)
        if known is not None:
            return [known if known in rooms else outside]
        return sorted([*rooms, outside], key=lambda room: (not _is_named(client, room), room not in holds))


def _is_named(client: str, room: str) -> bool:
    return any(client.startswith(room + separator) for separator in _SEPARATORS)


def _free_name(rooms: Sequence[str]) -> str:
    name = ELSEWHERE
    while name in rooms:
        name += "-"
    return name
