"""Known times with another load than usual, as a policy states them: sales, batches, pauses. The time is an argument.

Within an event the load is ``factor`` times the usual one, and ``floor`` messages per second at least. A load that was
observed in an event is divided by its factor before it counts as usual; a floor is left in it, as what the load would
have been without it is unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import numpy as np

from planner.demand.series import Floats
from planner.text.words import duration

LEAST_FACTOR = 0.1
LARGEST_FACTOR = 100.0
MINUTES_A_DAY = 24 * 60
MINUTE = timedelta(minutes=1)
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class DateSpan:
    """One event from ``begins`` up to, not including, ``ends``: two times in UTC."""

    begins: datetime
    ends: datetime

    def spans(self, since: datetime, until: datetime) -> Iterator[Span]:
        """Yield the span where it has a part between the two times."""
        if self.begins < until and self.ends > since:
            yield self.begins, self.ends


@dataclass(frozen=True, slots=True)
class WeeklySpan:
    """An event on some days of each week, by the clock on the wall in ``zone``; minutes of the day.

    ``days`` are as ``datetime.weekday`` counts them, Monday is 0. One that ends before it begins goes on into the next
    day.
    """

    days: frozenset[int]
    begins: int
    ends: int
    zone: tzinfo

    def spans(self, since: datetime, until: datetime) -> Iterator[Span]:
        """Yield each span that has a part between the two times, in order."""
        day = since.astimezone(self.zone).date() - timedelta(days=1)
        while day <= until.astimezone(self.zone).date():
            if day.weekday() in self.days:
                begins = self._at(day, self.begins)
                ends = self._at(day, self.ends + (MINUTES_A_DAY if self.ends <= self.begins else 0))
                if begins < until and ends > since:
                    yield begins, ends
            day += timedelta(days=1)

    def _at(self, day: date, minute: int) -> datetime:
        days, minute = divmod(minute, MINUTES_A_DAY)
        clock = time(minute // 60, minute % 60, tzinfo=self.zone)
        # Two times of one zone are compared and subtracted by the clock on the wall: those of UTC never differ from it.
        return datetime.combine(day + timedelta(days=days), clock).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Event:
    """A named event: when, and what the load is then; ``floor`` in messages per second."""

    name: str
    times: DateSpan | WeeklySpan
    factor: float = 1.0
    floor: float = 0.0

    def describe(self, at: datetime, span: Span) -> str:
        """Return the event as half a sentence, as of ``at``: when it begins or ends, and what it does to the load."""
        begins, ends = span
        if begins > at:
            when = f"begins in {duration((begins - at).total_seconds())}"
        else:
            when = f"goes on for another {duration((ends - at).total_seconds())}"
        effects = ([f"×{self.factor:g}"] if self.factor != 1.0 else []) + (
            [f"{self.floor:g} messages/s at least"] if self.floor else []
        )
        return f"event {self.name} {when}: {', '.join(effects)}"


@dataclass(frozen=True, slots=True, eq=False)
class EventLoad:
    """What events do to the load of consecutive minutes: factors, and and floors; one a minute."""

    factors: Floats
    floors: Floats


def event_load(events: Sequence[Event], first: datetime, minutes: int) -> EventLoad:
    """Return what the events do to each of so many minutes, the first of which begins at ``first``.

    A minute of which an event has a part is the event's. Factors of events that overlap are multiplied, within the
    bounds of a single one, and the largest floor counts.
    """
    factors, floors = np.ones(minutes), np.zeros(minutes)
    for event in events:
        within = np.zeros(minutes, dtype=bool)
        for begins, ends in event.times.spans(first, first + minutes * MINUTE):
            within[max((begins - first) // MINUTE, 0) : -((first - ends) // MINUTE)] = True
        factors[within] *= event.factor
        floors[within] = np.maximum(floors[within], event.floor)
    return EventLoad(factors.clip(LEAST_FACTOR, LARGEST_FACTOR), floors)


def usual_rates(rates: Sequence[float], events: Sequence[Event], until: datetime) -> list[float]:
    """Return the load by minute as it would be without the events' factors; its last minute ends at ``until``."""
    if not events:
        return list(rates)
    past = event_load(events, until.astimezone(UTC) - len(rates) * MINUTE, len(rates))
    usual: list[float] = (np.asarray(rates) / past.factors).tolist()
    return usual


def with_events(futures: Floats, bins: Sequence[int], load: EventLoad) -> Floats:
    """Return the futures with the events in them: shape (paths, bins), floors in the unit of the futures.

    ``load`` has each minute of the bins. A bin has the highest load of its minutes, as nothing can be done within it.
    """
    by_minute = np.repeat(futures, bins, axis=1) * load.factors
    starts = np.concatenate(([0], np.cumsum(bins)[:-1]))
    return np.asarray(np.maximum.reduceat(np.maximum(by_minute, load.floors), starts, axis=1))


def largest_rise(events: Sequence[Event], at: datetime, ahead_s: float, rate: float | None) -> float:
    """Return the factor by which the events raise a load of ``rate`` messages/s within the time ahead; 1 at least.

    A load that is observed within an event has its factor in it already.
    """
    if not events:
        return 1.0
    load = event_load(events, at - MINUTE, 2 + -int(-ahead_s // 60))
    rise = float(load.factors[1:].max() / load.factors[0])
    floor = float(load.floors.max())
    return max(1.0, rise, floor / rate if rate else 1.0)


def describe_events(events: Sequence[Event], at: datetime, ahead_s: float) -> str:
    """Return the events that go on or begin within the time ahead, as half sentences; empty where there is none."""
    until = at + timedelta(seconds=ahead_s)
    coming = [(span[0], event.describe(at, span)) for event in events for span in event.times.spans(at, until)]
    return "; ".join(sentence for _, sentence in sorted(coming))
