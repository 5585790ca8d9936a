"""Counts by the hour of the day, as a cron scaler has them, made for the very load that is played.

Each hour's count is the smallest whose busiest consumer could have done a percentile of that hour's minutes, all days
together: the best that somebody could have written down who knew those days but cannot tell one from another.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from planner.backtest.observation import Observation
from planner.backtest.policies.optimum import BIN_S, bin_loads, busiest_shares
from planner.backtest.scenario import SECONDS_AN_HOUR, Floats, Ints, Scenario

DAY_S = 24 * SECONDS_AN_HOUR
HOURS = (1, 2, 4)
PERCENTILES = (90.0, 95.0, 99.0, 100.0)
UTILISATIONS = (0.7, 0.8, 0.9, 1.0)


class Schedule:
    """One count for each stretch of the day; pods of a larger one start so early that they are ready for it."""

    name = "schedule"
    every_s = BIN_S
    reads_busy = False

    def __init__(self, scenario: Scenario, counts: Sequence[int], rule: str) -> None:
        self._counts = counts
        self._rule = rule
        self._played_from = scenario.history_s
        self._ahead_s = BIN_S * math.ceil(scenario.pod_start_s / BIN_S)

    @property
    def tuning(self) -> str:
        """How the counts were found."""
        return self._rule

    def decide(self, observation: Observation) -> int | None:
        """Return the count of now, or that of the time at which a pod ordered now is ready where it is larger."""
        now = self._played_from + observation.second
        return max(self._count_at(now), self._count_at(now + self._ahead_s))

    def _count_at(self, second: float) -> int:
        return self._counts[stretch_of(second, len(self._counts))]


def stretch_of(second: float, stretches: int) -> int:
    """Return in which of so many equal stretches of the day a second of the arrivals lies; the day begins with them."""
    return int(second % DAY_S // (DAY_S / stretches))


def schedule_grid(scenario: Scenario) -> Iterator[Schedule]:
    """Yield the schedules that are tried for one scenario."""
    loads = bin_loads(scenario)
    counts, shares = busiest_shares(scenario, loads)
    busiest = shares * loads.sum(axis=1)[:, None]
    for hours, percentile in product(HOURS, PERCENTILES):
        needed = _needed_by_stretch(scenario, busiest, round(24 / hours), percentile)
        for utilisation in UTILISATIONS:
            rule = (
                f"a count each {hours} h of the day: the {percentile:g}th percentile of its minutes at "
                f"{utilisation:.0%} of the busiest consumer"
            )
            yield Schedule(scenario, _smallest_counts(counts, needed, utilisation, scenario.start), rule)


def _needed_by_stretch(scenario: Scenario, busiest: Floats, stretches: int, percentile: float) -> list[Floats | None]:
    """Return each stretch's percentile of the busiest consumer's load by count; ``None`` where none of it is played."""
    seconds = scenario.history_s + BIN_S * np.arange(len(busiest))
    stretch = np.array([stretch_of(second, stretches) for second in seconds.tolist()])
    return [
        np.percentile(busiest[stretch == number], percentile, axis=0) if (stretch == number).any() else None
        for number in range(stretches)
    ]


def _smallest_counts(counts: Ints, needed: Sequence[Floats | None], utilisation: float, otherwise: int) -> list[int]:
    """Return each stretch's smallest count within the utilisation, the one that is used least where none is."""
    chosen = []
    for loads in needed:
        if loads is None:
            chosen.append(otherwise)
            continue
        able = np.flatnonzero(loads <= utilisation)
        chosen.append(int(counts[able[0] if len(able) else int(loads.argmin())]))
    return chosen
