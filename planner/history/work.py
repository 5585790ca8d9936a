"""What each member works on: its queues over the watch, its commits, and whether it comes around to each queue.

A client serves its queues in turn. A default Kafka consumer works off all that it has fetched of one partition, up to
``max.poll.records`` (500) at a poll, and commits at the next one (``KafkaConsumer``, 4.1); only then the next
partition is due. So a queue may stand for minutes while its member is busy, and only *rounds* distinguish a slow cycle
from a block: a queue that the member served twice while another one stood has been preferred to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from planner.model.intervals import QueueInterval
from planner.model.queues import Queue

ROUNDS = 2
"""A queue is passed over once each other queue that moved was served so often while it stood.

After one round the client may still be within the cycle in which the queue began to stand."""

FEWEST_COMMITS = 3
"""Two whole cycles of a member show whether it is slow: after one of 150 s its pace may still be a single lump's."""


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """One queue over the watch, at least one interval."""

    queue: Queue
    intervals: tuple[QueueInterval, ...]

    @property
    def span_s(self) -> float:
        """Seconds from the first sample to the last."""
        return (self.intervals[-1].ended_at - self.intervals[0].started_at).total_seconds()

    @property
    def lags(self) -> tuple[int | None, ...]:
        """Messages behind at each sample, ``None`` where unknown."""
        return (_lag_before(self.intervals[0]), *(interval.lag for interval in self.intervals))

    @property
    def standing_since(self) -> datetime:
        """From when on, up to the last sample, messages waited and no commit moved; that sample where it moves."""
        since = self.intervals[-1].ended_at
        for interval in reversed(self.intervals):
            if interval.consumed != 0 or not interval.lag:
                break
            had_messages = _lag_before(interval)
            since = interval.started_at if had_messages else interval.ended_at
            if not had_messages:
                break
        return since

    @property
    def standing_s(self) -> float:
        """For how many seconds it has stood."""
        return (self.intervals[-1].ended_at - self.standing_since).total_seconds()

    @property
    def longest_wait_s(self) -> float:
        """For how many seconds it stood at most before it moved again; 0 where it never moved twice."""
        moved = [interval.ended_at for interval in self.intervals if (interval.consumed or 0) > 0]
        return max(((later - earlier).total_seconds() for earlier, later in pairwise(moved)), default=0.0)

    @property
    def never_committed(self) -> bool:
        """True when the group has no offset on the queue."""
        return self.intervals[-1].consumer_offset is None


def _lag_before(interval: QueueInterval) -> int | None:
    if interval.consumer_offset is None or interval.consumed is None:
        return None
    return max(0, (interval.broker_offset - interval.arrived) - (interval.consumer_offset - interval.consumed))


