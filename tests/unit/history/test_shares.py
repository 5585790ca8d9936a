"""Which part of the arrivals each queue is expected to take."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from planner.history.shares import QueueShares, expected_shares
from planner.model.intervals import QueueInterval
from planner.model.queues import MessageQueue

UNTIL = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(2)]


def interval(queue: int, minutes_ago: float, seconds: float, arrived: int) -> QueueInterval:
    ended = UNTIL - timedelta(minutes=minutes_ago)
    return QueueInterval(
        QUEUES[queue],
        ended - timedelta(seconds=seconds),
        ended,
        seconds,
        1000,
        1000,
        0,
        arrived,
        arrived,
        False,
        None,
        (),
    )


def expected(*intervals: QueueInterval, minutes: float = 60) -> dict[int, float]:
    found = expected_shares(intervals, QUEUES, UNTIL - timedelta(minutes=minutes), UNTIL)
    return {QUEUES.index(queue): share for queue, share in found.items()}


def test_shares_that_stay_are_not_taken_from_one_noisy_minute() -> None:
    random = np.random.default_rng(1)
    shares = QueueShares(np.array([50.0, 50.0]))
    for _ in range(300):
        shares.append(random.poisson([60, 40]).astype(float))
    assert shares.expected == pytest.approx([0.6, 0.4], abs=0.02)
    shares.append(np.array([20.0, 80.0]))
    assert shares.expected == pytest.approx([0.6, 0.4], abs=0.06)


def test_shares_that_jump_are_followed_at_once() -> None:
    shares = QueueShares(np.array([1.0, 1.0]))
    for hour in range(6):
        for _ in range(60):
            shares.append(np.array([90.0, 10.0]) if hour % 2 else np.array([10.0, 90.0]))
    shares.append(np.array([10.0, 90.0]))
    assert shares.expected == pytest.approx([0.1, 0.9])


def test_a_minute_without_messages_tells_nothing() -> None:
    shares = QueueShares(np.array([3.0, 1.0]))
    shares.append(np.array([0.0, 0.0]))
    assert shares.expected.tolist() == [0.75, 0.25]
    assert QueueShares(np.zeros(2)).expected.tolist() == [0.5, 0.5]


def test_what_came_in_an_interval_is_spread_over_its_minutes() -> None:
    both = [interval(0, 0, 180, 300), interval(1, 0, 60, 100), interval(1, 1, 120, 200)]
    assert expected(*both) == {0: 0.5, 1: 0.5}
    # The first of two minutes had 100 and 0 messages, the second 0 and 100: a minute's share is the next one's at best.
    assert (
        expected(interval(0, 1, 60, 100), interval(0, 0, 60, 0), interval(1, 1, 60, 0), interval(1, 0, 60, 100)) != {}
    )


def test_only_minutes_in_which_all_queues_were_watched_count() -> None:
    known = [interval(0, 2, 60, 30), interval(1, 2, 60, 10)]
    assert expected(*known) == {0: 0.75, 1: 0.25}
    assert expected(*known, interval(0, 0, 60, 1000)) == {0: 0.75, 1: 0.25}, "the other queue was not watched"
    reset = [interval(0, 1, 60, -5), interval(1, 1, 60, 1000)]
    assert expected(*known, *reset) == {0: 0.75, 1: 0.25}, "a topic was recreated"
    assert expected(interval(0, 0, 60, 10)) == {}
    assert expected() == {}
    assert expected(*known, minutes=2) == {}, "too long ago"
