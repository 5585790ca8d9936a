"""Rates of one queue over the recent window."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from planner.model.intervals import QueueInterval

BUCKET_S = 60.0
"""Rates are averaged over a minute before the upper one is taken: single samples of a slow queue are noise."""

DECIMALS = 6
"""Rates are kept to a millionth of a message per second, so that the order of additions cannot show."""


@dataclass(frozen=True, slots=True)
class QueueRates:
    """Rates in messages per second, ``None`` where no interval of the window tells; ``covered_s`` seconds are known."""

    arrival: float | None
    upper_arrival: float | None
    consumption: float | None
    covered_s: float


def queue_rates(intervals: Sequence[QueueInterval], at: datetime, window_s: float, percentile: float) -> QueueRates:
    """Return the rates of one queue over the ``window_s`` seconds that end at ``at``.

    Means are messages over seconds of all intervals that ended within the window and have no reset. The upper
    rate is the ``percentile`` (0 to 100) over the means of whole minutes. Gaps count for the means, not for
    ``covered_s``.
    """
    start = at - timedelta(seconds=window_s)
    recent = [interval for interval in intervals if start < interval.ended_at <= at]
    arriving = [interval for interval in recent if not interval.broker_reset]
    consuming = [(i.consumed, i.seconds) for i in recent if i.consumed is not None and not i.consumer_reset]
    return QueueRates(
        arrival=_mean([i.arrived for i in arriving], [i.seconds for i in arriving]),
        upper_arrival=_upper(arriving, at, percentile),
        consumption=_mean([consumed for consumed, _ in consuming], [seconds for _, seconds in consuming]),
        covered_s=_covered(recent, start),
    )


def _covered(recent: Sequence[QueueInterval], start: datetime) -> float:
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
