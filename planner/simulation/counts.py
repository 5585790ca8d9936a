"""Which consumer counts can be useful at all."""

from collections.abc import Iterable, Sequence


def largest_share(topic_sizes: Iterable[int], consumers: int) -> int:
    """Return the most queues that one consumer can own: the sum over topics of ceil(queues / consumers).

    Every topic is allocated by itself with the same order of clients, so the larger shares of all topics
    fall on the first client (rocketmq.md 4.2).
    """
    return sum(-(-size // consumers) for size in topic_sizes)


def relieves(topic_sizes: Sequence[int], count: int, per_pod: int = 1) -> bool:
    """Return whether some consumer would own more queues with one pod fewer, of ``per_pod`` consumers each."""
    if count == 1:
        return True
    fewer, these = (largest_share(topic_sizes, pods * per_pod) for pods in (count - 1, count))
    return these < fewer


def useful_counts(topic_sizes: Sequence[int], lowest: int, highest: int, per_pod: int = 1) -> tuple[int, ...]:
    """Return the counts of pods from ``lowest`` to ``highest`` that change the largest share, in ascending order.

    A count is useful when with one pod fewer some consumer would own more queues; any other count pays for a pod that
    relieves nobody. ``lowest`` itself is always among them: nothing smaller is allowed.

    16 and 6 queues, 1 to 16 pods of 1 consumer: 1, 2, 3, 4, 6, 8, 16. 24 queues, 1 to 8 pods of 4: 1, 2, 3, 6.
    """
    return tuple(
        count for count in range(lowest, highest + 1) if count == lowest or relieves(topic_sizes, count, per_pod)
    )
