"""What one backtest plays: recorded arrivals, the group, its limits and the prices."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.demand.events import Event
from planner.model.queues import Queue

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

STEP_S = 5.0
"""Length of one step of the simulated group, in seconds; also the commit interval of clients of both systems."""
SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Prices:
    """Flat prices in consumer-hours: of one rebalance, and of one minute with a message later than allowed."""

    rebalance_h: float
    late_minute_h: float


@dataclass(frozen=True)
class Scenario:
    """One group and its recorded load.

    ``messages`` has one row an interval and one column a queue, in the order of ``queues`` (sorted as the clients sort
    them); the first ``history_s`` seconds are known beforehand. ``capacity`` is in messages per second and consumer.
    ``events`` are known times with another load, which the arrivals have in them; the play begins at ``begins_at``,
    which is known where there are events.
    """

    queues: Sequence[Queue]
    messages: Floats
    interval_s: float
    history_s: float
    system: str
    strategy: str
    capacity: float
    pod_start_s: float
    lowest: int
    highest: int
    start: int
    late_after_s: float
    prices: Prices
    every_s: float
    seed: int
    events: tuple[Event, ...] = ()
    begins_at: datetime | None = None

    @cached_property
    def played_from(self) -> int:
        """The first interval that is played."""
        return round(self.history_s / self.interval_s)

    @property
    def history(self) -> Floats:
        """Messages of the intervals that are known beforehand."""
        return self.messages[: self.played_from]

    @property
    def played(self) -> Floats:
        """Messages of the intervals that are played."""
        return self.messages[self.played_from :]

    @property
    def steps(self) -> int:
        """How many steps of ``STEP_S`` are played."""
        return int(len(self.played) * self.interval_s // STEP_S)

    @property
    def topic_sizes(self) -> tuple[int, ...]:
        """How many queues each topic has, topics in order."""
        names = [queue.topic for queue in self.queues]
        return tuple(names.count(name) for name in dict.fromkeys(names))

    @property
    def largest_topic(self) -> int:
        """How many queues the largest topic has."""
        return max(self.topic_sizes)
