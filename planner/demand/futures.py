"""Possible futures of a load: the level now, with whole error paths of forecasts that are over.

A path of errors keeps what belongs together: a spike stays a spike, a ramp a ramp. Half of the paths come from the last
hours, half from the same time of earlier days, so that a daily ramp is in them without a model of the season. Where
earlier days are not known, all come from the last hours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.demand.series import Floats, LoadSeries

MINUTES_A_DAY = 1440


@dataclass(frozen=True, slots=True)
class FutureSettings:
    """Which forecasts that are over lend their errors: how many paths, and from where (minutes)."""

    paths: int = 12
    recent_minutes: int = 360
    day_offsets: tuple[int, ...] = (-20, -5, 10, 25)
    days: int = 7
    least_paths: int = 6
    least_minutes: int = 60
    """How many minutes of forecasts that are over there must be: those of fewer minutes are nearly one and the same."""
    unknown_deviation: float = 0.25
    """Standard deviation of the logarithm after an hour, where there is no history to take errors from."""
    largest_ratio: float = 20.0


DEFAULT_FUTURES = FutureSettings()


def futures(series: LoadSeries, bins: Sequence[int], settings: FutureSettings = DEFAULT_FUTURES) -> Floats:
    """Return possible mean loads in the coming bins; shape (paths, bins), in the unit of the series.

    ``bins`` are lengths in minutes. Without enough history the paths are quantiles of a random walk around the level
    that is wider than usual loads. Raises ``ValueError`` for a series without any minute.
    """
    if not len(series):
        raise ValueError("a series without any minute has no level")
    edges = np.concatenate(([0], np.cumsum(bins)))
    origins = _origins(len(series), int(edges[-1]), settings)
    level = float(series.level[-1])
    if not len(origins):
        return level * _unknown(edges, settings)
    sums = series.summed[origins[:, None] + 1 + edges]
    before = series.level[origins]
    ratios = level / np.maximum(before, 1e-9)
    means = np.diff(sums, axis=1) / np.diff(edges)
    return np.asarray(np.minimum(means * ratios[:, None], settings.largest_ratio * max(level, 1e-9)))


def has_errors(minutes: int, bins: Sequence[int], settings: FutureSettings = DEFAULT_FUTURES) -> bool:
    """Return whether a series of so many minutes has forecasts over these bins that are over, to take errors from."""
    return bool(len(_origins(minutes, sum(bins), settings)))


def _origins(size: int, horizon: int, settings: FutureSettings) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """Return the minutes behind which the forecasts to learn from were made, all over by now; none where few are."""
    last = size - 1 - horizon
    if last < settings.least_minutes:
        return np.array([], dtype=np.intp)
    earlier = [
        size - 1 - day * MINUTES_A_DAY + offset
        for day in range(1, settings.days + 1)
        for offset in settings.day_offsets
    ]
    usable = [minute for minute in earlier if 0 <= minute <= last][: settings.paths // 2]
    first = max(last - settings.recent_minutes, 0)
    recent = np.linspace(first, last, settings.paths - len(usable)).round().astype(int).tolist()
    origins = [*recent, *usable]
    return np.array(origins if len(origins) >= settings.least_paths else [], dtype=np.intp)


def _unknown(edges: "np.ndarray[tuple[int], np.dtype[np.intp]]", settings: FutureSettings) -> Floats:
    """Return ratios to the level: quantiles of a random walk whose deviation is known for an hour."""
    quantiles = np.array([-1.5, -0.8, -0.3, 0.0, 0.3, 0.8, 1.5, 2.0])
    middle = (edges[:-1] + edges[1:]) / 2
    return np.asarray(np.exp(settings.unknown_deviation * np.sqrt(middle / 60) * quantiles[:, None]))
