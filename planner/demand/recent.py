"""A group's load by minute out of the past that its snapshot carries."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from planner.demand.series import MINUTE_S
from planner.model.past_load import LONGEST_PAST, MINUTE, PastLoad

LONGEST_GAP = 5
"""Minutes that nobody observed keep the load before them; beyond so many of them the series begins anew."""
LONGEST_PAST_GAP = 360
"""The same before the recent past, of which minutes like now are all that is wanted."""


class Span(Protocol):
    """A span of observed load, ``seconds`` long and ending at ``at``; messages per second, ``None`` if unknown."""

    @property
    def at(self) -> datetime: ...

    @property
    def seconds(self) -> float: ...

    @property
    def arrival_rate(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class MinuteLoad:
    """Messages per second by minute, oldest first, and which minutes are ``averaged``.

    Those have their load from a span of several minutes, and are not its first whole one, or repeat the minute before
    them, as nobody observed them.
    """

    rates: Sequence[float]
    averaged: Sequence[bool]


def minute_load(recent: Sequence[Span], until: datetime, past: PastLoad | None = None) -> MinuteLoad:
    """Return the group's arrivals in messages per second by minute; the last minute ends at ``until``.

    Only what was observed without a longer gap up to ``until`` is in it; nothing where the last minutes are unknown.
    ``past`` is what was observed before ``recent``: its minutes come first, where no gap is between them.
    """
    known, own = minutes_of(recent, until)
    rates: list[float] = []
    averaged: list[bool] = []
    missing = 0
    for age in range(max(known, default=-1) + 1):
        if age not in known:
            missing += 1
            if missing > LONGEST_GAP:
                past = None
                break
            continue
        rates += [known[age]] * (missing + 1)
        averaged += [True] * missing + [age not in own]
        missing = 0
    load = MinuteLoad(rates[::-1], averaged[::-1])
    return _behind(past, load, until) if past is not None and rates else load


def load_of_past(past: PastLoad, until: datetime) -> MinuteLoad:
    """Return the past as the load up to ``until``; nothing where the last minutes are unknown.

    Raises ``ValueError`` for a past that goes on behind ``until``.
    """
    if past.until > until:
        raise ValueError(f"a past load up to {until.isoformat()} at most, not {past.until.isoformat()}")
    newest = next((age for age, rate in enumerate(reversed(past.rates)) if rate is not None), LONGEST_GAP + 1)
    missing = newest + round((until - past.until) / MINUTE)
    return MinuteLoad([], []) if missing > LONGEST_GAP else _behind(past, MinuteLoad([], []), until)


def _behind(past: PastLoad, load: MinuteLoad, until: datetime) -> MinuteLoad:
    """Return the load behind the past: minutes of the clock and those that end at ``until`` are half a one apart at
    most.
    """
    missing = round((until - len(load.rates) * MINUTE - past.until) / MINUTE)
    if missing > LONGEST_PAST_GAP:
        return load
    observed = past.rates[:missing] if missing < 0 else (*past.rates, *(None,) * missing)
    positions = frozenset(past.averaged)
    rates: list[float] = []
    averaged: list[bool] = []
    gap = 0
    for position, rate in enumerate(observed):
        gap = gap + 1 if rate is None else 0
        if gap > LONGEST_PAST_GAP:
            rates, averaged = [], []
        if rate is not None or rates:
            rates.append(rates[-1] if rate is None else rate)
            averaged.append(rate is None or position in positions)
    return MinuteLoad([*rates, *load.rates], [*averaged, *load.averaged])


def minutes_of(spans: Sequence[Span], until: datetime) -> tuple[dict[int, float], set[int]]:
    """Return the mean rate of each minute that a span covers, and which minutes say something of their own.

    Both go by the minutes' ages: that of 0 ends at ``until``.
    """
    return _by_minute(spans, until), _own_minutes(spans, until)


def _own_minutes(recent: Sequence[Span], until: datetime) -> set[int]:
    """Return the ages of the minutes that say something of their own.

    Of a span with whole minutes in it that is the oldest of these, of a shorter one each minute that it touches.
    """
    own: set[int] = set()
    for point in _usable(recent):
        ended_s = (until - point.at).total_seconds()
        youngest, oldest = max(ended_s, 0.0), ended_s + point.seconds
        if oldest <= 0:
            continue
        last_whole = math.floor(oldest / MINUTE_S + 1e-6) - 1
        if last_whole >= math.ceil(youngest / MINUTE_S - 1e-6):
            own.add(last_whole)
        else:
            own.update(range(int(youngest // MINUTE_S), int((oldest - 1e-6) // MINUTE_S) + 1))
    return own


def _usable(recent: Iterable[Span]) -> list[Span]:
    """Return the spans that say something of minutes: a mean of more than a week does not."""
    longest_s = LONGEST_PAST.total_seconds()
    return [point for point in recent if point.arrival_rate is not None and 0 < point.seconds <= longest_s]


def _by_minute(recent: Sequence[Span], until: datetime) -> dict[int, float]:
    """Return the mean rate of each minute that a point covers, by the minute's age."""
    sums: dict[int, tuple[float, float]] = {}
    for point in _usable(recent):
        assert point.arrival_rate is not None
        youngest = (until - point.at).total_seconds()
        end, oldest = max(youngest, 0.0), youngest + point.seconds
        while end < oldest - 1e-6:
            age = int(end // MINUTE_S)
            overlap_s = min(oldest, (age + 1) * MINUTE_S) - end
            messages, seconds = sums.get(age, (0.0, 0.0))
            sums[age] = messages + point.arrival_rate * overlap_s, seconds + overlap_s
            end += overlap_s
    return {age: messages / seconds for age, (messages, seconds) in sums.items()}
