"""What a load may be, and how earlier forecasts of it did."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from planner.demand.outlook import (
    LEAST_OVER,
    MOST_EXCESS,
    Outlook,
    Stretch,
    _Record,
    describe_widening,
    outlook,
    widened_band,
)
from planner.model.snapshot import SeriesPoint
from tests.builders import AT, snapshot


def seen(rates: Sequence[float]) -> Outlook:
    first = AT - timedelta(minutes=len(rates) - 1)
    points = tuple(
        SeriesPoint(first + timedelta(minutes=number), 60.0, rate, rate, 0, 3, 0, False)
        for number, rate in enumerate(rates)
    )
    result = outlook(replace(snapshot(), recent=points))
    assert result is not None
    return result


def test_a_steady_load_was_always_inside_and_its_level_never_missed() -> None:
    steady = seen([100.0] * 360)
    assert (steady.level, steady.minutes, steady.rests_on_errors) == (pytest.approx(100.0), 360, True)
    assert all((one.low, one.high) == (pytest.approx(100.0), pytest.approx(100.0)) for one in steady.stretches)
    first, *_, last = steady.stretches
    assert (first.from_minutes, first.to_minutes, last.from_minutes, last.to_minutes) == (0, 5, 60, 120)
    # Every ten minutes of six hours, as far as five or 120 minutes ahead are over.
    assert (first.forecasts, first.inside, first.level_miss) == (35, 35, pytest.approx(0.0))
    assert (last.forecasts, last.inside) == (24, 24)


def test_bands_hold_about_four_of_five_of_a_noisy_load() -> None:
    noisy = seen((100.0 * np.exp(np.random.default_rng(3).normal(0, 0.2, 900))).tolist())
    first = noisy.stretches[0]
    assert first.low < 100.0 < first.high
    assert 0.65 * first.forecasts < first.inside < 0.95 * first.forecasts
    assert first.level_miss is not None
    assert 0.02 < first.level_miss < 0.2


def test_a_load_that_jumped_was_outside() -> None:
    jumped = seen([100.0] * 300 + [300.0] * 60)
    assert jumped.stretches[0].inside < jumped.stretches[0].forecasts
    assert jumped.level == pytest.approx(300.0, rel=0.05)


def test_a_short_past_has_a_wide_band_and_no_track_record() -> None:
    short = seen([100.0] * 4)
    assert not short.rests_on_errors
    assert {one.forecasts for one in short.stretches} == {0}
    assert short.stretches[-1].high > 1.2 * short.level
    assert outlook(snapshot()) is None


def test_bands_that_were_too_narrow_are_made_wider_and_say_so() -> None:
    """A load that seldom jumps far: of its bands as they are 56 to 77 % hold what came. Red without the widening."""
    steps = np.random.default_rng(1).standard_t(2.0, 7200) * 0.01
    jumping = seen(np.clip(100 * np.exp(np.cumsum(steps)), 5.0, 3000.0).tolist())
    for stretch in jumping.stretches:
        assert 0.75 < stretch.inside / stretch.forecasts < 0.85
    assert jumping.stretches[-1].widened > 1.05
    assert {stretch.widened for stretch in seen([100.0] * 360).stretches} == {1.0}


def record(excesses: list[float], promised: float = 0.8) -> _Record:
    """Return the record of bands from 100 to 200 that needed these factors, one each ten minutes, over at once."""
    earlier = _Record(promised)
    for number, excess in enumerate(excesses):
        earlier.add(10 * number, 10 * number, (100.0, 150.0, 200.0), 150.0, 200.0 * excess)
    return earlier


def test_bands_that_were_too_wide_are_made_narrower_once_there_are_many_of_them() -> None:
    """Nine of ten came to lie below 160. Red when bands are never narrowed, or few of them narrow one."""
    near = [0.8] * 9 + [1.2]
    assert record(near * 10).widening(1000) == 1.0
    many = record(near * 20)
    assert many.widening(2000) == pytest.approx(0.8)
    assert sum(many.inside) / len(many.inside) == pytest.approx(0.9, abs=0.01)


def test_while_fewer_hold_than_promised_the_bands_hold_a_larger_share_but_a_load_that_stopped_is_no_measure() -> None:
    """Needed factors that grow day by day: the quantile of the past alone holds less than it promises."""
    growing = [1.0 + 0.004 * number + 0.2 * (number % 5) for number in range(430)]
    held = record(growing)
    plain = [
        excess <= np.quantile([min(it, MOST_EXCESS) for it in growing[:number]], 0.8)
        for number, excess in enumerate(growing)
        if number >= LEAST_OVER
    ]
    assert np.mean(plain) < 0.7
    assert np.mean(plain) + 0.03 < np.mean(held.inside[LEAST_OVER:]) < 0.85
    stopped = record([1.0] * 70 + [1e9] * 30)
    assert stopped.widening(1000) == MOST_EXCESS


@pytest.mark.parametrize(
    ("factors", "sentence"),
    [
        ((1.0, 1.001, 0.999), ""),
        ((1.0, 1.2), "Earlier bands were too narrow, so that these are up to 1.20 times wider on each side."),
        ((1.0, 0.8), "Earlier bands were too wide, so that these are up to 1.25 times narrower on each side."),
        ((1.2, 0.8), "of others too wide: these are up to 1.20 times wider on each side or up to 1.25 times narrower"),
    ],
)
def test_what_earlier_bands_made_of_these_is_one_sentence(factors: tuple[float, ...], sentence: str) -> None:
    stretches = [Stretch(0, 5, 1.0, 2.0, 3.0, 9, 8, 0.1, factor) for factor in factors]
    assert sentence in describe_widening(stretches)
    assert bool(sentence) == bool(describe_widening(stretches))


def test_a_band_never_crosses_its_middle() -> None:
    assert widened_band((100.0, 110.0, 400.0), 0.5) == (110.0, 110.0, 200.0)
    assert widened_band((100.0, 110.0, 400.0), 2.0) == (50.0, 110.0, 800.0)
