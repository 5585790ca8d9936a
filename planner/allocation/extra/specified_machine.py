"""``SPECIFIED_MACHINE``: only clients on named hosts consume."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.allocation.extra.names import host_of, owners_among
from planner.allocation.rocketmq.averagely import Averagely
from planner.allocation.strategy import Owners, Strategy, nobody
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class SpecifiedMachine:
    """The clients on ``hosts`` share all queues by ``inner``; the others idle.

    A client's host is its id up to the first ``@``. With no such client alive nobody consumes: that is the
    purpose (a canary host, a drained room), and it is why a host list belongs under an alert.

    Hosts {10.0.0.1}, clients 10.0.0.1@a, 10.0.0.1@b, 10.0.0.2@c and 4 queues: 0 1 | 2 3 | -.
    """

    hosts: frozenset[str]
    inner: Strategy = field(default_factory=Averagely)
    name_of: Callable[[str], str] = host_of
    name: str = "SPECIFIED_MACHINE"
    is_positional: bool = False

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        slots = np.flatnonzero([self.name_of(client) in self.hosts for client in clients])
        if not len(slots):
            return nobody(len(queues))
        return owners_among(self.inner, queues, np.arange(len(queues)), clients, slots)
