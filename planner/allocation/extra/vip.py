"""``VIP``: chosen queues go to chosen consumers, the rest to the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.allocation.extra.names import holdings_in_order, owners_among, stable_name
from planner.allocation.rocketmq.averagely import Averagely
from planner.allocation.strategy import Holdings, Owners, Strategy, nobody
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class Vip:
    """``vip_queues`` over the clients named in ``vip_clients``, the other queues over the other clients.

    Clients are named by instance (``stable_name``). Each part is spread by ``inner`` for itself. A part whose
    clients are all missing is spread over the clients that are left: when the VIP consumers go, only the VIP queues
    move; when they come back, only the VIP queues move back. Nothing is unowned while anybody is there.

    VIP queues {0, 1}, VIP clients {v}, 6 queues, clients h@a h@b h@v: 2 3 | 4 5 | 0 1; without v: 0 2 3 | 1 4 5.
    """

    vip_queues: frozenset[MessageQueue]
    vip_clients: frozenset[str]
    inner: Strategy = field(default_factory=Averagely)
    name_of: Callable[[str], str] = stable_name
    name: str = "VIP"
    is_positional: bool = False

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        owners = nobody(len(queues))
        if not clients:
            return owners
        is_vip = np.array([self.name_of(client) in self.vip_clients for client in clients], dtype=bool)
        vips, others = np.flatnonzero(is_vip), np.flatnonzero(~is_vip)
        vip_picks, other_picks = self._split(queues)
        owners[vip_picks] = owners_among(self.inner, queues, vip_picks, clients, vips if len(vips) else others)
        owners[other_picks] = owners_among(self.inner, queues, other_picks, clients, others if len(others) else vips)
        return owners

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return the pairs in the class's order: VIP queues first."""
        return holdings_in_order(self.owners(queues, clients), *self._split(queues))

    def _split(self, queues: Sequence[MessageQueue]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        is_chosen = np.array([queue in self.vip_queues for queue in queues], dtype=bool)
        return np.flatnonzero(is_chosen), np.flatnonzero(~is_chosen)
