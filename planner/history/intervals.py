"""From samples to intervals: differences of offsets, gaps and resets marked, nothing clamped away."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from planner.history.message_age import OffsetCurve
from planner.model.intervals import QueueInterval
from planner.model.queues import Queue
from planner.model.samples import GroupSample, QueueOffsets

GAP_FACTOR = 1.75
"""An interval longer than this many sampling periods is a gap: one missing sample makes two periods, more or less."""

Owners = tuple[str, ...]
TimedOffsets = tuple[datetime, QueueOffsets, Owners]


def queue_intervals(samples: Iterable[GroupSample], sample_every_s: float) -> tuple[QueueInterval, ...]:
    """Return every interval between consecutive samples of each queue of one group, by queue and time.

    Samples may come in any order; two of the same time count once. A queue that one sample misses gets one
    longer interval, marked as a gap.
    """
    ordered = sorted({sample.at: sample for sample in samples}.values(), key=lambda sample: sample.at)
    timed_offsets: dict[Queue, list[TimedOffsets]] = {}
    for sample in ordered:
        owners = sample.consumers
        for offsets in sample.offsets:
            timed_offsets.setdefault(offsets.queue, []).append((sample.at, offsets, owners.get(offsets.queue, ())))
    return tuple(
        interval for queue in sorted(timed_offsets) for interval in _intervals_of(timed_offsets[queue], sample_every_s)
    )


@dataclass(slots=True)
class _Known:
    """What the earlier samples of a queue show about the next one."""

    curve: OffsetCurve = field(default_factory=OffsetCurve)
    moved_at: datetime | None = None
    owners: Owners = ()

    def lag_s(self, at: datetime, offsets: QueueOffsets) -> tuple[float | None, bool]:
        """Return the age of the oldest waiting message and whether that is the least it can be."""
        self.curve.add(at, offsets.broker_offset)
        if offsets.lag is None:
            return None, False
        # A lag without a consumer offset is the 0 of a queue that holds nothing.
        of = offsets.broker_offset if offsets.consumer_offset is None else offsets.consumer_offset
        return self.curve.age_s(of, offsets.lag)

    def moved_from(self, owners: Owners) -> Owners:
        """Return the last known owners where ``owners`` are others, and remember these."""
        before, self.owners = self.owners, owners or self.owners
        return before if before and before != self.owners else ()


def _intervals_of(timed_offsets: list[TimedOffsets], sample_every_s: float) -> Iterator[QueueInterval]:
    known = _Known()
    first_at, first, first_owners = timed_offsets[0]
    known.lag_s(first_at, first)
    known.moved_from(first_owners)
    for (started_at, before, _), (ended_at, after, owners) in pairwise(timed_offsets):
        seconds = (ended_at - started_at).total_seconds()
        if after.consumer_offset != before.consumer_offset or after.lag == 0:
            known.moved_at = ended_at
        lag_s, lag_s_is_least = known.lag_s(ended_at, after)
        yield QueueInterval(
            queue=after.queue,
            started_at=started_at,
            ended_at=ended_at,
            seconds=seconds,
            broker_offset=after.broker_offset,
            consumer_offset=after.consumer_offset,
            lag=after.lag,
            arrived=after.broker_offset - before.broker_offset,
            consumed=_difference(before.consumer_offset, after.consumer_offset),
            is_gap=seconds > GAP_FACTOR * sample_every_s,
            commit_age_s=None if known.moved_at is None else (ended_at - known.moved_at).total_seconds(),
            owners=owners,
            lag_s=lag_s,
            lag_s_is_least=lag_s_is_least,
            moved_from=known.moved_from(owners),
        )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
