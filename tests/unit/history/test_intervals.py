from dataclasses import replace

import pytest

from planner.history.intervals import queue_intervals
from planner.model.intervals import QueueInterval
from planner.model.queues import MessageQueue
from planner.model.samples import QueueOffsets
from tests.sample_builders import Offsets, steady, watch

QUEUE = MessageQueue("orders", "broker-a", 0)


def of_queue(offsets: Offsets, count: int, drop: tuple[int, ...] = ()) -> list[QueueInterval]:
    samples = [sample for number, sample in enumerate(watch(count, offsets)) if number not in drop]
    return [interval for interval in queue_intervals(samples, 5.0) if interval.queue == QUEUE]


def test_rates_are_differences_over_seconds() -> None:
    (interval,) = of_queue(steady(arriving=40, consuming=30), 2)
    assert (interval.arrived, interval.consumed, interval.seconds) == (40, 30, 5.0)
    assert (interval.arrival_rate, interval.consumption_rate, interval.lag) == (8.0, 6.0, 10)


def test_a_missing_sample_makes_one_longer_interval_marked_as_gap() -> None:
    intervals = of_queue(steady(), 5, drop=(2,))
    assert [(i.seconds, i.is_gap) for i in intervals] == [(5.0, False), (10.0, True), (5.0, False)]
    assert intervals[1].arrival_rate == 2.0


def test_a_recreated_topic_is_marked_and_its_negative_difference_kept() -> None:
    (interval,) = of_queue(lambda _, number: ((1000, 900), (10, 0))[number], 2)
    assert (interval.arrived, interval.consumed) == (-990, -900)
    assert interval.broker_reset
    assert interval.consumer_reset
    assert interval.arrival_rate is None
    assert interval.consumption_rate is None


def test_an_offset_set_back_is_a_consumer_reset_only() -> None:
    (interval,) = of_queue(lambda _, number: ((1000, 900), (1010, 500))[number], 2)
    assert (interval.broker_reset, interval.consumer_reset) == (False, True)
    assert (interval.arrival_rate, interval.lag) == (2.0, 510)


def test_commit_age_grows_while_messages_wait_and_the_offset_stands() -> None:
    consumer = (100, 110, 110, 110, 120)
    intervals = of_queue(lambda _, number: (200 + number, consumer[number]), 5)
    assert [interval.commit_age_s for interval in intervals] == [0.0, 5.0, 10.0, 0.0]


def test_commit_age_is_unknown_until_the_offset_was_seen_to_move() -> None:
    intervals = of_queue(lambda _, number: (200 + number, 100), 3)
    assert [interval.commit_age_s for interval in intervals] == [None, None]


def test_a_queue_that_is_caught_up_has_commit_age_zero() -> None:
    intervals = of_queue(lambda _, __: (100, 100), 3)
    assert [interval.commit_age_s for interval in intervals] == [0.0, 0.0]


def test_order_of_samples_and_repeated_ones_do_not_matter() -> None:
    samples = watch(5)
    assert queue_intervals((*reversed(samples), samples[2]), 5.0) == queue_intervals(samples, 5.0)


def test_owners_are_those_at_the_end() -> None:
    first, second = watch(2)
    silent = replace(second, members=tuple(replace(member, owned=None) for member in second.members))
    assert {interval.owners for interval in queue_intervals((first, silent), 5.0)} == {()}
    with_owners = queue_intervals((first, second), 5.0)
    assert with_owners[0].owners == ("10.0.0.1@1",)


def test_one_sample_makes_no_interval() -> None:
    assert queue_intervals(watch(1), 5.0) == ()


@pytest.mark.parametrize("count", [2, 7])
def test_every_queue_has_one_interval_less_than_samples(count: int) -> None:
    assert len(queue_intervals(watch(count), 5.0)) == 22 * (count - 1)


def test_without_a_commit_the_lag_is_unknown_and_not_the_whole_queue() -> None:
    intervals = of_queue(lambda _, number: (200 + 10 * number, (None, None, 215, 225)[number]), 4)
    assert [interval.lag for interval in intervals] == [None, 5, 5]
    assert [interval.consumed for interval in intervals] == [None, None, 10]
    assert [interval.consumption_rate for interval in intervals] == [None, None, 2.0]
    assert [interval.arrival_rate for interval in intervals] == [2.0, 2.0, 2.0]
    assert not any(interval.consumer_reset for interval in intervals)


def test_the_first_commit_counts_as_movement_of_the_offset() -> None:
    intervals = of_queue(lambda _, number: (300, (None, None, 215, 215)[number]), 4)
    assert [interval.commit_age_s for interval in intervals] == [None, 0.0, 5.0]


def test_nobody_is_behind_in_a_queue_that_holds_nothing() -> None:
    assert [QueueOffsets(QUEUE, 0, None).lag, QueueOffsets(QUEUE, 70, None, first_offset=70).lag] == [0, 0]
    assert QueueOffsets(QUEUE, 71, None, first_offset=70).lag is None
