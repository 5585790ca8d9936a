"""``AllocateMachineRoomNearby``: an inner strategy, room by room (the same in 4.7.1 to 5.5.0)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.allocation.ordering import java_sorted
from planner.allocation.strategy import NOBODY, Holdings, Owners, Strategy, nobody
from planner.errors import BadInputError
from planner.model.machine_rooms import room_of
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """``AllocateMachineRoomNearby`` over ``inner``.

    A room's queues go to the clients of that room. A room with queues and no client is shared by **all**
    clients, rooms in name order. Rooms that have a client are never shared, so one client in a room with many
    queues owns them all. ``broker_rooms`` and ``client_rooms`` are the user's ``MachineRoomResolver``; ``*`` in
    a name stands for anything (``10.1.*``, ``*@near-*``), and of several that fit the longest counts.
    """

    inner: Strategy
    broker_rooms: Mapping[str, str]
    client_rooms: Mapping[str, str]
    is_positional: bool = False

    @property
    def name(self) -> str:
        """``MACHINE_ROOM_NEARBY-`` and the inner name."""
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def check(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> None:
        """Refuse a broker or a client without a room, as the class does."""
        for client in clients:
            _room(self.client_rooms, client, "client")
        for broker in dict.fromkeys(queue.broker for queue in queues):
            _room(self.broker_rooms, broker, "broker")

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        owners = nobody(len(queues))
        if not clients:
            return owners
        everyone = np.arange(len(clients), dtype=np.intp)
        members = _by_room([_room(self.client_rooms, client, "client") for client in clients])
        for room, picks in self._rooms(queues).items():
            slots = members.get(room, everyone)
            local = self.inner.owners([queues[pick] for pick in picks], [clients[slot] for slot in slots])
            owners[picks] = np.where(local == NOBODY, NOBODY, slots[local])
        return owners

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return the pairs in the class's order: the own room's queues first, then the rooms without clients."""
        owners = self.owners(queues, clients)
        if not clients:
            return Holdings(owners[:0], owners[:0])
        own = {_room(self.client_rooms, client, "client") for client in clients}
        rank = np.zeros(len(queues), dtype=np.intp)
        rooms = self._rooms(queues)
        for position, room in enumerate(java_sorted(rooms), start=1):
            rank[rooms[room]] = 0 if room in own else position
        order = np.argsort(rank, kind="stable")
        order = order[owners[order] != NOBODY]
        return Holdings(owners[order], order)

    def _rooms(self, queues: Sequence[MessageQueue]) -> dict[str, NDArray[np.intp]]:
        return _by_room([_room(self.broker_rooms, queue.broker, "broker") for queue in queues])


def _room(rooms: Mapping[str, str], name: str, kind: str) -> str:
    room = room_of(rooms, name)
    if not room:
        raise BadInputError(
            f"MACHINE_ROOM_NEARBY has no room for {kind} {name!r}: the client's class refuses the whole topic then, "
            f"so name its room"
        )
    return room


def _by_room(rooms: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    indexes: dict[str, list[int]] = {}
    for index, room in enumerate(rooms):
        indexes.setdefault(room, []).append(index)
    return {room: np.array(of_room, dtype=np.intp) for room, of_room in indexes.items()}
