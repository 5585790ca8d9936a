"""What the shares of a topic's queues say of its producers: whether they go round, or keys choose the queue."""

from collections.abc import Sequence
from math import sqrt

SURE = 2.6
"""Standard deviations: one topic in two hundred is taken for the wrong kind by chance."""
LEAST_MEAN = 30.0
"""Messages of a queue in the mean, below which counts say nothing."""


def are_shares_even(counts: Sequence[float]) -> bool | None:
    """Return whether so many messages came into the queues of one topic round by round, or unevenly; ``None``: unclear.

    Producers that go round leave counts that differ by their threads at most; messages that fall on queues by chance,
    or by many keys, differ like Poisson counts. The sum of squares over the mean tells the two apart (chi-squared,
    Wilson and Hilferty's approximation): far smaller, nobody chose by keys; far larger, keys or fixed queues did.
    """
    mean, degrees = sum(counts) / max(len(counts), 1), len(counts) - 1
    if degrees < 1 or mean < LEAST_MEAN:
        return None
    squares = sum((count - mean) ** 2 for count in counts) / mean
    variance = 2 / (9 * degrees)
    deviations = ((squares / degrees) ** (1 / 3) - (1 - variance)) / sqrt(variance)
    if abs(deviations) < SURE:
        return None
    return bool(deviations < 0)
