"""Groups that are changed while somebody looks now and then: what was true always lies in what was seen."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.queues import MessageQueue, Queue
from planner.model.samples import QueueOffsets
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.span import Begun, TimedObservation
from planner.verification.waiting import MOST_MARKS, Mark, Waiting
from planner.verification.watch import Watch

Q, OTHER = (MessageQueue("orders", "broker-a", number) for number in (0, 1))
CHANGE_S, END_S = 20.0, 80.0
BEGUN = Begun(0, CHANGE_S, CHANGE_S)


@dataclass(frozen=True)
class Life:
    """One queue: when its messages came, who was given which when; the old owner commits last at ``last_commit_s``."""

    came: Sequence[float]
    given: Sequence[tuple[float, int, str]]
    commit_s: float
    taken_s: float = math.inf
    last_commit_s: float = math.inf

    def look(self, at: float, queue: Queue) -> QueueOffsets:
        """Return the queue's offsets as they are committed every ``commit_s``."""
        end = sum(one <= at for one in self.came)
        until = {"new": at // self.commit_s * self.commit_s}
        until["old"] = min(until["new"], self.last_commit_s)
        done = [number for when, number, owner in self.given if when <= until[owner]]
        return QueueOffsets(queue, end, done[-1] + 1 if done else 0)

    def owner(self, at: float) -> str:
        return "old" if at < self.taken_s else "new"

    def longest_s(self, since_s: float = 0.0) -> float:
        """The longest that messages waited from then on while none was delivered, until after the change."""
        gaps = [(max(a, since_s, self.came[number]), b) for (a, _, _), (b, number, _) in pairwise(self.given)]
        return max(b - a for a, b in gaps if b > CHANGE_S)

    @property
    def twice(self) -> int:
        return len(self.given) - len({number for _, number, _ in self.given})


def lived(every_s: float, commit_s: float, moves: bool, pause_s: float, crash: bool, backlog: int) -> Life:
    """Return a queue that gets a message every ``every_s`` after a ``backlog``, and is given one as often.

    It moves at ``CHANGE_S``, the new owner begins at the last commit ``pause_s`` later; a crash commits nothing before.
    """
    count = int(END_S / every_s)
    came = [0.0] * backlog + [number * every_s for number in range(count)]
    given = [(n * every_s, n, "old") for n in range(count) if n * every_s < CHANGE_S or not moves]
    if not moves:
        return Life(came, given, commit_s)
    committed_s, taken_s = (CHANGE_S // commit_s * commit_s if crash else CHANGE_S), CHANGE_S + pause_s
    start = sum(at <= committed_s for at, _, _ in given)
    pace_s = every_s if backlog else 1e-3
    new = [(max(came[n], taken_s + (n - start) * pace_s), n, "new") for n in range(start, count)]
    return Life(came, [*given, *[one for one in new if one[0] < END_S]], commit_s, taken_s, committed_s)


def sights(lives: Mapping[Queue, Life], spacing_s: float, took_s: float) -> Iterator[TimedObservation]:
    """Yield looks at the group; the one at a queue falls within the time that the look takes."""
    for number in range(int(END_S / spacing_s)):
        began = number * spacing_s
        owners = {queue: (life.owner(began + took_s / 2),) for queue, life in lives.items()}
        offsets = {queue: life.look(began + took_s / 2, queue) for queue, life in lives.items()}
        taken = max((life.taken_s for life in lives.values() if life.taken_s < math.inf), default=math.inf)
        is_calm = not CHANGE_S <= began + took_s / 2 < taken if taken < math.inf else True
        yield TimedObservation(began, began + took_s, frozenset({"old", "new"}), owners, offsets, is_calm)


def watched(found: Iterator[TimedObservation], late_s: float = 0.0) -> Watch:
    """Return the watch over all looks; an executor that comes late has missed those before ``late_s``."""
    watch: Watch | None = None
    for sight in found:
        if sight.began_s >= late_s:
            begun = BEGUN if sight.ended_s >= CHANGE_S else None
            watch = watch.after(sight, begun) if watch else Watch.begin(sight, begun)
    assert watch is not None
    return watch


def holds(seen: Between | None, true: float) -> bool:
    return seen is None or seen.low - 1e-9 <= true <= seen.high + 1e-9


@settings(max_examples=60)
@given(
    every_s=st.floats(0.5, 3.0),
    commit_s=st.floats(0.2, 7.0),
    spacing_s=st.floats(0.8, 6.0),
    took=st.floats(0.05, 0.9),
    pause_s=st.floats(0.0, 30.0),
    crash=st.booleans(),
    backlog=st.sampled_from([0, 500]),
    late_s=st.sampled_from([0.0, 22.0, 40.0]),
)
def test_what_was_true_lies_in_what_was_seen(
    every_s: float,
    commit_s: float,
    spacing_s: float,
    took: float,
    pause_s: float,
    crash: bool,
    backlog: int,
    late_s: float,
) -> None:
    lives: dict[Queue, Life] = {
        Q: lived(every_s, commit_s, True, pause_s, crash, backlog),
        OTHER: lived(every_s, commit_s, False, pause_s, crash, backlog),
    }
    watch = watched(sights(lives, spacing_s, took * spacing_s), late_s)
    seen = watch.observed_change(Between.exactly(1))
    since_s = CHANGE_S if late_s else 0.0  # who comes later counts from the first step
    assert holds(seen.pause_seconds, lives[Q].longest_s(since_s))
    assert holds(seen.stall_seconds, lives[OTHER].longest_s(since_s))
    assert holds(seen.duplicates, lives[Q].twice)
    assert holds(seen.settle_seconds, pause_s)
    assert holds(seen.wait_seconds, 0.0)
    assert not (backlog and seen.wait_seconds), "what came since waits behind the backlog"
    if late_s:
        assert (seen.duplicates, seen.settle_seconds) == (None, None), "nobody saw the beginning"
        assert backlog or seen.pause_seconds == seen.stall_seconds, "nor which queues moved meanwhile"


def test_a_calm_group_looked_at_often_gives_narrow_bounds() -> None:
    lives: dict[Queue, Life] = {
        Q: lived(0.2, 1.0, True, 4.0, True, 0),
        OTHER: lived(0.2, 1.0, False, 0.0, False, 0),
    }
    watch = watched(sights(lives, 0.5, 0.1))
    seen = watch.observed_change(Between.exactly(1))
    assert seen.is_complete
    assert seen.pause_seconds is not None
    assert seen.pause_seconds.high < 4.0 + 1.0 + 2 * 0.5 + 0.5
    assert seen.stall_seconds is not None
    assert seen.stall_seconds.high < 2.5
    assert seen.wait_seconds is not None
    assert seen.wait_seconds.high < 2.5
    oldest_s = watch.oldest_s()
    assert oldest_s is not None
    assert oldest_s < 2.5


def offsets(end: int, committed: int | None, queue: Queue = Q) -> QueueOffsets:
    return QueueOffsets(queue, end, committed)


def test_a_message_that_came_between_two_looks_proves_a_delivery_and_one_that_waited_before_does_not() -> None:
    waiting = Waiting.since(0.0, 0.0, offsets(10, 4))
    waiting = waiting.after(5.0, 5.1, offsets(20, 10))
    assert waiting.clear.at_s == 0.0, "all that was consumed had come before the first look"
    waiting = waiting.after(9.0, 9.1, offsets(30, 11))
    assert (waiting.clear, waiting.longest_s) == (Mark(0.0, 10), 9.1)
    waiting = waiting.after(12.0, 12.1, offsets(30, 30))
    assert (waiting.clear, waiting.marks, waiting.longest_s) == (Mark(12.0, 30), (), 12.1)


def test_an_idle_queue_pauses_for_no_time_at_all() -> None:
    waiting = Waiting.since(0.0, 0.0, offsets(10, 10))
    for at in (10.0, 20.0, 30.0):
        waiting = waiting.after(at, at, offsets(10, 10))
    assert (waiting.clear.at_s, waiting.longest_s) == (30.0, 0.0)


def test_a_topic_made_anew_proves_nothing() -> None:
    waiting = Waiting.since(0.0, 0.0, offsets(10, 10)).after(1.0, 1.1, offsets(2, 0))
    assert waiting.longest_s == math.inf


def test_the_oldest_message_waits_since_the_look_before_it_came_and_an_older_one_for_nobody_knows_how_long() -> None:
    first = offsets(10, 4)
    waiting = Waiting.since(0.0, 0.0, first)
    assert waiting.oldest_s(0.1, first) is None
    later = offsets(20, 10)
    waiting = waiting.after(7.0, 7.1, later)
    assert waiting.oldest_s(7.1, later) == pytest.approx(7.1), "message 10 came after the first look"
    done = offsets(20, 20)
    assert waiting.after(8.0, 8.1, done).oldest_s(8.1, done) == 0.0
    unknown = offsets(20, None)
    assert waiting.oldest_s(8.1, unknown) is None


def test_a_long_backlog_keeps_few_marks_and_its_bounds_only_widen() -> None:
    waiting = Waiting.since(0.0, 0.0, offsets(1, 0))
    for number in range(1, 1_000):
        waiting = waiting.after(float(number), number + 0.1, offsets(1 + number, 0))
        assert len(waiting.marks) <= MOST_MARKS + 1
    waiting = waiting.after(1_000.0, 1_000.1, offsets(1_001, 500))
    assert waiting.longest_s == 1_000.1
    assert waiting.clear.at_s <= 498.0, "message 499 was consumed: it had not come by the look at 498 s"


def calm(
    at: float, members: str, end: int, committed: int, epoch: int | None = None, is_calm: bool = True
) -> TimedObservation:
    owners: dict[Queue, tuple[str, ...]] = {Q: (members[-1],)}
    return TimedObservation(at, at + 0.1, frozenset(members), owners, {Q: offsets(end, committed)}, is_calm, epoch)


def twice(*found: TimedObservation) -> float:
    watch = Watch.begin(found[0], None)
    for sight in found[1:]:
        watch = watch.after(sight, Begun(0, 0.5, 0.5))
    return watch.most_duplicates


def test_each_change_of_the_membership_can_bring_back_all_between_the_commit_and_the_end() -> None:
    rest, end = [calm(0, "a", 90, 80), calm(1, "a", 100, 90)], calm(10, "ab", 130, 90)
    assert twice(*rest, calm(2, "a", 110, 100)) == 0
    assert twice(*rest, calm(9, "ab", 120, 90)) == 0, "whether that is the end is not known yet"
    assert twice(*rest, calm(9, "ab", 120, 90), end) == 130 - 80
    assert twice(*rest, calm(9, "abc", 120, 90), replace(end, members=frozenset("abc"), owners={Q: ("c",)})) == 2 * 50
    assert twice(*rest, calm(3, "abc", 110, 90, is_calm=False), calm(9, "ab", 120, 90), end) == 3 * 50
    assert twice(*rest, calm(2, "a", 100, 90, is_calm=False), calm(9, "a", 120, 90), calm(10, "a", 130, 90)) == 50
    assert twice(calm(0, "a", 90, 80), calm(9, "ab", 120, 90), end) == math.inf, "nobody saw the group at rest"


def test_where_the_broker_counts_rebalances_so_does_the_bound() -> None:
    rest = [calm(0, "a", 90, 80, epoch=3), calm(1, "a", 100, 90, epoch=3)]
    assert twice(*rest, calm(9, "ab", 120, 90, epoch=5), calm(10, "ab", 130, 90, epoch=5)) == 2 * 50
    away = [calm(2, "a", 100, 90, epoch=3, is_calm=False), calm(9, "a", 120, 90, epoch=3)]
    assert twice(*rest, *away, calm(10, "a", 130, 90, epoch=3)) == 0


def test_utilisation_is_what_came_for_the_busiest_by_what_one_can_do() -> None:
    def sight(at: float, end: int) -> TimedObservation:
        owners: dict[Queue, tuple[str, ...]] = {Q: ("a",), OTHER: ("b",)}
        ends: dict[Queue, QueueOffsets] = {Q: offsets(end, end), OTHER: offsets(end // 2, end // 2, OTHER)}
        return TimedObservation(at, at, frozenset("ab"), owners, ends, True, capacity=Between(10, 20))

    watch = Watch.begin(sight(0, 0), None)
    for at in (1, 2, 51, 201):
        watch = watch.after(sight(at, at * 8), Begun(0, 0.5, 0.5))
    # 1600 messages in 200 s are 7.6 to 8.41 messages/s.
    assert watch.observed_change(Between.exactly(0)).utilisation == Between(7.6 / 20, 8.41 / 10)


def test_nothing_is_complete_before_every_queue_was_delivered_by_its_last_owner() -> None:
    watch = Watch.begin(calm(0, "a", 10, 10), None)
    assert watch.observed_change(Between.exactly(0)) == ObservedChange(moved_queues=Between.exactly(0))
    for at, committed, complete in ((1, 10, False), (2, 16, False), (3, 16, False), (4, 21, True)):
        watch = watch.after(calm(at, "ab", 10 + at * 5, committed), Begun(0, 0.5, 0.5))
        assert watch.observed_change(Between.exactly(1)).is_complete is complete
    assert not watch.observed_change(None).is_complete


def test_of_a_queue_with_a_backlog_the_pause_is_over_when_its_new_owner_commits_more() -> None:
    lives: dict[Queue, Life] = {
        Q: lived(0.2, 1.0, True, 4.0, True, 500),
        OTHER: lived(0.2, 1.0, False, 0.0, False, 500),
    }
    seen = watched(sights(lives, 0.5, 0.1)).observed_change(Between.exactly(1))
    assert seen.is_complete
    assert seen.pause_seconds is not None
    assert 4.0 <= seen.pause_seconds.high < 30.0, "from the last look before the change: what was consumed was old"
    assert seen.settle_seconds is not None
    assert seen.settle_seconds.high < 4.0 + 1.0 + 2 * 0.5 + 0.5
    assert (seen.stall_seconds, seen.wait_seconds) == (None, None), "late commits of old messages tell of no moment"


def test_a_clock_set_forward_a_topic_made_anew_or_no_capacity_end_no_executor() -> None:
    ahead = Begun(0, 99.0, 99.0)
    watch = Watch.begin(replace(calm(0, "a", 90, 90), capacity=Between(0, 20)), None)
    for at, owner, end in ((1, "a", 90), (2, "ab", 90), (3, "ab", 90), (4, "ab", 20), (5, "ab", 20), (6, "ab", 20)):
        capacity = Between(0, 20) if at < 5 else Between(10, 20)
        watch = watch.after(replace(calm(at, owner, end, end), capacity=capacity), ahead)
        assert watch.observed_change(Between.exactly(1)).utilisation is None
    seen = watch.observed_change(Between.exactly(1))
    assert seen.settle_seconds is not None
    assert seen.settle_seconds.low == seen.settle_seconds.high
    assert seen.drained_seconds == Between(0, 0)
