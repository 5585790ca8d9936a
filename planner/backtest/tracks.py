"""What was read of a group's past, as arrays: out of metrics, out of samples, out of the lag history."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from planner.backtest.scenario import Floats, Ints
from planner.model.points import MetricHistory
from planner.model.queues import MessageQueue, Queue
from planner.model.samples import GroupSample

NAN = float("nan")
LEAST_SAMPLES = 2
HOLE_FACTOR = 3.0
"""A span of more than so many usual ones is a hole: its mean says nothing of the load within it."""
NO_QUEUE = "no metric shows what arrives in its queues: see planner history"
NO_NUMBER = "its metrics show topics, not queues: state --queues-each N, and the load counts as even over them"


@dataclass(frozen=True, slots=True, eq=False)
class QueueTrack:
    """One queue, or the queues of a topic that nobody told apart, over spans in order of time.

    All arrays have one value a span: ``ends`` in seconds since 1970, ``seconds`` how long it is, ``arrival`` and
    ``consumption`` in messages per second over it, ``lag`` in messages at its end. NaN is unknown.
    """

    queues: Sequence[Queue]
    ends: Floats
    seconds: Floats
    arrival: Floats
    consumption: Floats
    lag: Floats


@dataclass(frozen=True, slots=True, eq=False)
class MemberTrack:
    """How many members there were at the end of each span; NaN is unknown."""

    ends: Floats
    seconds: Floats
    members: Floats


@dataclass(frozen=True, slots=True, eq=False)
class GroupTracks:
    """A group's past: ``queues`` sorted as the clients sort them; ``period_s`` is the time between two readings."""

    system: str
    group: str
    period_s: float
    queues: Sequence[QueueTrack]
    members: MemberTrack


class _Span(Protocol):
    @property
    def seconds(self) -> float: ...

    @property
    def arrival_rate(self) -> float | None: ...

    @property
    def consumption_rate(self) -> float | None: ...

    @property
    def lag(self) -> int | None: ...


def tracks_of_metrics(history: MetricHistory, queues_each: int | None) -> GroupTracks | str:
    """Return what metrics show, or why they show too little.

    ``queues_each`` is how many queues each topic has, for metrics that show topics alone.
    """
    points = history.points
    members = MemberTrack(*_columns(((point.at.timestamp(), point.seconds, point.members) for point in points), 3))
    rows = _rows(history, queues_each)
    if isinstance(rows, str):
        return rows
    queues = [QueueTrack(owned, *_columns(map(_figures, spans), 5)) for owned, spans in rows]
    return GroupTracks(history.system, history.group, history.period_s, queues, members)


def tracks_of_samples(samples: Iterable[GroupSample]) -> GroupTracks | str:
    """Return what samples of one group show, in whichever order they come, or why they show too little.

    What goes back between two samples (a topic made anew, an offset set back) is unknown, and so is all within a span
    of more than ``HOLE_FACTOR`` times the usual one. One sample at a time is in memory.
    """
    sightings: dict[Queue, array[float]] = {}
    times, members, sample = array("d"), array("d"), None
    for sample in samples:
        for offsets in sample.offsets:
            if not offsets.queue.is_retry:
                known = (len(times), offsets.broker_offset, offsets.consumer_offset, offsets.lag)
                of_queue = sightings.setdefault(offsets.queue, array("d"))
                of_queue.extend(NAN if value is None else value for value in known)
        times.append(sample.at.timestamp())
        members.append(len(sample.members))
    if sample is None or len(times) < LEAST_SAMPLES:
        return f"there are {len(times)} samples of it in that time, and what arrives is seen between two"
    order = np.argsort(np.frombuffer(times))
    ends = np.frombuffer(times)[order]
    seconds = np.diff(ends)
    period_s = float(np.median(seconds))
    seconds = np.where((seconds > 0) & (seconds <= HOLE_FACTOR * period_s), seconds, NAN)
    queues = [_track_of_queue(queue, sightings[queue], order, ends, seconds) for queue in sorted(sightings)]
    counts = MemberTrack(ends[1:], seconds, np.frombuffer(members)[order][1:])
    return GroupTracks(sample.system, sample.group, period_s, queues, counts)


def _track_of_queue(queue: Queue, sightings: "array[float]", order: Ints, ends: Floats, seconds: Floats) -> QueueTrack:
    rows, broker, consumer, lag = np.frombuffer(sightings).reshape(-1, 4).T
    offsets = np.full((3, len(order)), NAN)
    offsets[:, rows.astype(np.intp)] = broker, consumer, lag
    offsets = offsets[:, order]
    rates = np.diff(offsets[:2]) / seconds
    arrival, consumption = np.where(rates >= 0, rates, NAN)
    return QueueTrack([queue], ends[1:], seconds, arrival, consumption, offsets[2, 1:])


def _rows(
    history: MetricHistory, queues_each: int | None
) -> list[tuple[list[Queue], Sequence[tuple[datetime, _Span]]]] | str:
    """Return for each queue, or topic with its queues, what was read of it, sorted as the clients sort queues."""
    by_queue: dict[Queue, list[tuple[datetime, _Span]]] = {}
    for interval in history.intervals:
        by_queue.setdefault(interval.queue, []).append((interval.ended_at, interval))
    if by_queue:
        return [([queue], by_queue[queue]) for queue in sorted(by_queue)]
    if not history.by_topic:
        return NO_QUEUE
    if queues_each is None:
        return NO_NUMBER
    by_topic: dict[str, list[tuple[datetime, _Span]]] = {}
    for point in history.by_topic:
        by_topic.setdefault(point.topic or "", []).append((point.at, point))
    return [
        ([MessageQueue(topic, "any", number) for number in range(queues_each)], by_topic[topic])
        for topic in sorted(by_topic)
    ]


def _figures(read: tuple[datetime, _Span]) -> tuple[float | None, ...]:
    at, span = read
    return at.timestamp(), span.seconds, span.arrival_rate, span.consumption_rate, span.lag


def _columns(rows: Iterable[tuple[float | None, ...]], width: int) -> Floats:
    """Return so many columns of the rows in order of their first value; what is ``None`` becomes NaN."""
    table = np.array(list(rows), dtype=float).reshape(-1, width)
    return np.asarray(table[np.argsort(table[:, 0], kind="stable")].T)
