"""Commits that went back: a reset, or a client that woke up and committed what it knew (rocketmq.md 3.5).

A move of the queue takes the commit back by what was in flight, ``IN_FLIGHT`` messages at most, a quick one that no
sample shows usually by less than ``PULL_BATCH``: these are no rewinds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.history.cycles import IN_FLIGHT
from planner.model.intervals import QueueInterval
from planner.model.queues import Queue

PULL_BATCH = 32
"""``pullBatchSize``."""


@dataclass(frozen=True, slots=True)
class StepBack:
    """By how many messages the commit of a queue went back, and the members that owned the queue then."""

    queue: Queue
    messages: int
    members: tuple[str, ...]


def steps_back(queue: Queue, intervals: Sequence[QueueInterval]) -> Iterator[StepBack]:
    """Yield each step back of a queue's commit over its intervals, oldest first; the usual ones are left out."""
    if not intervals:
        return
    owners = intervals[0].owners
    for interval in intervals:
        messages = -(interval.consumed or 0)
        usual = PULL_BATCH if interval.owners == owners else IN_FLIGHT
        if messages > usual and not interval.broker_reset:
            yield StepBack(queue, messages, interval.owners)
        owners = interval.owners
