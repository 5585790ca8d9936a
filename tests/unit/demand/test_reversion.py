"""What of a level is noise, and what is a load that has moved."""

import numpy as np
import pytest

from planner.demand.futures import futures
from planner.demand.reversion import ReversionSettings, expected_levels
from planner.demand.series import Floats, LoadSeries

EDGES = np.array([0, 10, 60, 120])
FOUR_DAYS = 4 * 1440


def noisy(minutes: int, mean: float = 10.0, deviation: float = 0.2, seed: int = 5) -> Floats:
    """Return a load that stays, with the noise of each minute."""
    return np.asarray(mean * np.exp(np.random.default_rng(seed).normal(0.0, deviation, minutes)))


def expected(series: LoadSeries, settings: ReversionSettings | None = None) -> Floats:
    """Return what is expected now in each stretch."""
    now = np.array([len(series) - 1])
    return expected_levels(series, now, EDGES, settings or ReversionSettings())[0]


def test_what_is_noise_in_a_level_goes() -> None:
    """Red where a level that is low by chance is expected to stay low."""
    load = noisy(FOUR_DAYS)
    for last in (7.0, 15.0):
        series = LoadSeries(load=[*load, last, last])
        mean = float(series.load[-360:].mean())
        away = abs(float(series.level[-1]) / mean - 1)
        assert away > 0.03
        assert np.abs(expected(series) / mean - 1).max() < away / 2
        assert abs(np.median(futures(series, (10, 50, 60))) / mean - 1) < away / 2


def test_a_load_that_wanders_stays_where_it_is() -> None:
    """Red where the mean of hours draws a load back that never came back."""
    steps = np.random.default_rng(7).normal(0.0, 0.02, FOUR_DAYS)
    series = LoadSeries(load=10.0 * np.exp(np.cumsum(steps)))
    level, mean = float(series.level[-1]), float(series.load[-360:].mean())
    assert abs(np.log(level / mean)) > 0.05
    near, *_ = np.log(expected(series) / mean) / np.log(level / mean)
    assert near > 0.75


@pytest.mark.parametrize("factor", [0.3, 2.0, 5.0])
def test_a_load_that_has_moved_is_believed_at_once(factor: float) -> None:
    """Red where days of noise make a shift look like noise: twenty minutes behind it the old load would be expected."""
    series = LoadSeries(load=[*noisy(FOUR_DAYS), *noisy(20, 10.0 * factor, seed=6)])
    level = float(series.level[-1])
    assert level == pytest.approx(10.0 * factor, rel=0.3)
    assert np.abs(np.log(expected(series) / level)).max() < 0.25
    assert np.median(futures(series, (10, 50, 60))) == pytest.approx(10.0 * factor, rel=0.3)


def test_without_a_past_the_level_is_expected() -> None:
    series = LoadSeries(load=[10.0, 14.0, 9.0, 12.0])
    assert expected(series) == pytest.approx(float(series.level[-1]))


def test_nothing_is_learned_within_a_mean_of_several_minutes() -> None:
    """Red where a level in the middle of a mean, which knows of its end, is taken for a good forecast of it."""
    means = noisy(FOUR_DAYS // 10)
    load, averaged = np.repeat(means, 10), [minute % 10 != 0 for minute in range(FOUR_DAYS)]
    series = LoadSeries(load=load, averaged=averaged)
    level, mean = float(series.level[-1]), float(load[-360:].mean())
    assert abs(np.log(expected(series)[0] / mean)) < 0.3 * abs(np.log(level / mean))


def test_a_load_of_nothing_stays_nothing() -> None:
    assert futures(LoadSeries(load=[0.0] * 900), (10, 50, 60)).max() < 1e-6
    silent = LoadSeries(load=[*noisy(FOUR_DAYS), *[0.0] * 90])
    assert futures(silent, (10, 50, 60)).max() < 1.0


@pytest.mark.parametrize("outage_minutes", [5, 40, 120])
@pytest.mark.parametrize("minutes_since", [10, 60, 180])
def test_an_outage_of_producers_is_no_lasting_quiet(outage_minutes: int, minutes_since: int) -> None:
    """Red where the hours with the outage in them draw the load down by more than is usual."""
    load = [*noisy(FOUR_DAYS), *[0.0] * outage_minutes, *noisy(minutes_since, seed=6)]
    assert np.abs(expected(LoadSeries(load=load)) / 10.0 - 1).max() < 0.15
