"""A schedule by the hour of the day: the smallest count for each stretch, ordered so that its pods are ready."""

import numpy as np
import pytest

from planner.backtest.play import play
from planner.backtest.policies.schedule import schedule_grid, stretch_of
from tests.backtest_builders import scenario

HOUR_MIN = 60


def days(count: int, by_hour: dict[int, float], otherwise: float = 90.0) -> list[float]:
    """Return rates a minute of so many equal days."""
    day = np.full(24 * HOUR_MIN, otherwise)
    for hour, rate in by_hour.items():
        day[hour * HOUR_MIN : (hour + 1) * HOUR_MIN] = rate
    return [*day.tolist()] * count


def test_stretches_of_the_day_begin_with_the_arrivals() -> None:
    assert [stretch_of(hour * 3600.0, 24) for hour in (0, 1, 23, 24, 49)] == [0, 1, 23, 0, 1]
    assert [stretch_of(hour * 3600.0, 6) for hour in (0, 3.9, 4, 25)] == [0, 0, 1, 0]


def test_each_hour_has_the_smallest_count_that_carries_it_and_pods_start_before_it() -> None:
    group = scenario(queues=8, rates=days(2, {9: 350.0, 10: 700.0}), start=1, pod_start_s=90)
    exact = next(policy for policy in schedule_grid(group) if "each 1 h" in policy.tuning and "100th" in policy.tuning)
    assert exact.tuning.endswith("at 70% of the busiest consumer")
    changes = play(group, [exact])[0].changes
    # 90 a second are 0.9 of a consumer: two, to be at 45 %; 350 are eight at 44 % (four at 88 %); 700 at 88 % no count.
    hour, ahead = 3600.0, 120.0
    first_day = [change for change in changes if change[0] < 24 * hour]
    assert first_day == [(0.0, 2), (9 * hour - ahead, 8), (11 * hour, 2)]
    second_day = [(second - 24 * hour, count) for second, count in changes if second >= 24 * hour]
    assert second_day == first_day[1:]


def test_what_is_known_beforehand_shifts_the_hour_of_the_day_and_is_not_in_the_counts() -> None:
    known_min = 5 * HOUR_MIN
    rates = days(1, {0: 700.0, 9: 350.0})
    group = scenario(queues=8, rates=rates, known=known_min, start=1)
    exact = next(policy for policy in schedule_grid(group) if "each 1 h" in policy.tuning and "100th" in policy.tuning)
    assert play(group, [exact])[0].changes[1][0] == (9 * HOUR_MIN - known_min) * 60.0 - 60.0
    # The hour 0 is not played: what it needs is not known, and nothing asks for it.
    assert exact._counts[0] == group.start


@pytest.mark.parametrize(("utilisation", "expected"), [("70%", 8), ("80%", 8), ("90%", 4), ("100%", 4)])
def test_the_utilisation_bounds_the_busiest_consumer(utilisation: str, expected: int) -> None:
    group = scenario(queues=8, rates=days(1, {}, otherwise=350.0), start=1)
    policies = [it for it in schedule_grid(group) if "each 4 h" in it.tuning and f"at {utilisation}" in it.tuning]
    assert len(policies) == 4
    assert {policy._counts[0] for policy in policies} == {expected}
