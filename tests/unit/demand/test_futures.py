"""Level, gaps and futures."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.backtest import WITHOUT_PAST
from planner.decision.horizon import DEFAULT_HORIZON, horizon_periods
from planner.demand.futures import DEFAULT_FUTURES, FutureSettings, futures
from planner.demand.reversion import ReversionSettings
from planner.demand.series import Floats, LevelSettings, LoadSeries
from planner.snapshot.settings import RECENT


def test_a_steady_load_has_itself_as_every_future() -> None:
    series = LoadSeries(load=[7.0] * 2000)
    assert futures(series, (1, 5, 20)) == pytest.approx(7.0)


def test_the_level_follows_by_the_weight_on_the_logarithm() -> None:
    series = LoadSeries(LevelSettings(weights=(0.5,)), [4.0, 16.0])
    assert series.level.tolist() == pytest.approx([4.0, 8.0])


def test_a_gap_is_not_believed_before_some_minutes() -> None:
    series = LoadSeries(LevelSettings(believed_after=5), [10.0] * 50 + [0.0] * 5)
    assert series.level[-1] == pytest.approx(10.0)
    series.append(0.0)
    assert series.level[-1] < 10.0


def test_a_jump_of_the_last_hours_is_a_jump_in_one_of_the_futures() -> None:
    load = [10.0] * 700 + [30.0] * 20 + [10.0] * 200
    ahead = futures(LoadSeries(load=load), (5, 5, 10), FutureSettings(paths=40))
    assert ahead.max() > 25.0
    assert np.median(ahead) == pytest.approx(10.0)


def test_the_same_time_of_earlier_days_brings_the_ramp() -> None:
    daily = np.where(np.arange(1440) < 720, 10.0, 20.0)
    load = [*np.tile(daily, 3), *daily[:715]]
    assert futures(LoadSeries(load=load), (60,)).mean() > 12.0


def test_what_followed_when_the_load_was_like_now_is_in_the_futures() -> None:
    # At odd times the load climbs for half an hour and falls back at once; now it is just before the fall.
    ramp = np.linspace(10.0, 30.0, 30)
    load = np.full(4000, 10.0)
    for start in (300, 1111, 1790, 2345, 2930, 3487):
        load[start : start + 30] = ramp
    series = LoadSeries(load=[*load, *ramp])
    bins = (5, 5, 10)
    assert np.median(futures(series, bins, FutureSettings(paths=6, similar=0))[:, 1:]) > 20.0
    alike = futures(series, bins, FutureSettings(paths=6, similar=6, days=3))[6:, 1:]
    assert alike.shape == (6, 2)
    assert np.median(alike) < 15.0


def test_futures_that_were_like_now_begin_apart() -> None:
    load = (10.0 + np.arange(900) % 7).tolist()
    settings = FutureSettings(paths=6, similar=12, similar_of_minutes=1, apart_minutes=30, level_paths_until=0)
    assert len(futures(LoadSeries(load=load), (5, 5), settings)) == 6 + 12
    # Of the first 300 minutes an hour is needed for slopes: the rest is too short for twelve half hours.
    assert 6 < len(futures(LoadSeries(load=load[:300]), (5, 5), settings)) <= 6 + 9
    assert len(futures(LoadSeries(load=load[:180]), (5, 5), settings)) == 6


def test_the_more_past_there_is_the_more_minutes_like_now_lend_their_futures() -> None:
    settings = FutureSettings(paths=6, similar=12, similar_of_minutes=100, level_paths_until=0)

    def similar_ones(minutes: int) -> int:
        load = (10.0 + np.arange(minutes) % 7).tolist()
        return len(futures(LoadSeries(load=load), (5, 5), settings)) - 6

    # The first hour has no slopes, and forecasts of the last ten minutes are not over.
    assert [similar_ones(minutes + 70) for minutes in (400, 800, 1000, 5000)] == [6, 8, 10, 12]


@pytest.mark.parametrize("shortest_s", [60.0, 420.0, 600.0, 1800.0])
def test_what_a_snapshot_carries_of_the_past_is_enough_to_look_for_minutes_like_now(shortest_s: float) -> None:
    minutes = int(RECENT.total_seconds() // 60)
    series = LoadSeries(load=(10.0 + np.arange(minutes) % 7).tolist())
    bins = [length for period in horizon_periods(DEFAULT_HORIZON, shortest_s) for length in period]
    assert len(futures(series, bins, FutureSettings(paths=8, level_paths_until=0))) == 8 + 8


def test_a_mean_of_hours_lends_no_errors() -> None:
    """A day that was observed as one, and one of noise that ends calm: red where the first is like now."""
    noisy = 10.0 * np.exp(np.random.default_rng(3).normal(0.0, 0.5, 1430))
    load = [*[10.0] * 1440, *noisy, *[10.0] * 10]
    averaged = [False, *[True] * 1439, *[False] * 1440]

    def calm(series: LoadSeries, similar: int = DEFAULT_FUTURES.similar) -> int:
        settings = FutureSettings(similar=similar, reversion=ReversionSettings(trusted_minutes=10**9))
        return int((np.ptp(futures(series, (5, 5), settings), axis=1) < 1e-3).sum())

    assert calm(LoadSeries(load=load)) >= 12
    assert calm(LoadSeries(load=load, averaged=averaged)) < 4  # of the last minutes of the first day
    assert calm(LoadSeries(load=load, averaged=averaged), similar=0) == 1  # that of the calm end


def test_without_history_the_futures_are_wide_around_the_level() -> None:
    ahead = futures(LoadSeries(load=[10.0, 10.0]), (1, 60))
    assert ahead[:, 1].min() < 8.0
    assert ahead[:, 1].max() > 12.0
    assert np.ptp(ahead[:, 0]) < np.ptp(ahead[:, 1])


def test_what_the_known_minutes_swung_by_is_in_the_first_futures() -> None:
    """A load that goes from 15 to 105 within half an hour mostly comes to lie in the next stretches' bands."""
    swinging = 60.0 + 45.0 * np.sin(np.arange(180) * 2 * np.pi / 31)
    assert 0.5 < inside(swinging, (5, 10, 15), range(60, 150)) < 1.0
    assert inside(np.full(180, 60.0), (5, 10, 15), range(60, 150)) == 1.0


