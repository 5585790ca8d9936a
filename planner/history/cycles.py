"""How long a queue of a push client may stand although its owner works: until the owner's pool comes to it."""

from collections.abc import Iterable, Mapping
from math import inf

from planner.model.membership import ClientTuning, Member
from planner.model.queues import Queue
from planner.model.samples import QueueOffsets

IN_FLIGHT = 1_032
"""What a client may hold of one queue: ``pullThresholdForQueue`` and one pull, ``pullBatchSize`` (rocketmq.md 3.12)."""

ORDERLY_STAY_S = 60.0
"""``MAX_TIME_CONSUME_CONTINUOUSLY`` of ``ConsumeMessageOrderlyService`` (client 5.5.0)."""


def pool_cycle_s(
    members: Iterable[Member],
    offsets: Mapping[Queue, QueueOffsets],
    owners: Mapping[Queue, tuple[str, ...]],
    queue: Queue,
) -> float:
    """Return for how many seconds a queue that is consumed may stand, by the figures of ``members``, its owners.

    0 where none of them reports figures. That is two listener calls of its own topic, and the time for the queues that
    its owner consumes besides. A concurrent client works off what it has pulled in the order of arrival, up to
    ``pullThresholdForQueue`` messages of each queue (``ConsumeMessageConcurrentlyService``, client 5.5.0), an orderly
    one stays at a queue for 60 s at most (``ConsumeMessageOrderlyService``).
    """
    return max((_cycle_with_s(member, offsets, owners, queue) for member in members), default=0.0)


def _cycle_with_s(
    member: Member, offsets: Mapping[Queue, QueueOffsets], owners: Mapping[Queue, tuple[str, ...]], queue: Queue
) -> float:
    tuning = member.tuning
    if tuning is None:
        return 0.0
    calls_s = {figure.topic: figure.consume_rt_ms / 1000 for figure in tuning.figures}
    own_s = 2 * calls_s.get(queue.topic, 0.0)
    if not tuning.threads:
        return own_s
    consumed = {figure.topic for figure in tuning.figures if figure.ok_per_s + figure.failed_per_s > 0}
    others = (
        entry
        for other, entry in offsets.items()
        if other != queue and other.topic in consumed and member.identity in owners.get(other, ())
    )
    longest_s = ORDERLY_STAY_S if tuning.orderly else inf
    others_s = (
        min(longest_s, calls_s[entry.queue.topic] * _in_hand(tuning, entry) / (tuning.batch_size or 1))
        for entry in others
    )
    return own_s + sum(others_s) / tuning.threads


def _in_hand(tuning: ClientTuning, entry: QueueOffsets) -> int:
    """Return how many messages of a queue a client may hold by now."""
    return min(entry.lag or 0, tuning.pull_threshold or IN_FLIGHT)
