"""Which part of a group's arrivals each queue takes: what is expected of the next minute, out of the minutes so far.

Some loads keep their shares for days and jitter by the minute; in others single producers come and go, and the shares
of half an hour ago are of no use. How much the newest minute counts for is therefore what erred least of late.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from planner.history.rates import DECIMALS
from planner.model.intervals import QueueInterval
from planner.model.queues import Queue

Floats = NDArray[np.float64]

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """What one minute may count for (exponential smoothing), and after about how many minutes an error is forgotten."""

    weights: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    memory_minutes: float = 720.0


DEFAULT_SHARES = ShareSettings()


class QueueShares:
    """Shares of the queues of one group; they add up to 1. Learns from one minute after the other."""

    def __init__(self, first: Floats, settings: ShareSettings = DEFAULT_SHARES) -> None:
        """Begin with the messages of a first stretch; without any message the queues have even shares."""
        total = float(first.sum())
        shares = first / total if total > 0 else np.full(len(first), 1 / len(first))
        self._weights = np.array(settings.weights)[:, None]
        self._keep = 1 - 1 / settings.memory_minutes
        self._shares: Floats = np.tile(shares, (len(settings.weights), 1))
        self._errors: Floats = np.zeros(len(settings.weights))

    def append(self, messages: Floats) -> None:
        """Learn from the messages of the next minute, by queue; a minute without any tells nothing."""
        total = float(messages.sum())
        if total <= 0:
            return
        errors = messages / total - self._shares
        self._errors = self._keep * self._errors + (errors**2).sum(axis=1)
        self._shares += self._weights * errors

    @property
    def expected(self) -> Floats:
        """The shares by the weight whose forecasts of the next minute erred least of late."""
        return np.asarray(self._shares[int(self._errors.argmin())])


def expected_shares(
    intervals: Iterable[QueueInterval], queues: Sequence[Queue], since: datetime, until: datetime
) -> dict[Queue, float]:
    """Return each queue's expected part of the group's arrivals, from the minutes of (since, until].

    What came in an interval is spread evenly over its minutes. Only minutes in which all queues were watched throughout
    count; without any the answer is empty: unknown.
    """
    minutes = int((until - since).total_seconds() // MINUTE_S)
    columns = {queue: column for column, queue in enumerate(queues)}
    arrived, watched = _by_minute(intervals, columns, until, minutes)
    whole = np.flatnonzero((watched > MINUTE_S * 0.99).all(axis=1)) if columns else np.array([], dtype=np.intp)
    if not len(whole):
        return {}
    shares = QueueShares(arrived[whole[0]])
    for minute in whole[1:]:
        shares.append(arrived[minute])
    return dict(zip(queues, np.round(shares.expected, DECIMALS).tolist(), strict=True))


def _by_minute(
    intervals: Iterable[QueueInterval], columns: dict[Queue, int], until: datetime, minutes: int
) -> tuple[Floats, Floats]:
    """Return messages and watched seconds, both by minute (the last ends at ``until``) and queue."""
    arrived, watched = np.zeros((minutes, len(columns))), np.zeros((minutes, len(columns)))
    by_span: defaultdict[tuple[datetime, float], list[QueueInterval]] = defaultdict(list)
    for interval in intervals:
        if interval.queue in columns and not interval.broker_reset and interval.ended_at <= until:
            by_span[interval.ended_at, interval.seconds].append(interval)
    for (ended_at, seconds), together in sorted(by_span.items(), key=lambda span: span[0]):
        indices = [columns[interval.queue] for interval in together]
        rates = np.array([interval.arrived for interval in together]) / seconds
        for minute, within_s in _split_by_minute(until - ended_at, seconds, minutes):
            arrived[minute, indices] += rates * within_s
            watched[minute, indices] += within_s
    return arrived, watched


def _split_by_minute(age: timedelta, seconds: float, minutes: int) -> Iterable[tuple[int, float]]:
    """Yield the minutes that a span of so many seconds touches, with the seconds in each; ``age`` is its end's."""
    begin = age.total_seconds()
    end = min(begin + seconds, minutes * MINUTE_S)
    while begin < end - 1e-6:
        number = int(begin // MINUTE_S)
        within_s = min(end, (number + 1) * MINUTE_S) - begin
        yield minutes - 1 - number, within_s
        begin += within_s
