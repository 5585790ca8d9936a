"""What a strategy is: a name, and the owner of every queue of one topic."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.model.queues import MessageQueue

Owners = NDArray[np.intp]
"""One entry a queue: the index of its owner in the client list, -1 for nobody."""

NOBODY = -1


class Strategy(Protocol):
    """An allocation strategy of RocketMQ clients, for one topic at a time.

    Both lists come sorted, as the clients sort them before they allocate (``RebalanceImpl#rebalanceByTopic``).
    ``is_positional`` says that the owner depends on positions in the two lists only, not on the names; what a
    change moves can then be told before a new client's name is known.
    """

    @property
    def name(self) -> str:
        """The name as the client's ``getName()`` spells it."""
        ...

    @property
    def is_positional(self) -> bool: ...

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue; with no clients every queue is owned by ``NOBODY``."""
        ...
