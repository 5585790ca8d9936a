"""``STATIC``: queues reserved for clients by their stable name, the rest shared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.allocation.extra.names import holdings_in_order, owners_among, stable_name
from planner.allocation.rocketmq.averagely import Averagely
from planner.allocation.strategy import Holdings, Owners, Strategy, nobody
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class Static:
    """A queue reserved for a client that is there goes to it; every other queue is spread by ``inner`` over all.

    ``reserved`` maps a queue to a stable client name (``stable_name``: the instance name, so that a restarted pod
    with another address gets its own queues back). Of two clients with one name the first in order gets them. The
    fallback keeps every queue owned: queues of a missing client, new queues, and ``%RETRY%`` queues.

    0 1 for a, 2 3 for b, 6 queues, clients h@a h@b: 0 1 4 | 2 3 5; without b: all to a; with c: 0 1 4 | 2 3 5 | -.
    """

    reserved: Mapping[MessageQueue, str]
    inner: Strategy = field(default_factory=Averagely)
    name_of: Callable[[str], str] = stable_name
    name: str = "STATIC"
    is_positional: bool = False

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        owners = nobody(len(queues))
        if not clients:
            return owners
        fixed, free = self._split(queues, clients)
        slot_of = self._slots_by_name(clients)
        owners[fixed] = [slot_of[self.reserved[queues[pick]]] for pick in fixed]
        owners[free] = owners_among(self.inner, queues, free, clients, np.arange(len(clients)))
        return owners

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return the pairs in the class's order: reserved queues first."""
        return holdings_in_order(self.owners(queues, clients), *self._split(queues, clients))

    def _split(
        self, queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        slot_of = self._slots_by_name(clients)
        is_fixed = np.array([self.reserved.get(queue) in slot_of for queue in queues], dtype=bool)
        return np.flatnonzero(is_fixed), np.flatnonzero(~is_fixed)

    def _slots_by_name(self, clients: Sequence[str]) -> dict[str, int]:
        slots: dict[str, int] = {}
        for index, client in enumerate(clients):
            slots.setdefault(self.name_of(client), index)
        return slots
