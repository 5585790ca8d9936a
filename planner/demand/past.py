"""The load of the days before a snapshot's recent past: what the snapshot before it knew, or what a server tells."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from planner.demand.recent import Span, minutes_of
from planner.model.past_load import MINUTE, MOST_MINUTES, PastLoad
from planner.model.snapshot import GroupSnapshot

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIGURES = 4
"""Significant figures of a rate: what is beyond them is less than any minute's chance."""

Minute = tuple[float | None, bool]
"""The rate of a minute, ``None`` where nobody observed it, and whether it is an averaged one."""

ClockMinutes = Mapping[int, Minute]
"""Minutes of the clock by how many have passed since 1970 (UTC) when one begins."""


def continue_past(former: GroupSnapshot, snapshot: GroupSnapshot) -> PastLoad | None:
    """Return the load before the snapshot's ``recent``: that which ``former``, an earlier snapshot of the same group,
    has before its own, and after it what has left ``recent`` since. ``None`` where nothing is known.

    Minutes that neither has are ``None`` in it.
    """
    begin, past = _begin(snapshot), former.past_load
    if begin is None:
        return None
    if past is None:
        return _past(_observed(former.recent, None, begin), begin)
    positions = frozenset(past.averaged)
    known = [(rate, position in positions) for position, rate in enumerate(past.rates)]
    end = len(known) - max((past.until - begin) // MINUTE, 0)
    return _past([*known[: max(end, 0)], *_observed(former.recent, past.until, begin)], begin)


def past_of(spans: Sequence[Span], snapshot: GroupSnapshot) -> PastLoad | None:
    """Return the load before the snapshot's ``recent`` as the spans show it; ``None`` where none of them does."""
    begin = _begin(snapshot)
    return None if begin is None else _past(_observed(spans, None, begin), begin)


def past_before(minutes: ClockMinutes, snapshot: GroupSnapshot) -> PastLoad | None:
    """Return the load before the snapshot's ``recent`` as the minutes show it; ``None`` where none of them does."""
    begin = _begin(snapshot)
    return None if begin is None else past_up_to(minutes, begin)


def past_up_to(minutes: ClockMinutes, until: datetime) -> PastLoad | None:
    """Return the load of the week up to the last whole minute before ``until``, ``None`` where nothing is known."""
    end = _whole_minute(until)
    after = (end - EPOCH) // MINUTE
    return _past([minutes.get(number, (None, False)) for number in range(after - MOST_MINUTES, after)], end)


def _begin(snapshot: GroupSnapshot) -> datetime | None:
    """Return the last whole minute of the clock before ``recent``."""
    if not snapshot.recent:
        return None
    first = snapshot.recent[0]
    return _whole_minute(first.at - timedelta(seconds=first.seconds))


def _whole_minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def _observed(spans: Sequence[Span], since: datetime | None, until: datetime) -> list[Minute]:
    """Return the minutes from ``since``, or from the first that is known, up to ``until``."""
    rates, own = minutes_of(spans, until)
    count = max(rates, default=-1) + 1 if since is None else (until - since) // MINUTE
    return [(rates.get(age), age in rates and age not in own) for age in reversed(range(min(count, MOST_MINUTES)))]


def _past(minutes: Sequence[Minute], until: datetime) -> PastLoad | None:
    """Return the last week of the minutes, from the first that is known."""
    week = minutes[-MOST_MINUTES:]
    first = next((position for position, (rate, _) in enumerate(week) if rate is not None), None)
    if first is None:
        return None
    known = week[first:]
    return PastLoad(
        until,
        tuple(None if rate is None else float(f"{rate:.{FIGURES}g}") for rate, _ in known),
        tuple(position for position, (_, is_averaged) in enumerate(known) if is_averaged),
    )
