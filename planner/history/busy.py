"""When a consumer was really busy, and how fast it was then."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from planner.model.intervals import QueueInterval
from planner.model.queues import Queue

SPAN_S = 30.0
"""Rates are taken over at least so many seconds: offsets are committed in lumps, mostly every 5 s."""

BUSY_S = 15.0
"""Work for longer than this must wait. A consumer that keeps up shows up to 5 s of it, until it commits."""


@dataclass(frozen=True, slots=True)
class ClientSpan:
    """What one client consumed of the same queues from ``started_at`` on, over ``seconds``.

    ``is_saturated``: all the time more messages waited than it can do in ``BUSY_S``, and each queue with waiting
    messages moved on, so neither a lack of messages nor a blocked queue held it up.
    """

    client: str
    started_at: datetime
    seconds: float
    consumed: int
    is_saturated: bool

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.consumed / self.seconds


@dataclass(frozen=True, slots=True)
class _Step:
    """One client from one sample to the next, with the intervals of all its queues."""

    client: str
    started_at: datetime
    ended_at: datetime
    intervals: tuple[QueueInterval, ...]

    @property
    def queues(self) -> tuple[Queue, ...]:
        return tuple(interval.queue for interval in self.intervals)

    @property
    def is_whole(self) -> bool:
        """True when everything is known and nothing out of the ordinary happened."""
        return all(_is_told(interval) for interval in self.intervals)


def _is_told(interval: QueueInterval) -> bool:
    """A retry queue that never held a message has no consumer offset, and nothing was consumed of it."""
    if interval.is_gap or interval.moved_from or interval.lag is None:
        return False
    is_empty = interval.consumed is None and interval.lag == interval.arrived == 0
    return is_empty or interval.consumption_rate is not None


def client_spans(intervals: Iterable[QueueInterval]) -> tuple[ClientSpan, ...]:
    """Return what each client did while it owned the same queues alone, in spans of at least ``SPAN_S``, by client.

    Time in which a queue moved, an offset was reset or a sample is missing belongs to no span.
    """
    return tuple(span for steps in _stretches(_steps(intervals)) for span in _spans(steps))


def _steps(intervals: Iterable[QueueInterval]) -> list[_Step]:
    found: dict[tuple[str, datetime, datetime], list[QueueInterval]] = {}
    for interval in intervals:
        if len(interval.owners) == 1:
            found.setdefault((interval.owners[0], interval.started_at, interval.ended_at), []).append(interval)
    return [_Step(*key, tuple(sorted(found[key], key=lambda interval: interval.queue))) for key in sorted(found)]


def _stretches(steps: Sequence[_Step]) -> Iterator[list[_Step]]:
    """Yield runs of steps that follow each other, of one client and the same queues."""
    stretch: list[_Step] = []
    for step in steps:
        if stretch and not _follows(stretch[-1], step):
            yield stretch
            stretch = []
        if step.is_whole:
            stretch.append(step)
    if stretch:
        yield stretch


def _follows(before: _Step, after: _Step) -> bool:
    return (
        after.is_whole
        and before.client == after.client
        and before.ended_at == after.started_at
        and before.queues == after.queues
    )


def _spans(stretch: Sequence[_Step]) -> Iterator[ClientSpan]:
    part: list[_Step] = []
    for step in stretch:
        part.append(step)
        if (step.ended_at - part[0].started_at).total_seconds() >= SPAN_S:
            yield _span(part)
            part = []


def _span(steps: Sequence[_Step]) -> ClientSpan:
    seconds = (steps[-1].ended_at - steps[0].started_at).total_seconds()
    consumed = sum(interval.consumed or 0 for step in steps for interval in step.intervals)
    least = min(_lag_before(steps[0]), *(_lag_after(step) for step in steps))
    is_saturated = 0 < BUSY_S * consumed / seconds <= least and not _is_blocked(steps)
    return ClientSpan(steps[0].client, steps[0].started_at, seconds, consumed, is_saturated)


def _lag_after(step: _Step) -> int:
    return sum(interval.lag or 0 for interval in step.intervals)


def _lag_before(step: _Step) -> int:
    return _lag_after(step) - sum(interval.arrived - (interval.consumed or 0) for interval in step.intervals)


def _is_blocked(steps: Sequence[_Step]) -> bool:
    """Tell whether a queue had messages waiting all the time and did not move: one slow message holds it up."""
    by_queue = zip(*(step.intervals for step in steps), strict=True)
    return any(all(interval.consumed == 0 and interval.lag for interval in intervals) for intervals in by_queue)
