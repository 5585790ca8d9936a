"""How even the loads of a group's consumers are, whatever is counted: queues, or messages per second."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance of one allocation, in the unit of the loads.

    ``imbalance`` is the largest load over the mean: 1 is even, 2 means that the busiest consumer carries twice its
    part; it is 1 when there is no load at all. ``idle`` counts the consumers without load.
    """

    consumers: int
    least: float
    mean: float
    most: float
    imbalance: float
    idle: int


def balance(loads: Sequence[float]) -> Balance:
    """Return how even these loads are, one a consumer; none at all count as even.

    Loads 4 4 0 0: mean 2, imbalance 2, two idle.
    """
    if not loads:
        return Balance(0, 0.0, 0.0, 0.0, 1.0, 0)
    mean = sum(loads) / len(loads)
    most = float(max(loads))
    idle = sum(load == 0 for load in loads)
    return Balance(len(loads), float(min(loads)), mean, most, most / mean if mean else 1.0, idle)
