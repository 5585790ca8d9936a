"""Flink's autoscaler against the vectors of its own rule."""

import math

import pytest

from planner.backtest.policies.flink import FlinkOptions, Rates, align, evaluate, true_rate
from tests.backtest_builders import scenario

DEFAULTS = FlinkOptions()


@pytest.mark.parametrize(
    ("rates", "count", "queues", "rate", "needed", "factor", "wished", "evenly", "balanced", "bounds", "is_outside"),
    [
        (Rates(8000, 0, 0, 900), 8, 24, 8888.9, 12762, 1.4357, 12, 12, 12, (8000, 21333), False),
        (Rates(8000, 500, 90000, 1000), 8, 24, 8000, 13610, 1.7012, 14, 24, 24, (8550, 22717), True),
        (Rates(2000, 0, 0, 200), 12, 24, 10000, 3190, 0.4, 5, 6, 6, (2000, 5333), True),
        (Rates(2000, 0, 0, 300), 20, 25, 6666.7, 3190, 0.4785, 10, 10, 13, (2000, 5333), True),
        (Rates(8000, -4000, 3_000_000, 1000), 8, 24, 8000, 8048, 1.0060, 9, 12, 12, (5667, math.inf), False),
    ],
)
def test_one_window_gives_rate_capacity_factor_and_counts(
    rates: Rates,
    count: int,
    queues: int,
    rate: float,
    needed: float,
    factor: float,
    wished: int,
    evenly: int,
    balanced: int,
    bounds: tuple[float, float],
    is_outside: bool,
) -> None:
    result = evaluate(rates, DEFAULTS, count, true_rate(rates, None))
    assert result.true_rate == pytest.approx(rate, abs=0.1)
    assert (result.needed, result.wished) == (needed, wished)
    assert result.factor == pytest.approx(factor, abs=1e-4)
    assert (result.scale_up_below, result.scale_down_above) == bounds
    assert result.is_outside is is_outside
    assert align(wished, count, queues, is_balanced=False) == evenly
    assert align(wished, count, queues) == balanced


@pytest.mark.parametrize(
    ("queues", "count", "wished", "evenly", "balanced"),
    [
        (31, 8, 12, 31, 16),
        (31, 20, 9, 9, 11),
        (24, 8, 13, 24, 24),
        (24, 12, 7, 8, 8),
        (100, 30, 33, 50, 34),
        (126, 21, 30, 42, 32),
    ],
)
def test_alignment_to_the_partitions(queues: int, count: int, wished: int, evenly: int, balanced: int) -> None:
    assert align(wished, count, queues, is_balanced=False) == evenly
    assert align(wished, count, queues) == balanced


def test_a_rate_observed_under_lag_replaces_one_from_busy_time_that_exceeds_it_by_far() -> None:
    rates = Rates(1000, 0, 90_000, 500)
    assert true_rate(rates, 1900.0) == 2000
    assert true_rate(rates, 1000.0) == 1000
    assert true_rate(Rates(1000, 0, 0, 0), 1200.0) == 1200


def test_scenario_limits_bound_it() -> None:
    assert scenario(queues=4).largest_topic == 4