def inside(load: Floats, bins: tuple[int, ...], known: range, settings: FutureSettings = DEFAULT_FUTURES) -> float:
    """Return which share of the bands of 80 % held what came, made after so many minutes each."""
    series, edges, hits = LoadSeries(load=load), np.concatenate(([0], np.cumsum(bins))), []
    for minutes in known:
        low, high = np.percentile(futures(series.known_after(minutes), bins, settings), (10, 90), axis=0)
        came = np.diff(series.summed[minutes + edges]) / bins
        hits.append((low <= came) & (came <= high))
    return float(np.mean(hits))


def test_a_stretch_that_never_was_over_is_as_wide_as_the_longest_that_was() -> None:
    load = np.tile([10.0, 10.0, 40.0, 40.0], 5)
    ahead = np.ptp(futures(LoadSeries(load=load), (1, 5, 30)), axis=0)
    assert ahead[2] == pytest.approx(ahead[1])
    assert ahead[2] > 2 * np.ptp(futures(LoadSeries(load=np.full(20, 20.0)), (1, 5, 30))[:, 2])


def test_a_first_rise_from_almost_nothing_makes_no_futures_without_bound() -> None:
    risen = LoadSeries(load=[0.0, 0.0, 1e-4, 500.0])
    ahead = futures(risen, (1, 5))
    assert ahead.max() <= (1.0 + 2.0 * np.log(DEFAULT_FUTURES.largest_ratio)) * risen.level[-1]
    assert not futures(LoadSeries(load=[0.0] * 5), (1, 5)).any()


def test_within_the_first_two_days_the_errors_of_the_level_are_beside_those_of_whole_forecasts() -> None:
    """Forecasts of few hours are much alike: bands of a load that wanders hold 60 % by them alone."""
    load = 100.0 * np.exp(np.cumsum(np.random.default_rng(2).normal(0.0, 0.02, 2880)))
    series, bins, alone = LoadSeries(load=load), (5, 10, 15, 30, 60), FutureSettings(level_paths_until=0)
    assert inside(load, bins, range(185, 700, 15), alone) < 0.65
    assert 0.7 < inside(load, bins, range(185, 700, 15)) < 0.9
    more = [
        len(futures(known, bins)) - len(futures(known, bins, alone)) for known in (series.known_after(1439), series)
    ]
    assert more == [8, 0]
    assert np.ptp(futures(LoadSeries(load=[60.0] * 240), bins)) < 1e-6  # a load that never missed stays


