"""Possible futures of a load: the level now, with whole error paths of forecasts that are over.

A path of errors keeps what belongs together: a spike stays a spike, a ramp a ramp. Most paths come from minutes at
which the load was most like now (analogue forecasting: Lorenz 1969): as high, as steep, about the same time of the day.
Of the others one half comes from the last hours, one from the same time of earlier days, so that a daily ramp is in
them without a model of the season. Where earlier days are not known, that half comes from the last hours, too, and as
forecasts of a few hours are much alike, the level's own errors are beside them.
What is noise in the level, now and then, is left out first (``planner.demand.reversion``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.demand.reversion import DEFAULT_REVERSION, ReversionSettings, expected_levels
from planner.demand.series import LEAST_LOAD, MINUTES_A_DAY, Floats, LoadSeries, Minutes

LEAST_SQUARE = 1e-6
LEVEL_QUANTILES = np.array([-1.5, -0.8, -0.3, 0.0, 0.3, 0.8, 1.5, 2.0])


@dataclass(frozen=True, slots=True)
class FutureSettings:
    """Which forecasts that are over lend their errors: how many paths, and from where (minutes).

    ``paths`` come from the last ``recent_minutes`` and from the same time of earlier days, up to ``similar`` from
    minutes of ``days`` days that were like now, ``apart_minutes`` apart at least. Minutes are as unlike as they differ
    in slopes (in what such slopes usually are), in level (a factor of e counts for one over ``level_unit``) and time of
    the day.
    """

    paths: int = 8
    similar: int = 16
    similar_of_minutes: int = 90
    """One minute like now is taken of so many, and half of ``similar`` at least: the nearest of few are not near."""
    apart_minutes: int = 5
    least_similar_minutes: int = 120
    """Among so many minutes those like now are looked for at least."""
    slopes: tuple[int, ...] = (5, 20, 60)
    level_unit: float = 0.5
    time_unit: float = 120.0
    observed_within: int = 30
    """One minute has to be observed within so many behind an earlier one: in a mean of hours there are no errors."""
    recent_minutes: int = 360
    day_offsets: tuple[int, ...] = (-20, -5, 10, 25)
    days: int = 7
    least_paths: int = 6
    least_minutes: int = 60
    """How many minutes of forecasts that are over there must be: those of fewer minutes are nearly one and the same."""
    level_paths_until: int = 2 * MINUTES_A_DAY
    """While fewer minutes are known, futures around the level are beside the others."""
    level_minutes: int = 180
    """They are as wide as the level missed in so many minutes."""
    unknown_deviation: float = 0.25
    """Standard deviation of the logarithm after an hour that they have at least where there are no others."""
    largest_ratio: float = 20.0
    reversion: ReversionSettings = DEFAULT_REVERSION


DEFAULT_FUTURES = FutureSettings()


def futures(series: LoadSeries, bins: Sequence[int], settings: FutureSettings = DEFAULT_FUTURES) -> Floats:
    """Return possible mean loads in the coming bins; shape (paths, bins), in the unit of the series.

    ``bins`` are lengths in minutes. Without enough history the paths are quantiles around the level alone: those of a
    random walk that is wider than usual loads, or wider yet where the level missed by more in the minutes that are
    known. Raises ``ValueError`` for a series without any minute.
    """
    if not len(series):
        raise ValueError("a series without any minute has no level")
    edges = np.concatenate(([0], np.cumsum(bins)))
    origins = _origins(len(series), int(edges[-1]), settings, _is_observed_behind(series, int(edges[-1]), settings))
    level = float(series.level[-1])
    if not len(origins):
        return _around_level(series, edges, settings, is_alone=True)
    origins = np.concatenate([origins, _similar(series, int(edges[-1]), settings)])
    sums = series.summed[origins[:, None] + 1 + edges]
    means = np.diff(sums, axis=1) / np.diff(edges)
    expected = expected_levels(series, np.append(origins, len(series) - 1), edges, settings.reversion)
    paths = np.minimum(means * expected[-1] / expected[:-1], settings.largest_ratio * max(level, 1e-9))
    if len(series) >= settings.level_paths_until:
        return np.asarray(paths)
    return np.concatenate([paths, _around_level(series, edges, settings, is_alone=False)])


def has_errors(minutes: int, bins: Sequence[int], settings: FutureSettings = DEFAULT_FUTURES) -> bool:
    """Return whether a series of so many minutes has forecasts over these bins that are over, to take errors from."""
    return bool(len(_origins(minutes, sum(bins), settings, np.ones(minutes, dtype=np.bool_))))


def _is_observed_behind(series: LoadSeries, horizon: int, settings: FutureSettings) -> NDArray[np.bool_]:
    """Return for each minute whether one of those right behind it has a load of its own."""
    observed, minutes = series.observed, np.arange(1, len(series) + 1)
    ends = np.minimum(minutes + min(settings.observed_within, horizon), len(series))
    return np.asarray(observed[ends] > observed[minutes])


def _origins(size: int, horizon: int, settings: FutureSettings, is_observed: NDArray[np.bool_]) -> Minutes:
    """Return the minutes behind which the forecasts to learn from were made, all over by now; none where few are.

    Those of the last hours may be means of longer spans, as of what came before them there is nothing better.
    """
    last = size - 1 - horizon
    if last < settings.least_minutes:
        return np.array([], dtype=np.intp)
    earlier = [
        size - 1 - day * MINUTES_A_DAY + offset
        for day in range(1, settings.days + 1)
        for offset in settings.day_offsets
    ]
    usable = [minute for minute in earlier if 0 <= minute <= last and is_observed[minute]][: settings.paths // 2]
    first = max(last - settings.recent_minutes, 0)
    recent = np.linspace(first, last, settings.paths - len(usable)).round().astype(int).tolist()
    origins = [*recent, *usable]
    return np.array(origins if len(origins) >= settings.least_paths else [], dtype=np.intp)


def _similar(series: LoadSeries, horizon: int, settings: FutureSettings) -> Minutes:
    """Return the minutes most like the last one, forecasts from which are over by now; none where few are."""
    now, longest = len(series) - 1, max(settings.slopes)
    first = max(now - settings.days * MINUTES_A_DAY, longest)
    last = now - horizon
    if last - first < settings.least_similar_minutes:
        return np.array([], dtype=np.intp)
    unlike = _unlikeness(series, np.arange(first, last + 1), settings)
    unlike[~_is_observed_behind(series, horizon, settings)[first : last + 1]] = np.inf
    most = min(max(len(unlike) // settings.similar_of_minutes, settings.similar // 2), settings.similar)
    chosen: list[int] = []
    while len(chosen) < most and np.isfinite(unlike).any():
        nearest = int(unlike.argmin())
        unlike[max(nearest - settings.apart_minutes + 1, 0) : nearest + settings.apart_minutes] = np.inf
        chosen.append(first + nearest)
    return np.array(chosen, dtype=np.intp)


def _unlikeness(series: LoadSeries, minutes: Minutes, settings: FutureSettings) -> Floats:
    """Return how unlike now each of these minutes, which follow each other, was."""
    now, first, last = len(series) - 1, int(minutes[0]), int(minutes[-1])
    levels = np.log(np.maximum(series.level, LEAST_LOAD))
    misses = np.log(np.maximum(series.load[first : last + 1], LEAST_LOAD)) - levels[first : last + 1]
    missed = float(np.log(max(float(series.load[-1]), LEAST_LOAD)) - levels[now])
    ages = (now - minutes) % MINUTES_A_DAY
    unlike = (levels[first : last + 1] - levels[now]) ** 2 / settings.level_unit**2
    unlike += np.minimum(ages, MINUTES_A_DAY - ages) ** 2 / settings.time_unit**2
    unlike += _in_usual_ones(misses, missed)
    for back in settings.slopes:
        slopes = levels[first : last + 1] - levels[first - back : last + 1 - back]
        unlike += _in_usual_ones(slopes, float(levels[now] - levels[now - back]))
    return np.asarray(unlike)


def _in_usual_ones(values: Floats, value: float) -> Floats:
    """Return the squared differences from ``value``, in mean squares of ``values``."""
    return np.asarray((values - value) ** 2 / (np.mean(values**2) + LEAST_SQUARE))


def _walk(edges: Minutes, settings: FutureSettings) -> Floats:
    """Return the deviation of a random walk in the middle of each stretch."""
    return np.asarray(settings.unknown_deviation * np.sqrt((edges[:-1] + edges[1:]) / 120))


def _around_level(series: LoadSeries, edges: Minutes, settings: FutureSettings, *, is_alone: bool) -> Floats:
    """Return quantiles around what the level lets expect, as far as that missed in the last minutes.

    Alone they are as wide as a random walk at least. Beside whole forecasts they have the part of a miss that stays:
    what a longer stretch further ahead has not is noise of minutes, and in the forecasts.

    Upwards they are linear in the deviation: as a log-normal load the futures of one that swings would in the mean be
    far above what it ever was.
    """
    last = len(series) - 1
    first = min(max(last + 1 - settings.level_minutes, 0), last)
    expected = expected_levels(series, np.arange(first, last + 1), edges, settings.reversion)
    misses = _misses(series, edges, expected, settings)
    deviations = np.maximum(misses, _walk(edges, settings)) if is_alone else np.minimum.accumulate(misses[::-1])[::-1]
    distances = deviations * LEVEL_QUANTILES[:, None]
    level = float(series.level[-1])
    return np.asarray(
        level * expected[-1] / max(level, LEAST_LOAD) * np.where(distances > 0, 1.0 + distances, np.exp(distances))
    )


def _misses(series: LoadSeries, edges: Minutes, expected: Floats, settings: FutureSettings) -> Floats:
    """Return the root mean square of the logarithm by which each stretch so far was another than ``expected``.

    That has a row for each of the last minutes. Of a stretch that never was over it is that of the one before, as it is
    hardly smaller; 0 where no stretch was.
    """
    size, largest = len(series), np.log(settings.largest_ratio)
    origins = np.arange(size - len(expected), size - 1)
    is_usable = (np.diff(series.observed)[origins + 1] > 0) & (series.level[origins] > LEAST_LOAD)
    origins, expected = origins[is_usable], expected[:-1][is_usable]
    is_over = origins[:, None] + edges[1:] < size
    over = is_over.sum(axis=0)
    if not over[0]:
        return np.zeros(len(over))
    sums = series.summed[np.minimum(origins[:, None] + 1 + edges, size)]
    came = np.diff(sums, axis=1) / np.diff(edges)
    misses = np.log(np.maximum(came, LEAST_LOAD) / expected)
    squares = np.where(is_over, np.clip(misses, -largest, largest) ** 2, 0.0).sum(axis=0)
    known = np.sqrt(squares[over > 0] / over[over > 0])
    return np.concatenate((known, np.full(len(over) - len(known), known[-1])))
