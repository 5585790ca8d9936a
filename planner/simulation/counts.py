"""Which consumer counts can be useful at all."""

from collections.abc import Iterable, Sequence


def largest_share(topic_sizes: Iterable[int], consumers: int) -> int:
    """Return the most queues that one consumer can own: the sum over topics of ceil(queues / consumers).

    Every topic is allocated by itself with the same order of clients, so the larger shares of all topics
    fall on the first client (rocketmq.md 4.2).
    """
    return sum(-(-size // consumers) for size in topic_sizes)


def useful_counts(topic_sizes: Sequence[int], lowest: int, highest: int) -> tuple[int, ...]:
    """Return the counts from ``lowest`` to ``highest`` that change the largest share, in ascending order.

    A count is useful when with one consumer fewer somebody would own more queues; any other count pays for a
    consumer that relieves nobody. ``lowest`` itself is always among them: nothing smaller is allowed.

    16 and 6 queues, 1 to 16 consumers: 1, 2, 3, 4, 6, 8, 16.
    """
    return tuple(
        count
        for count in range(lowest, highest + 1)
        if count == lowest or largest_share(topic_sizes, count) < largest_share(topic_sizes, count - 1)
    )
