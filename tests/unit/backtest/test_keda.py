"""KEDA and the HPA against the vectors of their own rules: constant lag, a sync every 15 s."""

from collections.abc import Callable

import numpy as np
import pytest

from planner.backtest.observation import Observation
from planner.backtest.policies.keda import Keda, ScalerOptions, scaler_metric
from tests.backtest_builders import scenario

EVEN = {"even_distribution": True}
LAGGING = {"limit_to_lagging": True}


def observed(second: float, lags: list[float], count: int) -> Observation:
    lag = np.array(lags)
    return Observation(
        second, lag, lag, np.zeros_like(lag), np.zeros(len(lags), dtype=np.intp), count, count, None, None
    )


def counts(
    policy: Keda, start: int, queues: int, lag: Callable[[float], float], until_s: float
) -> list[tuple[float, int]]:
    """Return every new count with its second; each is in force at once."""
    count, ordered = start, [(0.0, start)]
    for sync in range(int(until_s // 15) + 1):
        second = 15.0 * sync
        wished = policy.decide(observed(second, [lag(second), *[0.0] * (queues - 1)], count))
        if wished is not None and wished != count:
            count = wished
            ordered.append((second, count))
    return ordered


@pytest.mark.parametrize(
    ("queues", "lag", "options", "highest", "start", "expected"),
    [
        (8, 1_000_000, {}, 1000, 1, [1, 4, 8]),
        (64, 1_000_000, {}, 1000, 1, [1, 4, 8, 16, 32, 64]),
        (12, 1_000_000, EVEN, 1000, 1, [1, 4, 8, 12]),
        (12, 1_000_000, EVEN, 7, 1, [1, 4, 7]),
        (8, 85, {}, 1000, 1, [1, 4, 8, 9]),
        (64, 645, {}, 1000, 40, [40, 65]),
        (64, 645, {}, 1000, 58, [58, 65]),
        (64, 645, {}, 1000, 59, [59]),
        (24, 1_000_000, {}, 1000, 22, [22]),
    ],
)
def test_constant_lag_gives_the_counts_of_the_hpa(
    queues: int, lag: float, options: dict[str, bool], highest: int, start: int, expected: list[int]
) -> None:
    group = scenario(queues=queues, highest=highest, start=start)
    policy = Keda(group, ScalerOptions(10.0, **options))
    assert [count for _, count in counts(policy, start, queues, lambda _: lag, 300)] == expected


def test_a_scale_down_waits_until_the_last_high_proposal_has_left_the_window() -> None:
    policy = Keda(scenario(queues=8, highest=100, start=8), ScalerOptions(10.0))
    assert counts(policy, 8, 8, lambda second: 80 if second < 150 else 8, 600) == [(0.0, 8), (450.0, 1)]


@pytest.mark.parametrize(
    ("lag", "plain", "even", "lagging"),
    [(1, 1, 10, 1), (29, 29, 30, 10), (31, 31, 40, 10), (45, 45, 60, 10), (61, 61, 120, 10), (121, 121, 120, 10)],
)
def test_metric_of_twelve_partitions_with_all_lag_in_one(lag: float, plain: float, even: float, lagging: float) -> None:
    lags = [lag, *[0.0] * 11]
    metrics = [scaler_metric(lags, ScalerOptions(10.0, **options)) for options in ({}, EVEN, LAGGING)]
    assert metrics == [plain, even, lagging]
