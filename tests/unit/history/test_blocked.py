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
from planner.snapshot.build import build_snapshot
from planner.snapshot.settings import SnapshotSettings
from tests.sample_builders import START, steady, tuning, watch

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


def stuck_push(call_ms: float, started_s_ago: float) -> tuple[GroupSample, ...]:
    """Return five minutes of push clients, one queue of which commits nothing while the others keep up."""
    started_ms = int(((START + timedelta(seconds=295)).timestamp() - started_s_ago) * 1000)
    samples = watch(60, steady(50, 50), client_tuning=replace(tuning(rt_ms=call_ms), started_at_ms=started_ms))
    stuck = samples[0].offsets[0].queue
    return tuple(
        replace(
            sample,
            offsets=tuple(replace(one, consumer_offset=7) if one.queue == stuck else one for one in sample.offsets),
        )
        for sample in samples
    )


def test_a_push_client_s_queue_waits_for_its_pool_by_the_client_s_own_figures() -> None:
    """Calls of 20 ms come around to each queue in a minute, calls of 200 s do not; a young client has had no time."""
    stuck = stuck_push(20.0, 3_600.0)
    assert all(isinstance(member, Member) for member in stuck[-1].members)
    assert blocked_in(stuck) == (stuck[0].offsets[0].queue,)
    assert blocked_in(stuck_push(200_000.0, 3_600.0)) == ()
    assert blocked_in(stuck_push(20.0, 30.0)) == ()


def test_a_member_far_slower_than_its_peers_is_blocked_for_the_decision_as_well() -> None:
    """The doctor suspects it by its peers' pace: red where only what is sure counts."""
    samples = two_members(140, 0)
    one_message_each = tuple(
        replace(sample, offsets=(sample.offsets[0], replace(sample.offsets[1], broker_offset=5, consumer_offset=1)))
        for sample in samples
    )
    assert blocked_in(one_message_each) == (SECOND,)


def test_commits_that_go_back_are_named_and_a_reset_is_none() -> None:
    samples = list(watch(20, steady(50, 50)))
    first, second = (entry.queue for entry in samples[0].offsets[:2])

    def rewound(queues: set[object], messages: int) -> tuple[object, ...]:
        late = [
            replace(
                sample,
                offsets=tuple(
                    replace(one, consumer_offset=(one.consumer_offset or 0) - messages) if one.queue in queues else one
                    for one in sample.offsets
                ),
            )
            for sample in samples[10:]
        ]
        whole = (*samples[:10], *late)
        settings = SnapshotSettings(window_s=600.0)
        return build_snapshot(whole[-1], queue_intervals(whole, 5.0), whole[-1].at, settings).rewound_queues

    assert rewound({first}, 400) == (first,)
    assert rewound({first, second}, 400) == (first, second)
    assert rewound({first}, 60) == (), "a step forward of 50 less 60: what a move takes back"
    assert rewound({entry.queue for entry in samples[0].offsets}, 400) == (), "all of them: somebody reset the group"
