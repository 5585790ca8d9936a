"""What a group's load may be from here, and how earlier forecasts of the same kind did."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.demand.futures import futures, has_errors
from planner.demand.recent import minute_rates
from planner.demand.series import Floats, LoadSeries
from planner.model.snapshot import GroupSnapshot

BINS_MIN = (5, 10, 15, 30, 60)
"""Stretches that follow each other: up to 5 minutes ahead, then up to 15, 30, 60 and 120."""
BAND = (10.0, 90.0)
"""Percentiles of the possible loads: four of five should come to lie between them."""
EVERY_MIN = 10
"""Earlier forecasts are looked at again so many minutes apart."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of the time ahead, in minutes from now; loads in messages per second.

    Of ``forecasts`` earlier ones of this stretch that are over, ``inside`` lay between their ``low`` and ``high``;
    ``level_miss`` is by how much the level alone missed, as a share of it in the median, ``None`` without any.
    """

    from_minutes: int
    to_minutes: int
    low: float
    middle: float
    high: float
    forecasts: int
    inside: int
    level_miss: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The level in messages per second, how many minutes of load it rests on, and what may come.

    ``rests_on_errors`` says whether the possible loads have the errors of earlier forecasts in them; else they are
    spread around the level, wider.
    """

    level: float
    minutes: int
    rests_on_errors: bool
    stretches: tuple[Stretch, ...]


def outlook(snapshot: GroupSnapshot) -> Outlook | None:
    """Return what the group's load may be, ``None`` where the snapshot has no minute of it up to its own time."""
    rates = minute_rates(snapshot.recent, snapshot.at)
    if not rates:
        return None
    series = LoadSeries(load=rates)
    bands = _bands(futures(series, BINS_MIN))
    checks = _checks(rates)
    ends = np.cumsum(BINS_MIN).tolist()
    return Outlook(
        level=float(series.level[-1]),
        minutes=len(series),
        rests_on_errors=has_errors(len(series), BINS_MIN),
        stretches=tuple(
            Stretch(end - length, end, *band, *check)
            for end, length, band, check in zip(ends, BINS_MIN, bands, checks, strict=True)
        ),
    )


def _bands(paths: Floats) -> list[tuple[float, float, float]]:
    low, high = BAND
    return [tuple(column) for column in np.percentile(paths, (low, 50.0, high), axis=0).T.tolist()]


def _checks(rates: Sequence[float]) -> list[tuple[int, int, float | None]]:
    """Return for each stretch the earlier forecasts that are over, those inside, and the level's usual miss."""
    summed = np.concatenate(([0.0], np.cumsum(rates)))
    misses: list[list[float]] = [[] for _ in BINS_MIN]
    inside = [0] * len(BINS_MIN)
    for known in range(EVERY_MIN, len(rates), EVERY_MIN):
        series = LoadSeries(load=rates[:known])
        bands, level = _bands(futures(series, BINS_MIN)), float(series.level[-1])
        edges = known + np.concatenate(([0], np.cumsum(BINS_MIN)))
        for index, (first, last) in enumerate(pairwise(edges.tolist())):
            if last > len(rates) or level <= 0:
                break
            actual = float(summed[last] - summed[first]) / float(last - first)
            misses[index].append(abs(actual / level - 1))
            inside[index] += bands[index][0] <= actual <= bands[index][2]
    return [
        (len(of_bin), count, float(np.median(of_bin)) if of_bin else None)
        for of_bin, count in zip(misses, inside, strict=True)
    ]
