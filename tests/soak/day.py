"""The load of a day, and what the consumers made of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.deliveries import Given, Lane, lost, read_given

HOURS = 24
POINTS_AN_HOUR = 4
LATE_S = 60.0
"""A message that waited longer, in real seconds, is late."""


@dataclass(frozen=True)
class Day:
    """Messages per second through a day: a floor, and rises around some hours, each of some height and width in hours.

    ``seconds`` is how long the day takes here.
    """

    seconds: float
    floor: float
    rises: Sequence[tuple[float, float, float]]

    def rate(self, hour: float) -> float:
        """Return the messages per second at an hour; a rise before midnight goes on after it."""
        return self.floor + sum(
            height * math.exp(-((math.remainder(hour - at, HOURS) / width) ** 2)) for at, height, width in self.rises
        )

    def points(self, queues: int) -> tuple[tuple[float, float], ...]:
        """Return the rate to one of so many even queues as (second, messages per second)."""
        hours = (step / POINTS_AN_HOUR for step in range(HOURS * POINTS_AN_HOUR + 1))
        return tuple((hour / HOURS * self.seconds, self.rate(hour) / queues) for hour in hours)


@dataclass(frozen=True)
class Served:
    """What a group was given in the end: ``late`` messages waited longer than ``LATE_S``."""

    messages: int
    twice: int
    late: int
    worst_wait_s: float
    missing: int

    @classmethod
    def read(cls, logs: Path, produced: Mapping[Lane, int]) -> "Served":
        """Read all consumers' logs; ``produced`` counts what was sent to each queue."""
        given = read_given(logs)
        first = dict(_firsts(given))
        waits = [one.at_s - one.came_s for one in first.values()]
        missing = sum(map(len, lost(produced, given).values()))
        late = sum(wait > LATE_S for wait in waits)
        return cls(len(first), len(given) - len(first), late, max(waits, default=math.nan), missing)


def _firsts(given: Sequence[Given]) -> Iterator[tuple[tuple[Lane, int], Given]]:
    for one in reversed(given):
        yield (one.lane, one.offset), one
