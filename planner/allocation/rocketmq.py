"""RocketMQ's strategies (``org.apache.rocketmq.client.consumer.rebalance``, the same in 4.7.1 to 5.5.0)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.strategy import NOBODY, Owners
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class Averagely:
    """``AllocateMessageQueueAveragely``: contiguous blocks, the first clients one queue larger.

    8 queues over 3 clients: 0 1 2 | 3 4 5 | 6 7.
    """

    name: str = "AVG"
    is_positional: bool = True

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        if not clients:
            return np.full(len(queues), NOBODY, dtype=np.intp)
        share, larger = divmod(len(queues), len(clients))
        sizes = np.full(len(clients), share, dtype=np.intp)
        sizes[:larger] += 1
        return np.repeat(np.arange(len(clients), dtype=np.intp), sizes)


@dataclass(frozen=True, slots=True)
class AveragelyByCircle:
    """``AllocateMessageQueueAveragelyByCircle``: queue k belongs to client k mod m.

    8 queues over 3 clients: 0 3 6 | 1 4 7 | 2 5.
    """

    name: str = "AVG_BY_CIRCLE"
    is_positional: bool = True

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        if not clients:
            return np.full(len(queues), NOBODY, dtype=np.intp)
        return np.arange(len(queues), dtype=np.intp) % len(clients)
