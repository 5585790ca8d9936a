"""Load by minute out of a snapshot's recent past."""

from datetime import timedelta

import pytest

from planner.demand.recent import LONGEST_GAP, minute_load
from planner.model.snapshot import SeriesPoint
from tests.builders import AT


def point(age_s: float, rate: float | None, seconds: float = 60.0) -> SeriesPoint:
    return SeriesPoint(AT - timedelta(seconds=age_s), seconds, rate, rate, 0, 3, 0, False)


def test_points_of_seconds_are_the_mean_of_their_minute() -> None:
    points = [point(90, 100.0, 30.0), point(60, 200.0, 30.0), point(30, 10.0, 30.0), point(0, 20.0, 30.0)]
    assert minute_load(points, AT).rates == pytest.approx([150.0, 15.0])


def test_a_point_over_two_minutes_counts_in_both() -> None:
    assert minute_load([point(90, 50.0, 30.0), point(30, 10.0, 60.0)], AT).rates == pytest.approx([30.0, 10.0])


def test_a_short_gap_keeps_what_was_before_it_and_a_long_one_begins_anew() -> None:
    assert minute_load([point(180, 7.0), point(0, 9.0)], AT).rates == [7.0, 7.0, 7.0, 9.0]
    long = 60.0 * (LONGEST_GAP + 2)
    assert minute_load([point(long, 7.0), point(0, 9.0)], AT).rates == [9.0]


def test_data_that_end_long_ago_or_say_nothing_give_no_minute() -> None:
    assert minute_load([point(3600, 7.0)], AT).rates == []
    assert minute_load([point(0, None)], AT).rates == []
    assert minute_load([], AT).rates == []


def test_only_the_first_minute_of_a_longer_span_says_something_of_its_own() -> None:
    """Red where ten minutes that were observed as one count for ten."""
    ten, minute, half = point(60, 7.0, 600.0), point(0, 9.0), point(30, 9.0, 30.0)
    assert minute_load([ten, minute], AT).averaged == [False, *[True] * 9, False]
    assert minute_load([half, point(0, 9.0, 30.0)], AT).averaged == [False]
    assert minute_load([point(30, 5.0, 60.0), point(90, 5.0, 60.0)], AT).averaged == [False, False, False]
    assert minute_load([point(180, 7.0), minute], AT).averaged == [False, True, True, False]
    between = minute_load([point(30, 7.0, 600.0), point(0, 9.0, 30.0)], AT)
    assert between.averaged == [True, False, *[True] * 8, False]
