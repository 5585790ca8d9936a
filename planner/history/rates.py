"""Rates of one queue over the recent window."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from planner.model.intervals import QueueInterval

REACH_FACTOR = 3.0
"""A window that has gaps reaches back so many times its length at most.

Scheduled runs watch for half of the time: twice the length has a whole window, and one run may be missing besides.
"""

BUCKET_S = 60.0
"""Rates are averaged over a minute before the upper one is taken: single samples of a slow queue are noise."""

DECIMALS = 6
"""Rates are kept to a millionth of a message per second, so that the order of additions cannot show."""


@dataclass(frozen=True, slots=True)
class QueueRates:
    """Rates in messages per second, ``None`` where no interval shows them; ``covered_s`` seconds are known."""

    arrival: float | None
    upper_arrival: float | None
    consumption: float | None
    covered_s: float


def queue_rates(intervals: Sequence[QueueInterval], at: datetime, window_s: float, percentile: float) -> QueueRates:
    """Return the rates of one queue over the last ``window_s`` seconds in which it was watched, up to ``at``.

    A window without gaps is the ``window_s`` seconds that end at ``at``; one with gaps begins earlier by as much, and
    reaches back ``REACH_FACTOR`` times its length at most. Means are messages over seconds of all intervals that ended
    within the window and have no reset. The upper rate is the ``percentile`` (0 to 100) over the means of whole
    minutes. Gaps count for the means, not for ``covered_s``.
    """
    start = _start(intervals, at, window_s)
    recent = [interval for interval in intervals if start < interval.ended_at <= at]
    arriving = [interval for interval in recent if not interval.broker_reset]
    consuming = [(i.consumed, i.seconds) for i in recent if i.consumed is not None and not i.consumer_reset]
    return QueueRates(
        arrival=_mean([i.arrived for i in arriving], [i.seconds for i in arriving]),
        upper_arrival=_upper(arriving, at, percentile),
        consumption=_mean([consumed for consumed, _ in consuming], [seconds for _, seconds in consuming]),
        covered_s=_covered_s(recent, start),
    )


def _start(intervals: Sequence[QueueInterval], at: datetime, window_s: float) -> datetime:
    """Return where the window begins: every gap within it makes it begin earlier by the gap's length."""
    start, earliest = at - timedelta(seconds=window_s), at - timedelta(seconds=REACH_FACTOR * window_s)
    gaps = sorted((i for i in intervals if i.is_gap and i.ended_at <= at), key=lambda i: i.ended_at, reverse=True)
    for gap in gaps:
        if gap.ended_at <= start:
            break
        start -= gap.ended_at - max(gap.started_at, earliest)
    return max(start, earliest)


def _covered_s(recent: Sequence[QueueInterval], start: datetime) -> float:
    known = [
        (interval.ended_at - max(start, interval.started_at)).total_seconds()
        for interval in recent
        if not (interval.is_gap or interval.broker_reset)
    ]
    return round(sum(known), 3)


def _mean(messages: Sequence[int], seconds: Sequence[float]) -> float | None:
    total = sum(seconds)
    return round(sum(messages) / total, DECIMALS) if total > 0 else None


def _upper(arriving: Sequence[QueueInterval], at: datetime, percentile: float) -> float | None:
    buckets: dict[int, tuple[int, float]] = {}
    for interval in arriving:
        bucket = int((at - interval.ended_at).total_seconds() // BUCKET_S)
        messages, seconds = buckets.get(bucket, (0, 0.0))
        buckets[bucket] = (messages + interval.arrived, seconds + interval.seconds)
    if not buckets:
        return None
    means = [messages / seconds for _, (messages, seconds) in sorted(buckets.items())]
    return round(float(np.percentile(means, percentile)), DECIMALS)
