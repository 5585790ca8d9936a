"""Druid's cost-based rule against what the classes of its release 37.0.0 answer.

The figures are answers of ``CostBasedAutoScaler.computeValidTaskCounts`` and ``WeightedCostFunction.computeCost`` of
``druid-indexing-service`` 37.0.0, called in a JVM on 29 November 2026.
"""

import numpy as np
import pytest

from planner.backtest.observation import Observation
from planner.backtest.policies.druid import Druid, DruidOptions, Metrics, cheapest_count, count_cost, task_counts
from tests.backtest_builders import scenario

ANY = DruidOptions()


@pytest.mark.parametrize(
    ("partitions", "tasks", "lag", "lowest", "highest", "high_lag", "expected"),
    [
        (32, 8, 0, 1, 32, None, [1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 32]),
        (24, 5, 0, 2, 20, None, [2, 3, 4, 5, 6, 8, 12]),
        (7, 3, 0, 1, 100, None, [1, 2, 3, 4, 7]),
        (32, 8, 0, 1, 32, -1, [4, 5, 6, 7, 8, 11, 16]),
        (32, 8, 640_000, 1, 32, 10_000, [4, 5, 6, 7, 8, 11, 16]),
        (32, 8, 3_200_000, 1, 32, 10_000, [4, 5, 6, 7, 8, 11, 16, 32]),
        (31, 31, 0, 1, 31, -1, [7, 8, 11, 16, 31]),
        (12, 3, 1_200_000, 1, 8, 5_000, [2, 3, 4, 6]),
        (100, 10, 0, 1, 50, -1, [8, 9, 10, 12, 13]),
    ],
)
def test_counts_that_are_compared(
    partitions: int, tasks: int, lag: float, lowest: int, highest: int, high_lag: int | None, expected: list[int]
) -> None:
    options = ANY if high_lag is None else DruidOptions(bounded=True, high_lag=high_lag)
    assert task_counts(Metrics(lag, partitions, tasks, 0.0, 1.0), options, lowest, highest) == expected


@pytest.mark.parametrize(
    ("lag_a_partition", "tasks", "partitions", "idle", "rate", "proposed", "cost"),
    [
        (1000, 8, 32, 0.3, 100, 8, 3.1453877639491066),
        (1000, 8, 32, 0.3, 100, 12, 5.696925175966072),
        (1000, 8, 32, 0.3, 100, 4, 2.6907755278982135),
        (50_000, 8, 32, 0.0, 2500, 16, 21.40988914220514),
        (50_000, 8, 32, 0.0, 2500, 8, 30.819778284410283),
        (0, 8, 32, 0.6, 500, 8, 3.5999999999999996),
        (0, 8, 32, 0.6, 500, 4, 0.5999999999999999),
        (0, 8, 32, 0.6, 500, 3, 0.0),
        (5, 8, 32, 0.2, 5000, 11, 3.45078579774227),
        (20, 4, 12, -1, 1500, 6, 2.257665244091185),
    ],
)
def test_what_a_count_costs(
    lag_a_partition: float, tasks: int, partitions: int, idle: float, rate: float, proposed: int, cost: float
) -> None:
    metrics = Metrics(lag_a_partition * partitions, partitions, tasks, idle, rate)
    assert count_cost(metrics, proposed, ANY) == pytest.approx(cost, rel=1e-12)


def test_the_first_of_equal_counts_wins_and_the_present_one_where_none_is_cheaper() -> None:
    idle = Metrics(0.0, 32, 8, 0.75, 500.0)
    # One and two consumers would idle for no time at all.
    assert cheapest_count(idle, ANY, [1, 2, 8]) == 1
    assert cheapest_count(Metrics(0.0, 32, 8, 0.0, 500.0), ANY, [4, 8, 16]) == 8


def seen(second: float, lag: float, consumed: float, count: int, busy: float) -> Observation:
    """Return what one queue shows."""
    done = np.array([consumed])
    return Observation(
        second, np.array([lag]), done + lag, done, np.zeros(1, dtype=np.intp), count, count, np.full(count, busy), None
    )


def test_it_rests_for_half_an_hour_behind_each_change() -> None:
    policy = Druid(scenario(queues=32, highest=32, start=8), ANY)
    answers = []
    count = 8
    for number in range(8):
        answer = policy.decide(seen(600.0 * number, 0.0, 600_000.0 * number, count, 0.5))
        answers.append(answer)
        count = answer or count
    # Nothing is known at the begin; then every answer halves what is busy for half of its time.
    assert answers == [None, 1, None, None, None, None, None, None]
    growing = Druid(scenario(queues=32, highest=32, start=8), ANY)
    answers = [growing.decide(seen(600.0 * number, 5e6, 600_000.0 * number, 8, 1.0)) for number in range(6)]
    assert answers == [None, 32, None, None, 32, None]


def test_much_lag_and_nothing_processed_is_no_reading() -> None:
    answers = []
    for consumed in (0.0, 600.0):
        policy = Druid(scenario(queues=8, highest=8, start=2), ANY)
        answers += [policy.decide(seen(600.0 * number, 1e6, consumed * 2 * number, 2, 1.0)) for number in range(2)]
    assert answers == [None, None, None, 8]
