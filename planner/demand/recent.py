"""A group's load by minute out of the recent past that its snapshot carries."""

from collections.abc import Sequence
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


def minute_rates(recent: Sequence[Span], until: datetime) -> list[float]:
    """Return the group's arrivals in messages per second by minute, oldest first; the last minute ends at ``until``.

    Only what was observed without a longer gap up to ``until`` is in it; nothing where the last minutes are unknown.
    """
    known = _by_minute(recent, until)
    rates: list[float] = []
    missing = 0
    for age in range(max(known, default=-1) + 1):
        if age not in known:
            missing += 1
            if missing > LONGEST_GAP:
                break
            continue
        rates += [known[age]] * (missing + 1)
        missing = 0
    return rates[::-1]


def _by_minute(recent: Sequence[Span], until: datetime) -> dict[int, float]:
    """Return the mean rate of each minute that a point covers, by the minute's age."""
    sums: dict[int, tuple[float, float]] = {}
    for point in recent:
        if point.arrival_rate is None or point.seconds <= 0:
            continue
        youngest = (until - point.at).total_seconds()
        end, oldest = max(youngest, 0.0), youngest + point.seconds
        while end < oldest - 1e-6:
            age = int(end // MINUTE_S)
            overlap_s = min(oldest, (age + 1) * MINUTE_S) - end
            messages, seconds = sums.get(age, (0.0, 0.0))
            sums[age] = messages + point.arrival_rate * overlap_s, seconds + overlap_s
            end += overlap_s
    return {age: messages / seconds for age, (messages, seconds) in sums.items()}
