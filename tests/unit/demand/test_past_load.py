"""The load of the days before a snapshot's recent past, carried on from snapshot to snapshot."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from planner.demand.past import ClockMinutes, continue_past, past_before, past_of, past_up_to
from planner.demand.recent import LONGEST_GAP, LONGEST_PAST_GAP, MinuteLoad, load_of_past, minute_load
from planner.documents.data import SNAPSHOT
from planner.errors import DocumentError
from planner.model.past_load import MINUTE, MOST_MINUTES, PastLoad
from planner.model.snapshot import GroupSnapshot, SeriesPoint
from tests.builders import snapshot

BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
HOURS = timedelta(hours=1)


def load_at(at: datetime) -> float:
    """Return messages per second of the minute that ends at ``at``: no two are alike."""
    return 1.0 + round((at - BEGIN) / MINUTE)


def points(since: datetime, until: datetime, seconds: float = 60.0) -> tuple[SeriesPoint, ...]:
    """Return spans of the load, the last of which ends at ``until``."""
    count = int((until - since).total_seconds() // seconds)
    ends = [until - timedelta(seconds=seconds) * back for back in reversed(range(count))]
    return tuple(SeriesPoint(end, seconds, load_at(end), None, 0, 3, 0, seconds > 60.0) for end in ends)


def at_time(at: datetime, recent: Sequence[SeriesPoint], past: PastLoad | None = None) -> GroupSnapshot:
    return replace(snapshot(), at=at, recent=tuple(recent), past_load=past)


def carried(every: timedelta, until: datetime, offset_s: float = 0.0) -> GroupSnapshot:
    """Return the last of snapshots of six hours each, ``every`` so long, each continued from the one before."""
    at = BEGIN + 6 * HOURS + timedelta(seconds=offset_s)
    taken = at_time(at, points(BEGIN, at))
    while (at := at + every) <= until:
        now = at_time(at, points(at - 6 * HOURS, at))
        taken = replace(now, past_load=continue_past(taken, now))
    return taken


@pytest.mark.parametrize("offset_s", [0.0, 17.0])
@pytest.mark.parametrize("every_min", [10, 37])
def test_what_leaves_the_recent_past_is_carried_on(every_min: int, offset_s: float) -> None:
    """Two days in snapshots of six hours: each minute once, in order. Red where one is lost, twice, or out of place."""
    taken = carried(every_min * MINUTE, BEGIN + 48 * HOURS, offset_s)
    load = minute_load(taken.recent, taken.at, taken.past_load)
    assert len(load.rates) == pytest.approx((taken.at - BEGIN) / MINUTE, abs=1)
    assert not any(load.averaged)
    ends = [taken.at - MINUTE * back for back in reversed(range(len(load.rates)))]
    # A minute that begins within one of the clock's lies in two; rates above 1 000 have four figures.
    assert load.rates[1:] == pytest.approx([load_at(end) for end in ends[1:]], abs=1.6)


def test_no_more_than_a_week_is_carried_on() -> None:
    taken = carried(5 * HOURS, BEGIN + timedelta(days=9))
    assert taken.past_load is not None
    assert len(taken.past_load.rates) == MOST_MINUTES
    assert len(minute_load(taken.recent, taken.at, taken.past_load).rates) == MOST_MINUTES + 360


def test_what_nobody_observed_is_unknown_and_only_bridged_for_so_long() -> None:
    """Snapshots of one hour, three hours apart, and once a day: red where a hole gets a made-up figure."""
    first = at_time(BEGIN + HOURS, points(BEGIN, BEGIN + HOURS))
    second = at_time(BEGIN + 4 * HOURS, points(BEGIN + 3 * HOURS, BEGIN + 4 * HOURS))
    past = continue_past(first, second)
    assert past is not None
    assert past.rates == (*(load_at(point.at) for point in first.recent), *[None] * 120)
    load = minute_load(second.recent, second.at, past)
    assert len(load.rates) == 240
    assert load.rates[60:180] == [load_at(first.at)] * 120
    assert load.averaged == [False] * 60 + [True] * 120 + [False] * 60
    second = replace(second, past_load=past)
    hole = timedelta(minutes=LONGEST_PAST_GAP + 61)
    third = at_time(second.at + hole, points(second.at + hole - HOURS, second.at + hole))
    past = continue_past(second, third)
    assert past is not None
    assert len(past.rates) == 240 + LONGEST_PAST_GAP + 1
    assert list(minute_load(third.recent, third.at, past).rates) == [load_at(point.at) for point in third.recent]


def test_what_ended_years_ago_or_lasts_for_years_takes_no_time() -> None:
    """Documents may say so: red, after minutes and GiB, where each minute between is written down."""
    taken = carried(10 * MINUTE, BEGIN + 12 * HOURS)
    assert taken.past_load is not None
    old = replace(taken, past_load=replace(taken.past_load, until=datetime(2001, 1, 1, tzinfo=UTC)))
    now = at_time(taken.at + HOURS, points(taken.at - 5 * HOURS, taken.at + HOURS))
    assert len(minute_load(old.recent, old.at, old.past_load).rates) == 360
    past = continue_past(old, now)
    assert past is not None
    assert len(past.rates) == 60
    assert past_of([replace(taken.recent[0], seconds=1e12)], now) is None


def test_a_hole_in_the_recent_past_leaves_the_days_before_out() -> None:
    """The load of now is not known by what was before a hole of unknown load."""
    taken = carried(10 * MINUTE, BEGIN + 12 * HOURS)
    holed = [point for point in taken.recent if not 20 < (taken.at - point.at) / MINUTE < 40]
    assert len(minute_load(holed, taken.at, taken.past_load).rates) < 30


def test_a_mean_of_several_minutes_is_carried_on_as_one() -> None:
    """Red where five minutes that were observed as one bear witness five times."""
    at = BEGIN + 6 * HOURS
    former = at_time(at, points(BEGIN, at, 300.0))
    now = at_time(at + HOURS, points(at - 5 * HOURS, at + HOURS))
    past = continue_past(former, now)
    assert past is not None
    assert len(past.rates) == 60
    assert past.averaged == tuple(place for place in range(60) if place % 5)


def test_spans_of_a_server_are_a_past_as_well() -> None:
    at = BEGIN + timedelta(days=10)
    now = at_time(at, points(at - 2 * HOURS, at))
    past = past_of(points(BEGIN, at), now)
    assert past is not None
    assert (len(past.rates), past.until) == (MOST_MINUTES, at - 2 * HOURS)
    assert past.rates[-1] == pytest.approx(load_at(past.until), rel=1e-3)
    assert past_of((), now) is None
    assert past_of(points(BEGIN, at), at_time(at, ())) is None


def test_a_snapshot_file_keeps_its_past_and_one_without_keeps_its_digest() -> None:
    taken = carried(10 * MINUTE, BEGIN + 12 * HOURS)
    assert SNAPSHOT.parse(SNAPSHOT.dump(taken), "snapshot.json") == taken
    assert SNAPSHOT.digest(taken) != SNAPSHOT.digest(replace(taken, past_load=None))
    assert "past_load" not in SNAPSHOT.body(replace(taken, past_load=None))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"until": "2026-11-20T06:00:30Z"}, "end with a minute"),
        ({"until": "2099-01-01T00:00:00Z"}, "no load after"),
        ({"rates": []}, "1 to 10080 minutes"),
        ({"rates": [1.0] * (MOST_MINUTES + 1)}, "1 to 10080 minutes"),
        ({"rates": [1.0, -1.0]}, "0 or more"),
        ({"rates": [1.0, "many"]}, "rates"),
        ({"rates": [1.0] * 3, "averaged": [3]}, "from 0 to 2"),
        ({"rates": [1.0] * 3, "averaged": [1, 1]}, "in order"),
    ],
)
def test_a_past_that_cannot_be_is_refused(changes: dict[str, object], said: str) -> None:
    body = SNAPSHOT.body(carried(10 * MINUTE, BEGIN + 12 * HOURS))
    body["past_load"] |= {"averaged": [], **changes}
    with pytest.raises(DocumentError, match=said):
        SNAPSHOT.validate(body, "snapshot.json")


def on_the_clock(*rates: float | None) -> ClockMinutes:
    """Return minutes of the clock from ``BEGIN`` on."""
    first = round(BEGIN.timestamp()) // 60
    return {first + number: (rate, number == 1) for number, rate in enumerate(rates)}


def test_minutes_of_the_clock_become_a_past() -> None:
    """Up to the last whole minute, from the first that is known, no more than a week."""
    minutes = on_the_clock(None, 1.0, None, 3.0, 4.0)
    past = past_up_to(minutes, BEGIN + 4.5 * MINUTE)
    assert past == PastLoad(BEGIN + 4 * MINUTE, (1.0, None, 3.0), (0,))
    assert past_up_to(minutes, BEGIN + MINUTE) is None
    week = on_the_clock(*map(float, range(MOST_MINUTES + 5)))
    whole = past_up_to(week, BEGIN + (MOST_MINUTES + 5) * MINUTE)
    assert whole is not None
    assert (len(whole.rates), whole.rates[0]) == (MOST_MINUTES, 5.0)


def test_a_snapshot_takes_the_minutes_before_its_own() -> None:
    minutes = on_the_clock(*(load_at(BEGIN + (number + 1) * MINUTE) for number in range(60)))
    at = BEGIN + HOURS
    taken = at_time(at, points(at - 20 * MINUTE, at))
    past = past_before(minutes, taken)
    assert past is not None
    assert (past.until, len(past.rates)) == (at - 20 * MINUTE, 40)
    load = minute_load(taken.recent, at, past)
    assert load.rates == [load_at(BEGIN + (number + 1) * MINUTE) for number in range(60)]
    assert past_before(minutes, at_time(at, ())) is None


def test_a_past_is_the_load_of_now_if_it_reaches_so_far() -> None:
    """Minutes that nobody observed keep the load before them, five at most at the end."""
    past = PastLoad(BEGIN, (1.0, None, 3.0, None), (2,))
    assert load_of_past(past, BEGIN + MINUTE) == MinuteLoad([1.0, 1.0, 3.0, 3.0, 3.0], [False, True, True, True, True])
    assert load_of_past(past, BEGIN + (LONGEST_GAP - 1) * MINUTE).rates
    assert load_of_past(past, BEGIN + LONGEST_GAP * MINUTE) == MinuteLoad([], [])
    assert load_of_past(PastLoad(BEGIN, (None, None)), BEGIN) == MinuteLoad([], [])
    with pytest.raises(ValueError, match="a past load up to"):
        load_of_past(past, BEGIN - MINUTE)
