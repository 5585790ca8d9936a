"""``AllocateMessageQueueAveragely`` and ``AllocateMessageQueueAveragelyByCircle`` (the same in 4.7.1 to 5.5.0)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.strategy import Owners, nobody, without_later_slots
from planner.model.queues import MessageQueue


def block_owners(queue_count: int, client_count: int) -> Owners:
    """Return AVG's owners by position: contiguous blocks, the first ``queue_count % client_count`` one larger."""
    if client_count == 0:
        return nobody(queue_count)
    share, larger = divmod(queue_count, client_count)
    if share == 0:
        return np.arange(queue_count, dtype=np.intp)
    large_blocks = np.arange(larger * (share + 1), dtype=np.intp) // (share + 1)
    small_blocks = larger + np.arange((client_count - larger) * share, dtype=np.intp) // share
    return np.concatenate((large_blocks, small_blocks))


def circle_owners(queue_count: int, client_count: int) -> Owners:
    """Return AVG_BY_CIRCLE's owners by position: queue k belongs to client k mod ``client_count``."""
    if client_count == 0:
        return nobody(queue_count)
    return np.arange(queue_count, dtype=np.intp) % client_count


@dataclass(frozen=True, slots=True)
class Averagely:
    """``AllocateMessageQueueAveragely``: contiguous blocks, the first clients one queue larger.

    8 queues over 3 clients: 0 1 2 | 3 4 5 | 6 7.
    """

    name: str = "AVG"
    is_positional: bool = True

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        return without_later_slots(block_owners(len(queues), len(clients)), clients)


@dataclass(frozen=True, slots=True)
class AveragelyByCircle:
    """``AllocateMessageQueueAveragelyByCircle``: queue k belongs to client k mod m.

    8 queues over 3 clients: 0 3 6 | 1 4 7 | 2 5.
    """

    name: str = "AVG_BY_CIRCLE"
    is_positional: bool = True

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        return without_later_slots(circle_owners(len(queues), len(clients)), clients)
