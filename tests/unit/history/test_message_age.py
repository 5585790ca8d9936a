"""How old the oldest waiting message is."""

from datetime import timedelta

import pytest

from planner.history.intervals import queue_intervals
from planner.history.message_age import REACH, OffsetCurve
from tests.sample_builders import START, watch


def curve(*points: tuple[float, int]) -> OffsetCurve:
    made = OffsetCurve()
    for seconds, offset in points:
        made.add(START + timedelta(seconds=seconds), offset)
    return made


@pytest.mark.parametrize(
    ("consumer_offset", "seconds"),
    [(0, 90.0), (10, 80.0), (29, 61.0), (30, 30.0), (31, 29.5), (89, 0.5)],
)
def test_a_message_came_between_two_looks_in_proportion_to_its_offset(consumer_offset: int, seconds: float) -> None:
    # 30 messages in the first 30 s, none in the next, 60 in the last.
    told = curve((0, 0), (30, 30), (60, 30), (90, 90)).age_s(consumer_offset, 90 - consumer_offset)
    assert told == (seconds, False)


def test_nothing_waits_so_nothing_is_old() -> None:
    assert curve((0, 10), (30, 40)).age_s(40, 0) == (0.0, False)


def test_a_message_older_than_the_first_look_is_at_least_as_old_as_that() -> None:
    assert curve((0, 10), (30, 40)).age_s(9, 31) == (30.0, True)


def test_only_so_much_of_the_past_is_remembered() -> None:
    reach_s = REACH.total_seconds()
    assert curve((0, 0), (10, 100), (reach_s + 5, 100)).age_s(50, 50) == (reach_s - 5, True)


def test_a_recreated_topic_begins_a_new_curve() -> None:
    assert curve((0, 1000), (30, 5), (60, 25)).age_s(3, 22) == (30.0, True)
    assert curve((0, 1000), (30, 5), (60, 25)).age_s(15, 10) == (15.0, False)


def test_an_offset_set_back_asks_for_messages_that_are_forgotten() -> None:
    told = curve((0, 0), (30, 30), (60, 60))
    told.age_s(45, 15)
    told.add(START + timedelta(seconds=90), 90)
    assert told.age_s(5, 85) == (60.0, True)


def test_an_interval_tells_the_age_at_its_end_and_none_without_a_known_lag() -> None:
    slow = queue_intervals(watch(4, lambda _, number: (100 * number, 50 * number)), 5.0)
    assert [interval.lag_s for interval in slow[:3]] == [2.5, 5.0, 7.5]
    unknown = queue_intervals(watch(3, lambda _, number: (100 * number, None)), 5.0)
    assert {interval.lag_s for interval in unknown} == {None}
