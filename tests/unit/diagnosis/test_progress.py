"""Whether the group gets on: Burrow's rules on offsets that we read ourselves."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.membership import TopicFigures
from planner.model.queues import MessageQueue
from tests.sample_builders import START
from tests.unit.diagnosis.patients import codes, each, finding, gaps, healthy, queue, tuned

Course = Callable[[int], tuple[int, int | None]]


def sick(
    course: Course, looks: int = 7, every_s: float = 5.0, only: Sequence[MessageQueue] = (queue(0),), **fields: Any
) -> GroupEvidence:
    """Return a group whose ``only`` queues go ``course`` (by the number of the look), all others are well."""

    def offsets(one: MessageQueue, number: int) -> tuple[int, int | None]:
        return course(number) if one in only else (1000 + 100 * number, 1000 + 100 * number)

    return healthy(looks, offsets=offsets, every_s=every_s, **fields)


def test_a_commit_that_stands_while_messages_wait_is_a_stall() -> None:
    picture = sick(lambda number: (1500 + 10 * number, 1200))
    assert codes(picture) == {"stalled": Severity.WARNING}
    found = finding(picture, "stalled")
    assert found.evidence[:2] == ("no commit for 30 s on orders/broker-a/0", "owned by c1")
    assert found.consequence == "360 messages wait, 2 messages/s come in"


def test_after_a_minute_a_stall_is_an_error() -> None:
    assert codes(sick(lambda _: (1500, 1200), looks=13))["stalled"] is Severity.ERROR


def test_owners_that_say_they_do_nothing_make_it_an_error_at_once() -> None:
    picture = each(sick(lambda _: (1500, 1200)), tuned("c1", figures=(TopicFigures("orders", 5.0, 0.0, 0.0),)))
    assert codes(picture)["stalled"] is Severity.ERROR


def test_a_group_that_stands_still_as_a_whole_says_so() -> None:
    picture = healthy(offsets=lambda _queue, _number: (1500, 1200))
    assert finding(picture, "stalled").title.startswith("The group stands still")


@pytest.mark.parametrize(
    "course",
    [
        lambda number: (1200 + 10 * number, 1200 if number < 6 else 1260),  # it moved in the end
        lambda _: (1200, 1200),  # nothing waits
        lambda number: (1300, 1200 + number),  # slowly, but it moves
    ],
)
def test_a_queue_that_moves_or_has_nothing_to_do_is_not_stalled(course: Course) -> None:
    assert "stalled" not in codes(sick(course))


def test_calls_that_take_long_by_themselves_are_no_stall() -> None:
    long = (TopicFigures("orders", 20_000.0, 0.1, 0.0),)
    picture = each(each(sick(lambda _: (1500, 1200)), tuned("c1", figures=long)), tuned("c2", figures=long))
    assert codes(picture) == {}


@pytest.mark.parametrize(
    ("tuned_as", "found"),
    [
        ({}, set()),  # 300 calls of 0.2 s come first, on one thread: 60 s
        ({"threads": 4}, {"stalled"}),  # 15 s
        ({"threads": None}, {"stalled"}),
        ({"pull_threshold": 100}, {"stalled"}),  # 20 s: no more is held of the other queue
        ({"batch_size": 4}, {"stalled"}),  # a quarter of the calls
        ({"orderly": True, "rt_ms": 400.0}, set()),  # 120 s of calls, and the thread leaves the queue after 60 s
        ({"ok_per_s": 0.0}, {"stalled"}),  # nothing of the topic is consumed: its turn will not come
        ({"rt_ms": 60.0}, {"stalled"}),  # 18 s
    ],
)
def test_a_queue_may_stand_for_as_long_as_its_owner_is_busy_with_others(
    tuned_as: dict[str, Any], found: set[str]
) -> None:
    """c1 owns both queues of the first broker; 300 messages wait on the one that moves."""

    def offsets(one: MessageQueue, number: int) -> tuple[int, int]:
        return (1500, 1200) if one == queue(0) else (1300 + 50 * number, 1000 + 50 * number)

    owner = {"threads": 1, "rt_ms": 200.0, "ok_per_s": 5.0, **tuned_as}
    picture = healthy(offsets=offsets, topics={"orders": 2}, **owner)
    assert set(codes(picture)) & {"stalled"} == found


def test_a_short_watch_cannot_tell_a_stall() -> None:
    short = sick(lambda _: (1500, 1200), looks=2)
    assert "stalled" not in codes(short)
    assert "10 s are needed" in gaps(short)["stalled"]


def test_a_commit_that_goes_back_is_a_rewind() -> None:
    picture = sick(lambda number: (2000 + 10 * number, 1900 if number < 3 else 1500 + 100 * number))
    found = finding(picture, "rewinding")
    assert found.evidence == ("c1: orders/broker-a/0 by 100 messages",)
    assert found.consequence == "100 messages come again: consumers that are not idempotent do their work twice"
    assert "look at c1: a client that was frozen" in found.advice


def test_commits_that_go_back_on_every_queue_are_a_reset_and_each_member_is_named() -> None:
    def offsets(_: MessageQueue, number: int) -> tuple[int, int]:
        return 2000 + 10 * number, 1900 if number < 3 else 1500 + 100 * number

    symptom = finding(healthy(offsets=offsets), "rewinding")
    assert [line.partition(":")[0] for line in symptom.evidence] == ["c1", "c2"]
    assert "every queue with commits went back: offsets were reset" in symptom.advice


def test_a_step_back_within_one_pull_is_what_a_quick_move_leaves() -> None:
    assert "rewinding" not in codes(sick(lambda number: (2000, 1900 if number < 3 else 1868)))
    assert "rewinding" in codes(sick(lambda number: (2000, 1900 if number < 3 else 1867)))


def test_a_stall_of_this_morning_is_over() -> None:
    assert "stalled" not in codes(sick(lambda number: (1500, 1200 if number < 90 else 1500), looks=100))


def test_a_topic_that_was_made_anew_is_no_rewind() -> None:
    assert "rewinding" not in codes(sick(lambda number: (2000, 2000) if number < 3 else (10 * number, 10 * number)))


def test_a_move_takes_the_commit_back_by_what_was_in_flight() -> None:
    picture = sick(lambda number: (2000 + 10 * number, 1990 if number < 3 else 1960 + 10 * number))
    moved = replace(
        picture,
        samples=tuple(
            replace(
                one,
                members=tuple(
                    reversed(
                        [replace(m, owned=o.owned) for m, o in zip(one.members, reversed(one.members), strict=True)]
                    )
                ),
            )
            if number < 3
            else one
            for number, one in enumerate(picture.samples)
        ),
    )
    assert "rewinding" not in codes(moved)


def test_a_queue_that_grows_while_its_member_is_done_with_its_others_falls_behind() -> None:
    picture = sick(lambda number: (2000 + 100 * number, 1500 + 40 * number), looks=10)
    assert codes(picture) == {"falling-behind": Severity.WARNING}
    found = finding(picture, "falling-behind")
    assert found.title == "The backlog grows on 1 queue while c1 is done with its others"
    assert found.consequence == "12 messages/s more come in than go out: 43,200 messages more in an hour"


@pytest.mark.parametrize(
    "course",
    [
        lambda number: (2000 + 100 * number, 1500 + 120 * number),  # it drains
        lambda number: (2000 + 100 * number, 1990 + 99 * number),  # by single messages, within a commit
        lambda number: (1000 + 100 * number, 1000 + 100 * (number - number % 2)),  # now and then it is done
    ],
)
def test_a_lag_that_is_worked_off_does_not_fall_behind(course: Course) -> None:
    assert codes(sick(course, looks=10)) == {}


def test_a_lag_that_has_grown_for_the_last_minutes_only_falls_behind_now() -> None:
    late = sick(lambda number: (9000 + 100 * number, 9000 + 100 * number - max(0, 60 * (number - 30))), looks=100)
    assert codes(late) == {"falling-behind": Severity.WARNING}


def test_whether_members_keep_up_needs_more_than_a_glance() -> None:
    short = sick(lambda number: (2000 + 100 * number, 1500 + 40 * number), looks=3)
    assert codes(short) == {}
    assert "--watch 60" in gaps(short)["too-few-consumers"]
    assert examine(short).is_undecided


def test_a_little_that_waits_is_no_reason_to_watch_longer() -> None:
    assert not examine(sick(lambda number: (2000 + 100 * number, 1900 + 100 * number), looks=3)).is_undecided


def test_a_backlog_of_ten_minutes_is_told_with_its_end() -> None:
    picture = healthy(offsets=lambda _queue, number: (100_000 + 50 * number, 10_000 + 100 * number))
    found = finding(picture, "long-backlog")  # 8 queues: 717 600 behind, 160/s out, 80/s in
    assert found.title == "A message that comes now waits 1 h 15 min"
    assert found.evidence[1] == "at this pace gone in 2 h 30 min"


def test_a_backlog_of_some_minutes_is_none() -> None:
    assert codes(healthy(offsets=lambda _queue, number: (18_000 + 50 * number, 10_000 + 100 * number))) == {}


def at_offset(committed: int | None, looks: int = 7, **fields: Any) -> GroupEvidence:
    """Return a group whose commits stay there on all queues, while messages come."""
    return healthy(looks, offsets=lambda _queue, number: (1000 + 100 * number, committed), **fields)


@pytest.mark.parametrize(
    ("committed", "title", "comes_again"),
    [
        (None, "The group never commits", "up to 12,800 messages come again, or are skipped"),
        (0, "The group commits nothing beyond offset 0", "up to 12,800 messages come again"),
    ],
)
def test_a_group_that_never_commits(committed: int | None, title: str, comes_again: str) -> None:
    picture = at_offset(committed)
    assert codes(picture) == {"never-commits": Severity.ERROR}
    found = finding(picture, "never-commits")
    assert found.title == title
    assert found.evidence[1] == "yet its members consume 40 messages/s by their own figures"
    assert comes_again in found.consequence
    assert ("leave auto-commit on" in found.advice) == (committed is None)


def test_a_queue_that_is_stuck_at_0_stands_still_like_any_other() -> None:
    picture = sick(lambda number: (1500 + 10 * number, 0))
    assert codes(picture) == {"stalled": Severity.WARNING}
    assert finding(picture, "stalled").evidence[0] == "no commit for 30 s on orders/broker-a/0"


def test_a_group_that_does_nothing_at_0_stands_still_and_is_not_told_to_commit() -> None:
    assert codes(at_offset(0, figures=())) == {"stalled": Severity.ERROR}


PULLS = ("PROP_CONSUME_TYPE", "CONSUME_ACTIVELY")


def test_at_0_pull_clients_are_told_to_commit_where_they_do_not_by_themselves() -> None:
    picture = at_offset(0, figures=(), properties=(PULLS, ("autoCommit", "false")))
    assert codes(picture) == {"never-commits": Severity.ERROR}


@pytest.mark.parametrize(("looks", "found"), [(7, {}), (62, {"stalled": Severity.ERROR})])
def test_pull_clients_report_no_figures_so_only_a_long_watch_shows_that_they_stand(
    looks: int, found: dict[str, Severity]
) -> None:
    picture = at_offset(0, looks=looks, figures=(), properties=(PULLS, ("autoCommit", "true")))
    assert codes(picture) == found
    assert ("--watch 310" in gaps(picture).get("stalled", "")) == (not found)


def test_a_backlog_of_which_nothing_is_committed_is_told_once() -> None:
    picture = healthy(offsets=lambda _queue, number: (1000 + 100 * number, 0 if number else None))
    assert codes(picture) == {"never-commits": Severity.ERROR}


def test_a_group_that_begins_at_0_has_time_to_commit() -> None:
    young = sick(lambda number: (1500, 0 if number < 3 else 1500), looks=3, started_s_ago=5.0)
    assert codes(young) == {}


@pytest.mark.parametrize("committed", [0, None])
def test_queues_that_never_held_a_message_are_well(committed: int | None) -> None:
    assert codes(healthy(offsets=lambda _queue, _number: (0, committed))) == {}


def test_one_queue_with_a_commit_shows_that_the_group_commits() -> None:
    picture = sick(lambda _: (1000, None), only=[queue(n) for n in range(3)])
    assert "never-commits" not in codes(picture)


def test_members_need_time_before_they_commit() -> None:
    young = healthy(3, offsets=lambda _queue, _number: (1000, None), started_s_ago=5.0)
    assert "never-commits" not in codes(young)
    assert "just started" in gaps(young)["never-commits"]


@pytest.mark.parametrize(("age_s", "is_late"), [(61, True), (59, False)])
def test_messages_that_wait_longer_than_the_policy_allows(age_s: float, is_late: bool) -> None:
    picture = replace(sick(lambda number: (1300, 1200 + number)), oldest_message_s=60.0)
    stored = round((START.timestamp() + 30 - age_s) * 1000)
    late = each(
        picture,
        lambda sample: replace(sample, offsets=tuple(replace(o, last_timestamp_ms=stored) for o in sample.offsets)),
    )
    assert ("too-old" in codes(late)) == is_late
