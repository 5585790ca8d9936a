"""How much of a level will stay: what is noise in it goes, and was gone each time before.

A level follows the last minutes with the noise that is in them. Which part of its distance from the mean of the last
hours was left some time later is learned by least squares from the group's own past (regression to the mean: Galton
1886), for each stretch ahead. What is twice as far as usual stays whole: then the load has moved, which is more than
noise ever did.
"""

from dataclasses import dataclass

import numpy as np

from planner.demand.series import GAP_SHARE, LEAST_LOAD, MINUTES_A_DAY, Floats, LoadSeries, Minutes

LEAST_DISTANCE = 1e-3


@dataclass(frozen=True, slots=True)
class ReversionSettings:
    """From what it is learned, in minutes.

    The mean is that of the last ``mean_minutes``; distances (of logarithms) up to ``usual`` times their root mean
    square are usual, and of what is twice as far all is believed to stay. ``trusted_minutes`` of the past count as much
    as the belief that all of every distance stays. Of ``days`` days some ``samples`` minutes are taken.
    """

    mean_minutes: int = 360
    usual: float = 2.0
    trusted_minutes: int = 240
    samples: int = 1500
    days: int = 7


DEFAULT_REVERSION = ReversionSettings()


def expected_levels(
    series: LoadSeries, minutes: Minutes, edges: Minutes, settings: ReversionSettings = DEFAULT_REVERSION
) -> Floats:
    """Return what the level behind each of the minutes lets expect in each stretch; shape (minutes, stretches).

    ``edges`` are the stretches' begins and the last one's end, in minutes from then on. The same parts are used for all
    minutes: those that are known behind the last minute of the series.
    """
    means, distances = _distances(series, minutes, settings)
    learned, minutes_each = _origins(series, int(edges[-1]), settings)
    if not len(learned):
        return np.asarray(np.exp(means + distances)[:, None] * np.ones(len(edges) - 1))
    past_means, past = _distances(series, learned, settings)
    usual = settings.usual * float(np.sqrt(np.mean(past**2)))
    came = np.diff(series.summed[learned[:, None] + 1 + edges], axis=1) / np.diff(edges)
    left = np.log(np.maximum(came, LEAST_LOAD)) - past_means[:, None]
    left = np.clip(left, np.log(GAP_SHARE), -np.log(GAP_SHARE))
    stays = _slopes(past, left, usual, settings.trusted_minutes / minutes_each)
    beyond = np.clip(np.abs(distances)[:, None] / max(usual, LEAST_DISTANCE) - 1.0, 0.0, 1.0)
    return np.asarray(np.exp(means[:, None] + distances[:, None] * (stays + (1.0 - stays) * beyond)))


def _origins(series: LoadSeries, horizon: int, settings: ReversionSettings) -> tuple[Minutes, float]:
    """Return the minutes behind which all stretches are over by now, and for how many minutes each of them stands.

    Behind each a new observation begins: within a mean of ten minutes the level knows of what comes.
    """
    now = len(series) - 1
    last, first = now - horizon, max(now - settings.days * MINUTES_A_DAY, settings.mean_minutes // 2)
    if last < first:
        return np.array([], dtype=np.intp), 1.0
    minutes = np.arange(first, last + 1, dtype=np.intp)
    minutes = minutes[np.diff(series.observed)[minutes + 1] > 0]
    minutes = minutes[:: max(1, len(minutes) // settings.samples)]
    return minutes, (last + 1 - first) / max(len(minutes), 1)


def _distances(series: LoadSeries, minutes: Minutes, settings: ReversionSettings) -> tuple[Floats, Floats]:
    """Return the logarithm of the mean up to each of the minutes, and the level's distance from it."""
    first = np.maximum(minutes + 1 - settings.mean_minutes, 0)
    means = (series.summed[minutes + 1] - series.summed[first]) / (minutes + 1 - first)
    means = np.log(np.maximum(means, LEAST_LOAD))
    return means, np.log(np.maximum(series.level[minutes], LEAST_LOAD)) - means


def _slopes(distances: Floats, left: Floats, usual: float, believed: float) -> Floats:
    """Return which part was left of a usual distance in each stretch, from 0 to 1.

    Least squares (ridge regression), in which 1 counts as much as ``believed`` distances. The sums are numpy's own, so
    that each machine has the same ones.
    """
    prior = believed * float(np.mean(distances**2)) + LEAST_DISTANCE**2
    within = np.where(np.abs(distances) <= usual, distances, 0.0)
    squares = float((within**2).sum()) + prior
    return np.asarray(np.clip(((within[:, None] * left).sum(axis=0) + prior) / squares, 0.0, 1.0))
