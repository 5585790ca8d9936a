from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from planner.history.summary import Stretch, stretch, stretches
from planner.model.points import GroupPoint

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)


def point(
    at: datetime, seconds: float, arrival: float | None, lag: int | None = 0, members: int | None = 2
) -> GroupPoint:
    return GroupPoint(at, seconds, arrival, arrival, lag, None if lag is None else lag / 10, members, is_gap=False)


def after(minutes: float) -> datetime:
    return MONDAY + timedelta(minutes=minutes)


def test_a_mean_rate_weighs_points_by_their_time() -> None:
    found = stretch([point(after(1), 60.0, 10.0), point(after(5), 240.0, 20.0)], MONDAY, after(5))
    assert (found.arrival_rate, found.most_arrival_rate, found.consumption_rate, found.known) == (18.0, 20.0, 18.0, 1.0)


def test_what_is_unknown_is_left_out_of_figures_and_told_as_a_share() -> None:
    points = [point(after(1), 60.0, 10.0, 30), point(after(4), 180.0, None, None, None)]
    found = stretch(points, MONDAY, after(4))
    assert (found.arrival_rate, found.most_lag, found.most_lag_s) == (10.0, 30, 3.0)
    assert (found.fewest_members, found.most_members, found.known) == (2, 2, 0.25)


def test_a_stretch_without_any_figure_says_so_of_each() -> None:
    found = stretch([point(after(1), 60.0, None, None, None)], MONDAY, after(1))
    assert found == Stretch(MONDAY, after(1), None, None, None, None, None, None, None, 0.0)


def test_two_weeks_are_days() -> None:
    since, until = MONDAY + timedelta(hours=7), MONDAY + timedelta(days=14, hours=7)
    hourly = [point(since + timedelta(hours=number), 3600.0, float(number)) for number in range(1, 14 * 24 + 1)]
    found = stretches(hourly, since, until, 16)
    assert [one.since for one in found] == [since, *(MONDAY + timedelta(days=day) for day in range(1, 15))]
    assert [one.until for one in found] == [*(MONDAY + timedelta(days=day) for day in range(1, 15)), until]
    assert {one.known for one in found} == {1.0}
    # The hours that end from 8:00 to 24:00 are the first day's.
    assert (found[0].arrival_rate, found[0].most_arrival_rate) == (9.0, 17.0)


@pytest.mark.parametrize("minutes", [1, 7, 16, 61, 333, 1440, 20_000, 5_000_000])
def test_there_are_never_more_stretches_than_wanted_and_no_point_is_lost(minutes: int) -> None:
    since = MONDAY + timedelta(seconds=17)
    until = since + timedelta(minutes=minutes)
    points = [point(since + (until - since) * number / 200, 1.0, 1.0, number) for number in range(1, 201)]
    found = stretches(points, since, until, 16)
    assert len(found) <= 16
    assert max(one.most_lag or 0 for one in found) == 200
    assert all(before.until == one.since for before, one in pairwise(found))
    assert (found[0].since, found[-1].until) == (since, until)


def test_time_without_points_has_no_stretch() -> None:
    found = stretches([point(after(1), 60.0, 1.0), point(after(119), 60.0, 1.0)], MONDAY, after(120), 16)
    assert [one.since for one in found] == [MONDAY, after(110)]


@pytest.mark.parametrize(("until", "most"), [(MONDAY, 16), (after(10), 1)])
def test_an_empty_span_is_refused(until: datetime, most: int) -> None:
    with pytest.raises(ValueError, match="expected 2 and some time"):
        stretches([], MONDAY, until, most)