@dataclass(frozen=True, slots=True)
class MemberWork:
    """One member's queues over the watch; ``members`` are several where they share these queues.

    POP consumers share all queues, and those that do not report what they own may have any: then the whole group is
    judged like one member.
    """

    members: tuple[str, ...]
    queues: tuple[QueueProgress, ...]

    @property
    def commits(self) -> tuple[datetime, ...]:
        """The samples at which it had committed more than before, oldest first."""
        times = {
            interval.ended_at for queue in self.queues for interval in queue.intervals if (interval.consumed or 0) > 0
        }
        return tuple(sorted(times))

    @property
    def longest_gap_s(self) -> float | None:
        """Seconds between two commits at most, as far as samples show; ``None`` with fewer than three of them."""
        commits = self.commits
        if len(commits) < 3:
            return None
        return max((later - earlier).total_seconds() for earlier, later in pairwise(commits))

    @property
    def longest_cycle_s(self) -> float:
        """For how many seconds one of its queues stood at most before the member came to it."""
        return max(queue.longest_wait_s for queue in self.queues)

    @property
    def pace(self) -> float:
        """Messages per second that it committed over the watch: no more than it can do."""
        intervals = [interval for queue in self.queues for interval in queue.intervals]
        consumed = sum(max(0, interval.consumed or 0) for interval in intervals)
        return consumed / max(queue.span_s for queue in self.queues)

    def waited_at(self, since: datetime) -> int:
        """Return how many messages waited for it at that sample, if it has committed none of them since."""
        later = [interval for queue in self.queues for interval in queue.intervals if interval.ended_at > since]
        return sum(queue.lags[-1] or 0 for queue in self.queues) - sum(max(0, interval.arrived) for interval in later)

    def has_moved_since(self, since: datetime) -> bool:
        """Return whether it committed anything after that sample."""
        return any(at > since for at in self.commits)

    def passes_over(self, queue: QueueProgress) -> bool:
        """Return whether it served each queue that moved at least ``ROUNDS`` times while ``queue`` stood."""
        since = queue.standing_since
        moving = [other for other in self.queues if _moves_after(other, since)]
        return bool(moving) and all(self._rounds(other, since) >= ROUNDS for other in moving)

    def _rounds(self, queue: QueueProgress, since: datetime) -> int:
        """Return how often the member has certainly come back to a queue since then."""
        return max(self._revisits(queue.queue, since), _exhaustions(queue, since))

    def _revisits(self, queue: Queue, since: datetime) -> int:
        """Return how often the queue moved after others had moved without it: the member came back to it."""
        moved: dict[datetime, set[Queue]] = {}
        for progress in self.queues:
            for interval in progress.intervals:
                if interval.ended_at > since and (interval.consumed or 0) > 0:
                    moved.setdefault(interval.ended_at, set()).add(progress.queue)
        served = [queue in moved[at] for at in sorted(moved)]
        return sum(now and not before for before, now in pairwise([False, *served]))


def members_between_commits(works: Sequence[MemberWork]) -> tuple[str, ...]:
    """Return the members with messages waiting that committed less than ``FEWEST_COMMITS`` times, unlike another one.

    None where all are as slow as that: then none is slower than the others.
    """
    if all(len(work.commits) < FEWEST_COMMITS for work in works):
        return ()
    return tuple(
        member
        for work in works
        if len(work.commits) < FEWEST_COMMITS and any(queue.lags[-1] for queue in work.queues)
        for member in work.members
    )


def _moves_after(queue: QueueProgress, since: datetime) -> bool:
    return any(interval.ended_at > since and (interval.consumed or 0) > 0 for interval in queue.intervals)


def _exhaustions(queue: QueueProgress, since: datetime) -> int:
    """Return how often everything was consumed that the queue held when the member can have fetched last.

    A client never has more of a queue in hand than was in it at that time, so it has fetched anew each time.
    """
    count, fetched, done = 0, None, -1
    for interval in queue.intervals:
        if fetched is None and interval.ended_at > since:
            fetched = interval.broker_offset - interval.arrived
        if fetched is None or interval.consumer_offset is None or not interval.consumed:
            continue
        if interval.consumer_offset >= fetched and interval.consumer_offset > done:
            count, fetched, done = count + 1, interval.broker_offset, interval.consumer_offset
    return count


def member_work(
    intervals: Mapping[Queue, Sequence[QueueInterval]],
    owners: Mapping[Queue, tuple[str, ...]],
    queues: Iterable[Queue],
    shared_by: Sequence[str] = (),
) -> tuple[MemberWork, ...]:
    """Return what each member works on now, by name; queues without an owner or an interval are left out.

    ``shared_by`` names the members where all of them serve all queues, or where it is not known which member serves
    which.
    """
    by_members: dict[tuple[str, ...], list[QueueProgress]] = {}
    for queue in queues:
        members = tuple(shared_by) or owners.get(queue, ())
        if members and intervals.get(queue):
            by_members.setdefault(members, []).append(QueueProgress(queue, tuple(intervals[queue])))
    return tuple(MemberWork(members, tuple(by_members[members])) for members in sorted(by_members))
