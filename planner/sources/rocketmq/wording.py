"""Names in sentences: the first ones, and how many more."""

from collections.abc import Iterable
from typing import Final

from planner.model.queues import MessageQueue

_NAMED: Final = 5
"""Names that one sentence holds before it says "and N more"."""


def some(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def short(queue: MessageQueue) -> str:
    """Return broker and number of a queue whose topic the sentence names already."""
    return f"{queue.broker}/{queue.queue_id}"
