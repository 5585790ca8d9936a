"""A group's load by minute out of the recent past that its snapshot carries."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from planner.demand.series import MINUTE_S

LONGEST_GAP = 5
"""Minutes that nobody observed keep the load before them; beyond so many of them the series begins anew."""


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


def minute_load(recent: Sequence[Span], until: datetime) -> MinuteLoad:
    """Return the group's arrivals in messages per second by minute; the last minute ends at ``until``.

    Only what was observed without a longer gap up to ``until`` is in it; nothing where the last minutes are unknown.
    """
    known, own = _by_minute(recent, until), _own_minutes(recent, until)
    rates: list[float] = []
    averaged: list[bool] = []
    missing = 0
    for age in range(max(known, default=-1) + 1):
        if age not in known:
            missing += 1
            if missing > LONGEST_GAP:
                break
            continue
        rates += [known[age]] * (missing + 1)
        averaged += [True] * missing + [age not in own]
        missing = 0
    return MinuteLoad(rates[::-1], averaged[::-1])


def _own_minutes(recent: Sequence[Span], until: datetime) -> set[int]:
    """Return the ages of the minutes that say something of their own.

    Of a span with whole minutes in it that is the oldest of these, of a shorter one each minute that it touches.
    """
    own: set[int] = set()
    for point in _usable(recent):
        youngest = max((until - point.at).total_seconds(), 0.0)
        oldest = youngest + point.seconds
        last_whole = math.floor(oldest / MINUTE_S + 1e-6) - 1
        if last_whole >= math.ceil(youngest / MINUTE_S - 1e-6):
            own.add(last_whole)
        else:
            own.update(range(int(youngest // MINUTE_S), int((oldest - 1e-6) // MINUTE_S) + 1))
    return own


def _usable(recent: Iterable[Span]) -> list[Span]:
    return [point for point in recent if point.arrival_rate is not None and point.seconds > 0]


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
