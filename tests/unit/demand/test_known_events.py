"""Known times with another load: when they are, and what they do to past and future load."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from planner.demand.events import (
    DateSpan,
    Event,
    WeeklySpan,
    describe_events,
    event_load,
    largest_rise,
    usual_rates,
    with_events,
)
from planner.demand.outlook import outlook_of
from planner.demand.recent import MinuteLoad

AT = datetime(2026, 11, 27, 12, tzinfo=UTC)  # a Friday
BERLIN = ZoneInfo("Europe/Berlin")


def sale(first: float, last: float, factor: float = 3.0, floor: float = 0.0) -> Event:
    """Return an event that begins and ends so many minutes after ``AT``."""
    return Event("sale", DateSpan(AT + timedelta(minutes=first), AT + timedelta(minutes=last)), factor, floor)


def test_a_weekly_event_goes_by_the_clock_on_the_wall_and_over_midnight() -> None:
    weekly = WeeklySpan(frozenset({5}), 22 * 60, 2 * 60, BERLIN)
    # Summer time ends in the night to 2026-10-25, a Sunday: 02:00 comes twice, the first one counts.
    summer = datetime(2026, 10, 24, 23, tzinfo=UTC)
    (span,) = weekly.spans(summer, summer + timedelta(hours=1))
    assert span == (datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 0, tzinfo=UTC))
    assert not list(weekly.spans(span[1], span[1] + timedelta(days=6)))
    (winter,) = weekly.spans(span[1], span[1] + timedelta(days=7))
    assert winter[0] == datetime(2026, 10, 31, 21, tzinfo=UTC)


def test_every_minute_with_a_part_of_an_event_is_the_events() -> None:
    load = event_load([sale(1.5, 3.2), sale(2, 4, 50.0, 7.0)], AT, 6)
    assert load.factors.tolist() == [1, 3, 100, 100, 1, 1]
    assert load.floors.tolist() == [0, 0, 7, 7, 0, 0]


def test_a_load_in_an_event_says_what_is_usual_without_it() -> None:
    # It began 2 minutes ago and goes on for 3: the minutes since are divided, the two behind it are usual again.
    going_on = sale(-2, 3)
    usual = usual_rates([100, 100, 300, 300], [going_on], AT)
    assert usual == [100, 100, 100, 100]
    ahead = with_events(np.full((1, 3), 100.0), (1, 3, 1), event_load([going_on], AT, 5))
    assert ahead.tolist() == [[300, 300, 100]]  # a stretch has the highest of its minutes
    assert largest_rise([going_on], AT, 600.0, 300.0) == 1.0
    assert largest_rise([sale(5, 9)], AT, 600.0, 300.0) == 3.0
    assert largest_rise([sale(12, 19)], AT, 600.0, 300.0) == 1.0
    assert largest_rise([sale(5, 9, 1.0, 450.0)], AT, 600.0, 300.0) == 1.5
    assert largest_rise([sale(5, 9, 0.5)], AT, 600.0, 300.0) == 1.0


def test_an_outlook_has_the_event_and_its_level_does_not() -> None:
    loads = outlook_of(MinuteLoad([100.0] * 360, [False] * 360), AT, [sale(20, 40)])
    assert loads is not None
    assert loads.level == pytest.approx(100.0)
    assert [round(stretch.middle) for stretch in loads.stretches] == [100, 100, 300, 300, 100]


def test_events_are_named_in_order_of_their_beginning() -> None:
    events = [sale(12, 30), Event("batch", DateSpan(AT - timedelta(hours=1), AT + timedelta(minutes=5)), floor=500.0)]
    assert describe_events(events, AT, 3600.0) == (
        "event batch goes on for another 5 min: 500 messages/s at least; event sale begins in 12 min: ×3"
    )
    assert describe_events(events, AT, 600.0) == "event batch goes on for another 5 min: 500 messages/s at least"