def test_beside_whole_forecasts_noise_of_minutes_is_no_deviation_of_the_level() -> None:
    """Red when a path is high by a minute's noise for two hours: a noisy load that stays then moves groups."""
    noisy = LoadSeries(load=60.0 * np.exp(np.random.default_rng(4).normal(0.0, 0.3, 600)))

    def widths(known: int) -> Floats:
        around_level = futures(noisy.known_after(known), (1, 10, 49))[-8:]
        return np.asarray(np.ptp(around_level, axis=0) / around_level.mean(axis=0))

    assert widths(600)[0] == pytest.approx(widths(600)[2], rel=0.01)
    assert widths(110)[0] > 1.3 * widths(110)[2]  # without whole forecasts nothing else has the noise


def test_paths_around_the_level_begin_at_what_it_lets_expect_and_are_as_wide_as_that_missed() -> None:
    """The level has noise in it, of which two days show that it goes."""
    noisy = LoadSeries(load=60.0 * np.exp(np.random.default_rng(4).normal(0.0, 0.3, 2800)))
    high = noisy.known_after(2400 + int(noisy.level[2400:].argmax()) + 1)
    around_level = futures(high, (1, 10, 49))[-8:]
    assert high.level[-1] > 69.0
    assert np.median(around_level[:, 2]) == pytest.approx(float(noisy.load.mean()), rel=0.05)
    assert np.ptp(around_level[:, 2]) < 0.2 * 60.0


def test_without_errors_of_the_level_or_a_walk_the_futures_are_the_level_alone() -> None:
    """So the backtest's ablations play it."""
    series = LoadSeries(load=[10.0, 40.0] * 200)
    assert futures(series, (1, 60), replace(WITHOUT_PAST, unknown_deviation=0.0)) == pytest.approx(series.level[-1])
    walk = futures(series, (1, 60), WITHOUT_PAST)
    assert walk[3] == pytest.approx(series.level[-1])
    assert np.ptp(walk[:, 0]) < 0.1 * series.level[-1]


def test_minutes_before_the_first_message_are_no_errors() -> None:
    begun, before = LoadSeries(load=[60.0] * 20), LoadSeries(load=[0.0] * 5 + [60.0] * 20)
    assert np.ptp(futures(before, (1, 5)), axis=0) == pytest.approx(np.ptp(futures(begun, (1, 5)), axis=0))


def test_errors_of_the_level_are_those_of_the_last_minutes_alone() -> None:
    swung, calm = LoadSeries(load=[10.0, 40.0] * 15 + [20.0] * 60), LoadSeries(load=[20.0] * 90)
    alone = FutureSettings(least_paths=10**6, level_minutes=30)
    widths = [np.ptp(futures(series, (1, 5), alone) / series.level[-1], axis=0) for series in (swung, calm)]
    assert widths[0] == pytest.approx(widths[1])


def test_a_mean_of_ten_minutes_shows_no_errors_within_it() -> None:
    """Within one span each minute is like the last: nobody saw them."""
    load = np.repeat([10.0, 40.0, 10.0, 40.0], 10)
    averaged = np.tile([False] + [True] * 9, 4)

    def width(series: LoadSeries) -> float:
        return float(np.ptp(futures(series, (1,))) / series.level[-1])

    assert width(LoadSeries(load=load, averaged=averaged)) > 2 * width(LoadSeries(load=load))


def test_a_series_grows_beyond_its_first_size() -> None:
    series = LoadSeries(load=np.arange(3000.0))
    assert len(series) == len(series.load) == len(series.summed) - 1 == 3000
    assert series.summed[-1] == pytest.approx(np.arange(3000.0).sum())


def test_an_empty_series_has_no_future() -> None:
    with pytest.raises(ValueError, match="without any minute"):
        futures(LoadSeries(), (1,))


def test_a_noisy_load_is_smoothed_and_a_jumping_one_is_followed() -> None:
    noisy = 10.0 * np.exp(np.random.default_rng(1).normal(0, 0.3, 500))
    jumping = np.repeat(10.0 * np.exp(np.random.default_rng(1).normal(0, 0.5, 50)), 10)
    settings = LevelSettings(weights=(0.1, 0.8))
    smooth, fast = LoadSeries(settings, noisy), LoadSeries(settings, jumping)
    assert np.ptp(np.log(smooth.level[-100:])) < np.ptp(np.log(noisy[-100:])) / 2
    assert fast.level[-1] == pytest.approx(jumping[-1], rel=0.05)
