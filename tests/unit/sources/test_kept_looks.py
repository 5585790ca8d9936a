"""A long watch keeps few looks, and tells the same of the group as all of them would."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from planner.diagnosis.diagnose import examine
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.sources.kept_samples import MOST, MOST_CHANGES, add
from tests.sample_builders import watch

HOUR = 720
TOPICS = {"orders": 2}
RECENT = 61


def kept(looks: Sequence[GroupSample]) -> list[GroupSample]:
    found: list[GroupSample] = []
    for look in looks:
        add(found, look)
    return found


def told(looks: Sequence[GroupSample]) -> object:
    """Return what the doctor says of the group, but for the number of looks and what a capacity from each look says."""
    diagnosis = examine(GroupEvidence(tuple(looks)))
    return replace(diagnosis, looks=0, unchecked=tuple(one for one in diagnosis.unchecked if one.code != "broker-loss"))


def test_the_last_five_minutes_are_kept_whole_and_of_what_was_before_a_look_a_minute() -> None:
    looks = watch(HOUR // 2, topics=TOPICS)
    found = kept(looks)
    assert found[-RECENT:] == list(looks[-RECENT:])
    assert found[0] == looks[0]
    apart = {later.at - earlier.at for earlier, later in pairwise(found[: -RECENT + 1])}
    assert max(apart) == timedelta(seconds=60)
    assert len(found) == RECENT + 25


def test_many_hours_keep_no_more_looks_than_one_and_a_half() -> None:
    found = kept(watch(8 * HOUR, topics={"orders": 1}, clients=("10.0.0.1@1",)))
    assert len(found) <= RECENT + MOST
    assert (found[-1].at - found[0].at).total_seconds() == 8 * 3600 - 5


def test_looks_that_are_far_apart_are_kept_as_they_are() -> None:
    """Reading ten thousand groups may take minutes, and a trend needs four looks."""
    looks = watch(12, every_s=180.0, topics=TOPICS)
    assert kept(looks) == list(looks)


def restless(looks: Sequence[GroupSample], every: int) -> list[GroupSample]:
    """Let the last member go for one look of so many."""
    return [
        replace(look, members=look.members[:-1]) if number % every == every // 2 else look
        for number, look in enumerate(looks)
    ]


@pytest.mark.parametrize("every", [45, 90, 150])
def test_members_that_come_and_go_now_and_then_are_all_counted(every: int) -> None:
    looks = restless(watch(2 * HOUR, topics=TOPICS), every)
    found = kept(looks)
    assert len(found) < RECENT + MOST + 4 * len(looks) // every
    assert told(found) == told(looks)
    assert "frequent-rebalances" in {one.code for one in examine(GroupEvidence(tuple(found))).findings}


def test_a_group_that_never_rests_is_bounded_too() -> None:
    found = kept(restless(watch(2 * HOUR, topics=TOPICS), 2))
    assert len(found) == RECENT + MOST_CHANGES


def test_commits_that_went_back_long_ago_are_told() -> None:
    def offsets(queue: MessageQueue, number: int) -> tuple[int, int | None]:
        back = 5000 if queue.queue_id == 1 and number >= 100 else 0
        return 10_000 + 10 * number, 10_000 + 10 * number - back + (5000 if number >= 105 and back else 0)

    looks = watch(HOUR, offsets, topics=TOPICS)
    found = kept(looks)
    assert "rewinding" in {one.code for one in examine(GroupEvidence(tuple(found))).findings}
    assert told(found) == told(looks)


def test_what_does_not_change_is_kept_once() -> None:
    first, second = watch(2, lambda _, __: (10, 10), topics=TOPICS)
    found = kept([first, replace(second, members=tuple(replace(one) for one in second.members))])
    assert found[1].members is found[0].members
    assert found[1].offsets is found[0].offsets
