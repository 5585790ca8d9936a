"""From samples to intervals: differences of offsets, gaps and resets marked, nothing clamped away."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import pairwise

from planner.model.intervals import QueueInterval
from planner.model.queues import Queue
from planner.model.samples import GroupSample, QueueOffsets

GAP_FACTOR = 2.0
"""An interval longer than this many sampling periods is a gap: at least one sample is missing."""


def queue_intervals(samples: Iterable[GroupSample], sample_every_s: float) -> tuple[QueueInterval, ...]:
    """Return every interval between consecutive sightings of each queue of one group, by queue and time.

    Samples may come in any order; two of the same time count once. A queue that one sample misses gets one
    longer interval, marked as a gap.
    """
    ordered = sorted({sample.at: sample for sample in samples}.values(), key=lambda sample: sample.at)
    sightings: dict[Queue, list[tuple[datetime, QueueOffsets, tuple[str, ...]]]] = {}
    for sample in ordered:
        owners = sample.owners
        for offsets in sample.offsets:
            sightings.setdefault(offsets.queue, []).append((sample.at, offsets, owners.get(offsets.queue, ())))
    return tuple(
        interval for queue in sorted(sightings) for interval in _intervals_of(sightings[queue], sample_every_s)
    )


def _intervals_of(
    sightings: list[tuple[datetime, QueueOffsets, tuple[str, ...]]], sample_every_s: float
) -> Iterator[QueueInterval]:
    moved_at: datetime | None = None
    for (started_at, before, _), (ended_at, after, owners) in pairwise(sightings):
        seconds = (ended_at - started_at).total_seconds()
        if after.consumer_offset != before.consumer_offset or after.lag == 0:
            moved_at = ended_at
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
            commit_age_s=None if moved_at is None else (ended_at - moved_at).total_seconds(),
            owners=owners,
        )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
