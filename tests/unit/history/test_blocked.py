"""Which queues are surely blocked, long before they stood for a whole window: a hung member's queues above all."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.history.blocked import POLL_S
from planner.history.intervals import queue_intervals
from planner.model.membership import KafkaMember, Member
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, QueueOffsets
from planner.snapshot.build import SnapshotSettings, build_snapshot
from tests.sample_builders import START, steady, watch

FIRST, SECOND = parts = (TopicPartition("orders", 0), TopicPartition("orders", 1))


def two_members(seconds: int, hangs_after_s: float, every_s: int = 5) -> tuple[GroupSample, ...]:
    """Return the samples of two members of one partition each; the second commits nothing after a while."""
    return tuple(
        GroupSample(
            system="kafka",
            cluster="k",
            group="shop",
            at=START + timedelta(seconds=at),
            took_s=0.1,
            routes=RouteTable(partitions=tuple(PartitionRoute(part, 1) for part in parts)),
            members=(
                KafkaMember("m1", "app", "10.0.0.1", owned=(FIRST,)),
                KafkaMember("m2", "app", "10.0.0.2", owned=(SECOND,)),
            ),
            offsets=(
                QueueOffsets(FIRST, 1_000 + 10 * at, 10 * at),
                QueueOffsets(SECOND, 1_000 + 10 * at, 10 * min(at, int(hangs_after_s))),
            ),
        )
        for at in range(0, seconds + 1, every_s)
    )


def blocked_in(samples: tuple[GroupSample, ...], window_s: float = 600.0) -> tuple[object, ...]:
    settings = SnapshotSettings(window_s=window_s)
    return build_snapshot(samples[-1], queue_intervals(samples, 5.0), samples[-1].at, settings).blocked_queues


@pytest.mark.parametrize(("seconds", "hangs_after_s", "found"), [(200, 100, (SECOND,)), (140, 100, ()), (200, 999, ())])
def test_a_member_that_hangs_is_seen_after_a_minute(seconds: int, hangs_after_s: float, found: tuple[object]) -> None:
    """It had committed every 5 s before: red where only a queue that stood for the whole window counts."""
    assert blocked_in(two_members(seconds, hangs_after_s)) == found


def test_a_member_that_never_committed_may_be_in_its_first_batch_until_a_poll_takes_too_long() -> None:
    assert blocked_in(two_members(int(POLL_S) - 5, 0)) == ()
    assert blocked_in(two_members(int(POLL_S) + 5, 0)) == (SECOND,)


def test_what_lies_before_the_window_is_not_judged() -> None:
    assert blocked_in(two_members(200, 100), window_s=80.0) == (), "no commit of the member is known within it"


def test_a_push_client_s_queues_wait_in_its_pool() -> None:
    """Its own figures say for how long: red where the commits of its other queues are taken for turns."""
    samples = watch(60, steady(50, 50))
    stuck = samples[0].offsets[0].queue
    hung = tuple(
        replace(
            sample,
            offsets=tuple(replace(one, consumer_offset=0) if one.queue == stuck else one for one in sample.offsets),
        )
        for sample in samples
    )
    assert all(isinstance(member, Member) for member in hung[-1].members)
    assert blocked_in(hung) == ()
