"""When a consumer surely had work all the time, and how fast it was then.

A client commits in lumps: a default Kafka consumer works off up to ``max.poll.records`` (500) records, mostly of one
partition, and commits them at its next poll (``KafkaConsumer``, 4.1); a RocketMQ client commits all its queues every
5 s (``persistConsumerOffsetInterval``, 5.5.0). So rates run from commit to commit of the *member*, over all its
queues, and a queue that stands while its member serves the others shows nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from planner.model.intervals import QueueInterval
from planner.model.queues import Queue

SPAN_S = 30.0
"""Rates are taken over at least so many seconds, as a commit is known to one sampling period only."""

STANDSTILL_FACTOR = 3.0
"""A member that took so many times its usual time for its messages stood still meanwhile: it was not at work."""

FEWEST_FOR_USUAL = 4
"""What is usual for a member takes so many commits at least."""


@dataclass(frozen=True, slots=True)
class ClientSpan:
    """What one client consumed of the same queues from one commit to a later one, ``seconds`` after it.

    ``started_at`` is the end of the sample interval that shows the first commit. Both commits happened up to
    ``slack_s`` before the sample that shows them, so the true length is ``seconds`` give or take ``slack_s``.
    ``is_saturated``: at every commit at least as much waited as the client committed next, so it never lacked work.
    """

    client: str
    started_at: datetime
    seconds: float
    consumed: float
    is_saturated: bool
    slack_s: float = 0.0

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.consumed / self.seconds

    @property
    def least_rate(self) -> float:
        """Messages per second if the span was as long as it can have been."""
        return self.consumed / (self.seconds + self.slack_s)

    @property
    def most_rate(self) -> float:
        """Messages per second if the span was as short as it can have been; infinite where that is no time at all."""
        return self.consumed / (self.seconds - self.slack_s) if self.seconds > self.slack_s else float("inf")


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
    def seconds(self) -> float:
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def is_whole(self) -> bool:
        """True when nothing out of the ordinary happened: no queue moved, no offset went back, no sample is missing."""
        return not any(
            interval.is_gap or interval.moved_from or interval.broker_reset or interval.consumer_reset
            for interval in self.intervals
        )

    @property
    def consumed(self) -> int:
        """Messages committed in this step; a queue's first commit of all counts none, as its begin is unknown."""
        return sum(interval.consumed or 0 for interval in self.intervals)

    @property
    def has_first_commit(self) -> bool:
        """True when some of what was committed cannot be counted."""
        return any(
            interval.consumed is None and interval.consumer_offset is not None and interval.broker_offset > 0
            for interval in self.intervals
        )

    @property
    def has_commit(self) -> bool:
        return self.consumed > 0 or self.has_first_commit


@dataclass(frozen=True, slots=True)
class _Lap:
    """What one client did from one commit to its next."""

    begin: _Step
    end: _Step
    had_work: bool

    @property
    def seconds(self) -> float:
        return (self.end.ended_at - self.begin.ended_at).total_seconds()

    @property
    def pace(self) -> float:
        return self.end.consumed / self.seconds


def client_spans(intervals: Iterable[QueueInterval]) -> tuple[ClientSpan, ...]:
    """Return what each client did while it owned the same queues alone, in spans of at least ``SPAN_S``, by client.

    Time in which a queue moved, an offset was reset or a sample is missing belongs to no span, nor does the time
    before a client's first commit and after its last one.
    """
    return tuple(span for steps in _stretches(_steps(intervals)) for span in _spans(_laps(steps)))


FILLS_S = 10.0
"""Members that just joined, or that were just seen for the first time, fill their caches: a gRPC client takes 1 024
messages in about 30 pops, and what it takes counts as consumed (208 counts what a pop hands out)."""


def shared_spans(intervals: Iterable[QueueInterval]) -> tuple[ClientSpan, ...]:
    """Return what one member did on average of those that share all queues, while their number stayed the same.

    ``client`` names all of them. The first ``FILLS_S`` of each set of members belong to no span.
    """
    alike: dict[str, int] = {}
    merged = []
    for interval in intervals:
        if interval.owners:
            members = "+".join(interval.owners)
            alike[members] = len(interval.owners)
            merged.append(replace(interval, owners=(members,), moved_from=()))
    spans = (span for steps in _stretches(_steps(merged)) for span in _spans(_laps(_settled(steps))))
    return tuple(replace(span, consumed=span.consumed / alike[span.client]) for span in spans)


def _settled(steps: Sequence[_Step]) -> list[_Step]:
    since = steps[0].ended_at + timedelta(seconds=FILLS_S)
    return [step for step in steps if step.ended_at >= since]


def _steps(intervals: Iterable[QueueInterval]) -> list[_Step]:
    by_step: dict[tuple[str, datetime, datetime], list[QueueInterval]] = {}
    for interval in intervals:
        if len(interval.owners) == 1:
            by_step.setdefault((interval.owners[0], interval.started_at, interval.ended_at), []).append(interval)
    return [_Step(*key, tuple(sorted(by_step[key], key=lambda interval: interval.queue))) for key in sorted(by_step)]


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


def _laps(stretch: Sequence[_Step]) -> list[_Lap]:
    """Return the times from commit to commit; those in which the client stood still count as without work."""
    last_moved = {
        interval.queue: step.ended_at for step in stretch for interval in step.intervals if (interval.consumed or 0) > 0
    }
    commits = [step for step in stretch if step.has_commit]
    laps = [_Lap(before, after, _had_work(before, after, last_moved)) for before, after in pairwise(commits)]
    busy = [lap for lap in laps if lap.had_work]
    if len(busy) < FEWEST_FOR_USUAL:
        return laps
    usual = median(lap.pace for lap in busy)
    return [replace(lap, had_work=lap.had_work and not _stood_still(lap, usual)) for lap in laps]


def _had_work(before: _Step, after: _Step, last_moved: Mapping[Queue, datetime]) -> bool:
    """Return whether all that was committed next was waiting already, so that the client had no time without work.

    What waits in a queue that never moves again does not count: a blocked queue gives no work.
    """
    waiting = sum(
        max(0, interval.lag - interval.arrived)
        for interval in before.intervals
        if interval.lag is not None and last_moved.get(interval.queue, before.ended_at) > before.ended_at
    )
    return not after.has_first_commit and waiting >= after.consumed


def _stood_still(lap: _Lap, usual: float) -> bool:
    expected_s = lap.end.consumed / usual
    return lap.seconds > STANDSTILL_FACTOR * expected_s + 2 * lap.end.seconds


def _spans(laps: Sequence[_Lap]) -> Iterator[ClientSpan]:
    """Yield spans of at least ``SPAN_S``: laps that follow each other, all with work or all without."""
    span: list[_Lap] = []
    for lap in laps:
        if span and span[-1].had_work != lap.had_work:
            span = []
        span.append(lap)
        if sum(each.seconds for each in span) >= SPAN_S:
            yield _span(span)
            span = []


def _span(laps: Sequence[_Lap]) -> ClientSpan:
    first, last = laps[0], laps[-1]
    return ClientSpan(
        client=first.begin.client,
        started_at=first.begin.ended_at,
        seconds=(last.end.ended_at - first.begin.ended_at).total_seconds(),
        consumed=sum(lap.end.consumed for lap in laps),
        is_saturated=first.had_work,
        slack_s=max(first.begin.seconds, last.end.seconds),
    )
