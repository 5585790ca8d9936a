"""The order in which Java sorts names, which the clients sort by before they allocate."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

from planner.model.queues import MessageQueue

_LAST_OF_BASIC_PLANE = "\uffff"
_QUEUE_FIELDS = attrgetter("topic", "broker", "queue_id")


def java_key(text: str) -> bytes:
    """Return a key that orders texts as ``String#compareTo`` does: by UTF-16 code unit, not by code point.

    The two differ beyond the basic plane only: U+1F600 (D83D DE00) comes before U+FF21 in Java, after it in Python.
    """
    return text.encode("utf-16-be", "surrogatepass")


def is_basic(text: str) -> bool:
    """True when code point order and Java order agree on this text: no character beyond U+FFFF."""
    return text.isascii() or max(text) <= _LAST_OF_BASIC_PLANE


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Return the texts in Java's order; equal ones stay, side by side."""
    texts = list(texts)
    if all(map(is_basic, texts)):
        return sorted(texts)
    return sorted(texts, key=java_key)


def sorted_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Return the queues as ``MessageQueue#compareTo`` orders them: topic, broker name, queue id."""
    queues = list(queues)
    names = {queue.topic for queue in queues} | {queue.broker for queue in queues}
    if all(map(is_basic, names)):
        return sorted(queues, key=_QUEUE_FIELDS)
    return sorted(queues, key=lambda queue: (java_key(queue.topic), java_key(queue.broker), queue.queue_id))


def topic_slices(queues: Sequence[MessageQueue]) -> list[tuple[str, slice]]:
    """Return each topic with its stretch of the sorted queues, in order."""
    slices: list[tuple[str, slice]] = []
    start = 0
    for end in range(1, len(queues) + 1):
        if end == len(queues) or queues[end].topic != queues[start].topic:
            slices.append((queues[start].topic, slice(start, end)))
            start = end
    return slices
