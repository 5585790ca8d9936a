from collections.abc import Sequence
from datetime import timedelta

import pytest

from planner.history.intervals import queue_intervals
from planner.history.rates import queue_rates
from planner.history.series import MOST_POINTS, group_series
from planner.model.intervals import QueueInterval
from planner.model.queues import MessageQueue
from tests.sample_builders import START, Offsets, steady, watch

QUEUE = MessageQueue("orders", "broker-a", 0)


def intervals_of(offsets: Offsets, count: int, drop: tuple[int, ...] = ()) -> Sequence[QueueInterval]:
    samples = [sample for number, sample in enumerate(watch(count, offsets)) if number not in drop]
    return [interval for interval in queue_intervals(samples, 5.0) if interval.queue == QUEUE]


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_a_steady_queue_has_equal_mean_and_upper_rate() -> None:
    rates = queue_rates(intervals_of(steady(50, 40), 25), START + after(120), 120.0, 95.0)
    assert (rates.arrival, rates.upper_arrival, rates.consumption, rates.covered_s) == (10.0, 10.0, 8.0, 120.0)


def test_the_upper_rate_is_a_percentile_of_whole_minutes() -> None:
    # Two minutes at 2/s, then one at 20/s: samples alternate within the minute, which must not show.
    def offsets(_: MessageQueue, number: int) -> tuple[int, int]:
        arrived = 10 * number if number <= 24 else 240 + 100 * (number - 24) + (50 if number % 2 else 0)
        return 1000 + arrived, 1000

    rates = queue_rates(intervals_of(offsets, 37), START + after(180), 180.0, 100.0)
    assert rates.upper_arrival == 20.0
    assert rates.arrival == 8.0
    median = queue_rates(intervals_of(offsets, 37), START + after(180), 180.0, 50.0)
    assert median.upper_arrival == 2.0


def test_only_the_window_counts() -> None:
    fast_then_slow = intervals_of(lambda _, n: (1000 + (100 * n if n <= 12 else 1200 + 5 * (n - 12)), 0), 25)
    assert queue_rates(fast_then_slow, START + after(120), 60.0, 95.0).arrival == 1.0


def test_gaps_count_for_the_mean_but_not_for_what_is_covered() -> None:
    rates = queue_rates(intervals_of(steady(50, 50), 25, drop=(10, 11, 12)), START + after(120), 120.0, 95.0)
    assert rates.arrival == 10.0
    assert rates.covered_s == 100.0


def test_a_window_with_gaps_begins_earlier_by_as_much() -> None:
    """A group that is watched in turns: 60 s at 20/s, 60 s unwatched at 10/s, 60 s at 5/s."""

    def offsets(_: MessageQueue, n: int) -> tuple[int, int]:
        return 1000 + 100 * min(n, 12) + 50 * max(0, min(n, 24) - 12) + 25 * max(0, n - 24), 0

    intervals = intervals_of(offsets, 37, drop=tuple(range(13, 24)))
    rates = queue_rates(intervals, START + after(180), 120.0, 100.0)
    assert rates.covered_s == 120.0
    assert (rates.arrival, rates.upper_arrival) == (round(2100 / 180, 6), 20.0)
    half = queue_rates(intervals, START + after(180), 90.0, 100.0)
    assert half.covered_s == 90.0
    assert half.arrival == round((6 * 100 + 600 + 300) / 150, 6)


def test_a_window_reaches_back_three_times_its_length_at_most() -> None:
    intervals = intervals_of(steady(50, 50), 61, drop=tuple(range(21, 55)))
    rates = queue_rates(intervals, START + after(300), 60.0, 95.0)
    assert rates.covered_s == 25.0


def test_a_reset_gives_no_rate_instead_of_zero() -> None:
    rates = queue_rates(intervals_of(lambda _, n: (1000 - n, 500), 3), START + after(10), 60.0, 95.0)
    assert (rates.arrival, rates.upper_arrival, rates.consumption) == (None, None, 0.0)


def test_no_interval_gives_unknown_rates() -> None:
    rates = queue_rates([], START, 60.0, 95.0)
    assert (rates.arrival, rates.upper_arrival, rates.consumption, rates.covered_s) == (None, None, None, 0.0)


def test_series_adds_up_queues_and_counts_moves() -> None:
    three = watch(10, steady(10, 5))
    two = watch(20, steady(10, 5), clients=("10.0.0.1@1", "10.0.0.2@1"))[10:]
    points = group_series(queue_intervals((*three, *two), 5.0), START, START + after(95))
    assert len(points) == 19
    assert {point.arrival_rate for point in points} == {44.0}
    assert points[-1].lag == 22 * 5 * 19
    assert [point.consumers for point in points] == [3] * 9 + [2] * 10
    # AVG, 16 and 6 queues, last of three leaves: 7 and 3 queues change hands.
    assert [point.moved for point in points if point.moved] == [len(_moved(three[0], two[0]))]


def _moved(before, after_change):  # type: ignore[no-untyped-def]
    return [q for q, owner in before.owners.items() if after_change.owners[q] != owner]


def test_series_is_bounded_however_long_the_past() -> None:
    points = group_series(queue_intervals(watch(1000), 5.0), START, START + after(5000))
    assert len(points) <= MOST_POINTS
    assert [point.arrival_rate for point in points] == [pytest.approx(44.0)] * len(points)
