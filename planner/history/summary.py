"""What a group's points come to over longer spans: a fortnight on one screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from planner.model.points import GroupPoint

_WIDTHS: Final = tuple(
    timedelta(minutes=minutes) for minutes in (1, 5, 10, 30, 60, 3 * 60, 6 * 60, 12 * 60, 24 * 60, 7 * 24 * 60)
)
_EPOCH: Final = datetime(1970, 1, 5, tzinfo=UTC)
"""A Monday, so that weeks begin with one."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a group did from ``since`` to ``until`` (UTC).

    Rates are messages per second: ``arrival_rate`` and ``consumption_rate`` are means over the time in which they are
    known, ``most_arrival_rate`` is the busiest point's. ``most_lag`` is in messages, ``most_lag_s`` in seconds.
    ``None`` is unknown throughout. ``known`` is the share of the time, 0 to 1, in which it is known what arrived.
    """

    since: datetime
    until: datetime
    arrival_rate: float | None
    most_arrival_rate: float | None
    consumption_rate: float | None
    most_lag: int | None
    most_lag_s: float | None
    fewest_members: int | None
    most_members: int | None
    known: float


def stretches(points: Sequence[GroupPoint], since: datetime, until: datetime, most: int) -> tuple[Stretch, ...]:
    """Return what the points come to from ``since`` to ``until``, oldest first, in ``most`` stretches or fewer.

    Stretches begin at full minutes, hours, days or weeks; those without a single point are left out. A point counts
    where it ends. Raises ``ValueError`` for an empty span or fewer than two stretches: one never fits the full hours.
    """
    if not since < until or most < 2:
        raise ValueError(f"{most} stretches from {since.isoformat()} to {until.isoformat()}: expected 2 and some time")
    width = next((width for width in _WIDTHS if (until - since) / width <= most - 1), (until - since) / (most - 1))
    by_begin: dict[datetime, list[GroupPoint]] = {}
    for point in points:
        if since < point.at <= until:
            by_begin.setdefault(_begin_of(point.at, width), []).append(point)
    return tuple(stretch(by_begin[begin], max(begin, since), min(begin + width, until)) for begin in sorted(by_begin))


def stretch(points: Sequence[GroupPoint], since: datetime, until: datetime) -> Stretch:
    """Return what these points come to as one stretch."""
    arrivals = [(point.arrival_rate, point.seconds) for point in points if point.arrival_rate is not None]
    consumed = [(point.consumption_rate, point.seconds) for point in points if point.consumption_rate is not None]
    lags = [point.lag for point in points if point.lag is not None]
    waits = [point.lag_s for point in points if point.lag_s is not None]
    members = [point.members for point in points if point.members is not None]
    known_s = sum(seconds for _, seconds in arrivals)
    return Stretch(
        since=since,
        until=until,
        arrival_rate=_mean(arrivals),
        most_arrival_rate=max((rate for rate, _ in arrivals), default=None),
        consumption_rate=_mean(consumed),
        most_lag=max(lags, default=None),
        most_lag_s=max(waits, default=None),
        fewest_members=min(members, default=None),
        most_members=max(members, default=None),
        known=min(1.0, known_s / (until - since).total_seconds()),
    )


def _begin_of(at: datetime, width: timedelta) -> datetime:
    """Return when the stretch began that ``at`` ends in: at its very end, too."""
    number, rest = divmod(at - _EPOCH, width)
    return _EPOCH + (number if rest else number - 1) * width


def _mean(rates: Sequence[tuple[float, float]]) -> float | None:
    seconds = sum(span_s for _, span_s in rates)
    return sum(rate * span_s for rate, span_s in rates) / seconds if seconds > 0 else None
