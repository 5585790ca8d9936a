"""Whether a member comes around to each queue: rounds tell a slow cycle from a block."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from planner.history.intervals import queue_intervals
from planner.history.work import MemberWork, member_work, members_between_commits
from planner.model.intervals import QueueInterval
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, QueueOffsets
from tests.sample_builders import START

PARTS = tuple(TopicPartition("orders", number) for number in range(3))
IN_EACH = 1_000


def served(order: str, batch: int = 50) -> MemberWork:
    """Return the work of one member that commits ``batch`` records of the named partition between two samples.

    ``-`` commits nothing; 10 records come into each partition between two samples.
    """
    committed = dict.fromkeys(PARTS, 0)
    samples = []
    for number, name in enumerate(["-", *order]):
        if name != "-":
            committed[PARTS[int(name)]] += batch
        samples.append(
            GroupSample(
                system="kafka",
                cluster="k",
                group="shop",
                at=START + timedelta(seconds=5 * number),
                took_s=0.1,
                routes=RouteTable(partitions=tuple(PartitionRoute(part, 1) for part in PARTS)),
                members=(KafkaMember("m", "app", "10.0.0.1", owned=PARTS),),
                offsets=tuple(QueueOffsets(part, IN_EACH + 10 * number, committed[part]) for part in PARTS),
            )
        )
    intervals = {part: [one for one in queue_intervals(samples, 5.0) if one.queue == part] for part in PARTS}
    (work,) = member_work(intervals, samples[-1].owners, PARTS)
    return work


@pytest.mark.parametrize(
    ("order", "batch", "is_passed_over"),
    [
        ("000111", 50, False),  # its turn comes third
        ("0001110", 50, False),  # the first one came again, the second did not yet
        ("00011100011", 50, True),
        ("0-0-0-0-0-0-", 50, False),  # one long turn: commits of many polls are not many turns
        ("0000000", 600, True),  # everything that was in the other one, and all that came meanwhile
        ("------", 50, False),  # nothing moves at all: a batch may take so long
    ],
)
def test_a_queue_is_passed_over_once_each_that_moved_was_served_twice(
    order: str, batch: int, is_passed_over: bool
) -> None:
    work = served(order, batch)
    last = work.queues[2]
    assert last.standing_s == 5.0 * len(order)
    assert work.passes_over(last) == is_passed_over


def test_a_queue_that_moved_stands_since_then() -> None:
    assert served("0022-1").queues[2].standing_s == 10.0


def test_the_gaps_between_commits_are_those_of_the_member() -> None:
    work = served("0--1-2")
    assert work.longest_gap_s == 15.0
    assert work.has_moved_since(START + timedelta(seconds=29))
    assert not work.has_moved_since(START + timedelta(seconds=30))
    assert served("0-1").longest_gap_s is None


def test_members_that_share_their_queues_are_judged_as_one() -> None:
    work = served("012")
    intervals = {queue.queue: queue.intervals for queue in work.queues}
    (shared,) = member_work(intervals, {}, PARTS, ("a", "b"))
    assert shared.members == ("a", "b")
    assert member_work(intervals, {}, PARTS) == ()


@pytest.mark.parametrize(("order", "is_between"), [("----", True), ("0--1", True), ("0--12", False), ("0-0-0", False)])
def test_the_pace_of_a_member_with_work_shows_in_two_cycles(order: str, is_between: bool) -> None:
    quick = replace(served("0120"), members=("quick",))
    assert members_between_commits([quick, served(order)]) == (("m",) if is_between else ())
    assert members_between_commits([served(order)]) == (), "nobody is slower than itself"


def test_a_member_with_nothing_to_do_is_not_waited_for() -> None:
    work = served("0")
    idle = tuple(replace(queue, intervals=tuple(_without_lag(queue.intervals))) for queue in work.queues)
    quick = replace(served("0120"), members=("quick",))
    assert members_between_commits([quick, replace(work, queues=idle)]) == ()


def _without_lag(intervals: Sequence[QueueInterval]) -> Iterator[QueueInterval]:
    return (replace(interval, lag=0) for interval in intervals)
