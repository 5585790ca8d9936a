"""``MACHINE_ROOM_NEARBY``: which rooms of brokers and clients, and which inner strategy, explain what was observed.

The rooms are a user's code (``MachineRoomResolver``) and not visible. Brokers' rooms come from somebody who knows, or
from the brokers' names; clients' rooms follow from ownership: a room with a client of its own is served by nobody else.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.rocketmq import Averagely, MachineRoomNearby
from planner.inference.even_strategies import even_strategies_that_fit
from planner.inference.explanation import Freedom, Options
from planner.inference.families import FamilyResult, SearchSpace, first_wrong, with_inner
from planner.inference.observation import IntArray, OwnershipView

NEARBY = "MACHINE_ROOM_NEARBY"
ELSEWHERE = "elsewhere"
"""The room of clients that are in none of the brokers' rooms; which one it is makes no difference."""

_MOST_STEPS = 20_000
_SEPARATORS = ("@", "-", ".")

MachineRooms = Mapping[str, str]


def nearby(space: SearchSpace) -> FamilyResult:
    """Return every pair of room maps with every inner strategy that explains what was observed."""
    parameters: dict[str, list[Options]] = defaultdict(list)
    is_whole, reason = True, ""
    for broker_rooms in _broker_rooms(space):
        maps = ClientRooms(space, broker_rooms)
        for client_rooms in maps.all():
            subviews = _subviews(space.views, broker_rooms, client_rooms)
            if subviews is None:
                continue
            both_maps = {"brokers": dict(broker_rooms), "clients": dict(client_rooms)}
            for fitting in with_inner(even_strategies_that_fit(subviews, space.most_virtual_nodes), {}):
                inner, nodes = fitting["inner"], {key: value for key, value in fitting.items() if key != "inner"}
                parameters[f"{NEARBY}-{inner}"].append({"machine_rooms": both_maps, **nodes})
            reason = reason or _reason(space, broker_rooms, client_rooms)
        is_whole = is_whole and maps.is_whole
    return FamilyResult(
        Freedom.SETS, dict(parameters), f"no rooms of brokers and clients fit: {reason}" if reason else "", is_whole
    )


def _reason(space: SearchSpace, broker_rooms: MachineRooms, client_rooms: MachineRooms) -> str:
    return first_wrong(space.views, MachineRoomNearby(Averagely(), broker_rooms, client_rooms), f"{NEARBY}-AVG") or ""


def _broker_rooms(space: SearchSpace) -> Sequence[MachineRooms]:
    """Return the room maps to try: the known ones, else those that the names suggest, each partition once."""
    brokers = space.brokers
    known = [
        machine_rooms
        for machine_rooms in space.search.broker_rooms
        if all(machine_rooms.get(broker) for broker in brokers)
    ]
    if known or not brokers:
        return known
    by_prefix = [
        {broker: broker.partition(separator)[0] for broker in brokers}
        for separator in _SEPARATORS
        if all(broker.find(separator) > 0 for broker in brokers)
    ]
    maps = [*by_prefix, {broker: broker for broker in brokers}]
    return list({_partition(machine_rooms): machine_rooms for machine_rooms in reversed(maps)}.values())[::-1]


def _partition(machine_rooms: MachineRooms) -> frozenset[frozenset[str]]:
    members: dict[str, set[str]] = defaultdict(set)
    for broker, machine_room in machine_rooms.items():
        members[machine_room].add(broker)
    return frozenset(map(frozenset, members.values()))


def _subviews(
    views: Sequence[OwnershipView], broker_rooms: MachineRooms, client_rooms: MachineRooms
) -> list[OwnershipView] | None:
    """Return each room's queues with the clients that share them; ``None`` when somebody else owns one."""
    subviews = []
    for view in views:
        machine_rooms = np.array([broker_rooms[queue.broker] for queue in view.queues])
        homes = np.array([client_rooms[client] for client in view.clients])
        for machine_room in dict.fromkeys(machine_rooms.tolist()):
            slots: IntArray = np.flatnonzero(homes == machine_room)
            subview = view.subview(
                np.flatnonzero(machine_rooms == machine_room), slots if len(slots) else np.arange(len(homes))
            )
            if subview is None:
                return None
            subviews.append(subview)
    return subviews


@dataclass
class ClientRooms:
    """All room maps of the clients that agree with which client owns what in which broker room; rooms only, no inner
    strategy.

    A client in a room is one reason why nobody outside owns its queues. So two clients exclude each other's rooms when
    they were there together and one owns queues of the room that is the other's and not its own.
    """

    space: SearchSpace
    broker_rooms: MachineRooms
    is_whole: bool = True

    def all(self) -> Iterator[MachineRooms]:
        """Yield the maps, at most as many as may be tried; ``is_whole`` reports afterwards whether these were all."""
        owned_at, present = self._times()
        clients = sorted(
            self.space.clients, key=lambda client: -sum(bin(t).count("1") for t in owned_at[client].values())
        )
        machine_rooms = list(dict.fromkeys(self.broker_rooms.values()))
        outside = _free_name(machine_rooms)
        choices = {client: self._choices(client, machine_rooms, outside, owned_at[client]) for client in clients}

        def agree(first: str, machine_room: str, other: str, home: str) -> bool:
            together = present[first] & present[other]
            return machine_room == home or not together & (
                owned_at[first].get(home, 0) | owned_at[other].get(machine_room, 0)
            )

        yield from self._search(clients, choices, agree)

    def _search(
        self, clients: Sequence[str], choices: Mapping[str, Sequence[str]], agree: Callable[[str, str, str, str], bool]
    ) -> Iterator[MachineRooms]:
        chosen: dict[str, str] = {}
        left = [iter(choices[clients[0]])] if clients else []
        steps = maps = 0
        while left:
            client = clients[len(left) - 1]
            chosen.pop(client, None)
            machine_room = next(left[-1], None)
            steps += 1
            if machine_room is None:
                left.pop()
            elif all(agree(client, machine_room, other, home) for other, home in chosen.items()):
                chosen[client] = machine_room
                if len(left) < len(clients):
                    left.append(iter(choices[clients[len(left)]]))
                    continue
                yield dict(chosen)
                maps += 1
            if maps == self.space.most_tried or steps > _MOST_STEPS:
                self.is_whole = False
                return

    def _times(self) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
        """Return, as bits by snapshot, when each client held queues of which room, and when it was there."""
        owned_at: dict[str, dict[str, int]] = {client: defaultdict(int) for client in self.space.clients}
        present: dict[str, int] = defaultdict(int)
        for view in self.space.views:
            for slot, client in enumerate(view.clients):
                present[client] |= 1 << view.snapshot
                for pick in np.flatnonzero(view.owned[slot]).tolist():
                    owned_at[client][self.broker_rooms[view.queues[pick].broker]] |= 1 << view.snapshot
        return owned_at, present

    def _choices(
        self, client: str, machine_rooms: Sequence[str], outside: str, owned_at: Mapping[str, int]
    ) -> Sequence[str]:
        """Return the client's possible rooms: the known one, else the likeliest first."""
        known = self.space.search.client_rooms.get(client)
        if known is not None:
            return [known if known in machine_rooms else outside]
        return sorted(
            [*machine_rooms, outside],
            key=lambda machine_room: (not _is_named(client, machine_room), machine_room not in owned_at),
        )


def _is_named(client: str, machine_room: str) -> bool:
    return any(client.startswith(machine_room + separator) for separator in _SEPARATORS)


def _free_name(machine_rooms: Sequence[str]) -> str:
    name = ELSEWHERE
    while name in machine_rooms:
        name += "-"
    return name
