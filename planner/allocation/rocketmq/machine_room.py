"""``AllocateMessageQueueByMachineRoom``, as it is since 4.8.0 (until 4.7.1 it mixed up the rooms)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import Owners, nobody, without_later_slots
from planner.model.queues import MessageQueue


def room_of_broker(broker: str) -> str | None:
    """Return the room in ``room@name``; ``None`` for names that the class does not accept.

    The name must split on ``@`` into exactly two parts in Java's way, which drops empty parts from the end: ``r@``
    is one part and has no room, ``r@b@`` is two and has, ``r@@b`` three and has not, ``@b`` lies in room "".
    """
    segments = broker.split("@")
    while segments and not segments[-1]:
        segments.pop()
    return segments[0] if len(segments) == 2 else None


@dataclass(frozen=True, slots=True)
class MachineRoom:
    """``AllocateMessageQueueByMachineRoom``: the queues of the named rooms over **all** clients.

    ``rooms`` is the ``consumeridcs`` of the client. Queues of other rooms have no owner. Blocks are
    contiguous; the remainder goes one each to the first clients, taken **from the tail**: 7 queues over
    3 clients: 0 1 6 | 2 3 | 4 5.

    Shares are counted over the whole group, so when clients carry different rooms, each room's queues have
    holes where the clients of other rooms stand (``consequences.ownership`` computes those mixtures).
    """

    rooms: frozenset[str]
    name: str = "MACHINE_ROOM"
    is_positional: bool = True

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        owners = nobody(len(queues))
        if not clients:
            return owners
        kept = self.kept(queues)
        share = len(kept) // len(clients)
        regular = share * len(clients)
        slots = np.arange(len(kept), dtype=np.intp)
        if share:
            slots[:regular] //= share
        slots[regular:] -= regular
        owners[kept] = slots
        return without_later_slots(owners, clients)

    def kept(self, queues: Sequence[MessageQueue]) -> NDArray[np.intp]:
        """Return the indexes of the queues whose broker lies in one of the rooms."""
        is_kept: dict[str, bool] = {}
        for queue in queues:
            if queue.broker not in is_kept:
                is_kept[queue.broker] = room_of_broker(queue.broker) in self.rooms
        return np.flatnonzero([is_kept[queue.broker] for queue in queues])
