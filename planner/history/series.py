"""The group's recent past as one line of points, for people."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from planner.history.rates import DECIMALS
from planner.model.intervals import QueueInterval
from planner.model.queues import Queue
from planner.model.snapshot import SeriesPoint

MOST_POINTS = 360


def group_series(intervals: Sequence[QueueInterval], since: datetime, until: datetime) -> tuple[SeriesPoint, ...]:
    """Return at most ``MOST_POINTS`` points over the intervals that ended within (since, until], oldest first.

    Each point covers an equal span; retry queues are left out.
    """
    recent = [i for i in intervals if since < i.ended_at <= until and not i.queue.is_retry]
    if not recent:
        return ()
    first = min(interval.started_at for interval in recent)
    span = max((until - first) / MOST_POINTS, timedelta(seconds=1))
    spans: dict[int, list[QueueInterval]] = {}
    for interval in recent:
        spans.setdefault(-int((until - interval.ended_at) / span), []).append(interval)
    owners: dict[Queue, tuple[str, ...]] = {}
    lags: dict[Queue, int | None] = {}
    return tuple(_point(spans[number], owners, lags) for number in sorted(spans))


def _point(
    intervals: Sequence[QueueInterval], owners: dict[Queue, tuple[str, ...]], lags: dict[Queue, int | None]
) -> SeriesPoint:
    """Return one point; ``owners`` and ``lags`` carry the newest state of every queue from point to point."""
    moved = 0
    for interval in sorted(intervals, key=lambda i: i.ended_at):
        known = owners.get(interval.queue)
        moved += bool(known and interval.owners and known != interval.owners)
        owners[interval.queue] = interval.owners or known or ()
        lags[interval.queue] = interval.lag
    return SeriesPoint(
        at=max(interval.ended_at for interval in intervals),
        seconds=max(interval.seconds for interval in intervals),
        arrival_rate=_sum_of_rates([(i.queue, i.arrived, i.seconds) for i in intervals if not i.broker_reset]),
        consumption_rate=_sum_of_rates(
            [(i.queue, i.consumed, i.seconds) for i in intervals if i.consumed is not None and not i.consumer_reset]
        ),
        lag=_sum_of_known(lags.values()),
        consumers=len({owner for names in owners.values() for owner in names}),
        moved=moved,
        is_gap=any(interval.is_gap for interval in intervals),
    )


def _sum_of_rates(differences: Sequence[tuple[Queue, int, float]]) -> float | None:
    """Return the sum over queues of each queue's own mean, in messages per second."""
    totals: dict[Queue, tuple[int, float]] = {}
    for queue, messages, seconds in differences:
        so_far, spent = totals.get(queue, (0, 0.0))
        totals[queue] = (so_far + messages, spent + seconds)
    if not totals:
        return None
    return round(sum(messages / seconds for messages, seconds in (totals[queue] for queue in sorted(totals))), DECIMALS)


def _sum_of_known(lags: Iterable[int | None]) -> int | None:
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None
