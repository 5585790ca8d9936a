"""Whether the group gets on: queues that stand still, go back, fall behind, never commit.

A commit of 0 is one like any other: a client that starts on a young queue is told 0 and commits it by itself. Where
nobody ever committed, the offset is ``None``.

The rules are those of LinkedIn's Burrow (``core/internal/evaluator/caching.go``), on offsets that we read ourselves
instead of commits that it receives: a lag of 0 at any look is good; a commit that does not move while messages wait
is a stall; one that goes back is a rewind; a lag that only grows is a group that falls behind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.phrases import counted, rate, seconds, some, verb
from planner.diagnosis.picture import Picture, tuning_property
from planner.diagnosis.turns import IN_FLIGHT, tuned, turn_s
from planner.model.intervals import QueueInterval
from planner.model.membership import Member
from planner.model.queues import Queue
from planner.model.samples import QueueOffsets

STALLS_S = 10.0
"""Two commit periods of a client (5 s each): a queue that is consumed moves within that."""

SURE_S = 60.0
"""A commit that stands so long while messages wait is no slow batch."""

ONE_PULL = 32
"""``pullBatchSize``."""

TREND_S = 25.0
LOOKS = 4
"""A trend needs so many seconds and looks: commits come in steps of up to 5 s."""

WINDOW_S = 300.0
"""How far back progress is judged: a stall of this morning is over."""

GROWS = 0.1
LEAST_GROWTH = 10
"""A backlog grows when it takes in a tenth of what arrives, and so many messages at least: less is how commits step."""

LONG_S = 600.0
"""A backlog of ten minutes outlasts what a rebalance or a burst leaves behind."""


@dataclass(frozen=True, slots=True)
class _Course:
    """One queue over the watch: lags at each look, how far the commit moved."""

    queue: Queue
    intervals: tuple[QueueInterval, ...]

    @property
    def span_s(self) -> float:
        return (self.intervals[-1].ended_at - self.intervals[0].started_at).total_seconds()

    @property
    def lags(self) -> tuple[int | None, ...]:
        first = self.intervals[0]
        before = None
        if first.consumer_offset is not None and first.consumed is not None:
            before = max(0, (first.broker_offset - first.arrived) - (first.consumer_offset - first.consumed))
        return (before, *(interval.lag for interval in self.intervals))

    @property
    def stands(self) -> bool:
        """Messages wait at every look, and the commit does not move."""
        return all(one.consumed == 0 for one in self.intervals) and all(
            lag is not None and lag > 0 for lag in self.lags
        )

    @property
    def standing_s(self) -> float:
        """For how long, up to now, the commit has stood while messages waited."""
        since = self.intervals[-1].ended_at
        for one in reversed(self.intervals):
            if one.consumed != 0 or not one.lag:
                break
            since = one.started_at
        return (self.intervals[-1].ended_at - since).total_seconds()


def _courses(picture: Picture) -> list[_Course]:
    since = picture.newest.at - timedelta(seconds=max(WINDOW_S, LOOKS * picture.sample_every_s))
    recent = {
        queue: tuple(one for one in picture.intervals.get(queue, ()) if one.started_at >= since)
        for queue in picture.queues
    }
    return [_Course(queue, of_queue) for queue, of_queue in recent.items() if of_queue]


def stalled(picture: Picture) -> Iterator[Symptom | Gap]:
    """Queues with an owner and waiting messages whose commit does not move.

    A commit of 0 counts once the owners have had time to commit what they consume.
    """
    if not picture.members or picture.is_broadcasting or not _has_backlog(picture):
        return
    if picture.watched_s < STALLS_S:
        yield Gap(
            f"watched for {picture.watched_s:.0f} s, {STALLS_S:.0f} s are needed to tell a stall from a slow commit"
        )
        return
    courses = _courses(picture)
    still = [
        one
        for one in courses
        if picture.owners.get(one.queue)
        and not _never(one)
        and not _begins(picture, one)
        and one.standing_s >= max(STALLS_S, turn_s(picture, one.queue))
    ]
    if not still:
        return
    longest = max(one.standing_s for one in still)
    idle = _say_they_do_nothing(picture, [one.queue for one in still])
    is_all = len(still) == len([one for one in courses if one.lags[-1]])
    waiting = sum(one.lags[-1] or 0 for one in still)
    owners = sorted({owner for one in still for owner in picture.owners.get(one.queue, ())})
    yield Symptom(
        severity=Severity.ERROR if longest >= SURE_S or idle else Severity.WARNING,
        title="The group stands still: no queue with messages is consumed"
        if is_all
        else f"{counted(len(still), 'queue')} {verb(len(still), 'stands', 'stand')} still while messages wait",
        evidence=(
            f"no commit for {seconds(longest)} on {some(one.queue for one in still)}",
            f"owned by {some(owners)}",
            *idle,
        ),
        consequence=f"{counted(waiting, 'message')} {verb(waiting, 'waits', 'wait')}{_growing(picture, still)}",
        advice="look at these members: a listener that blocks, a message that fails again and again (orderly), a "
        "consumer that is paused, or one call that takes minutes; jstack shows where its threads stand",
        about=(*(str(one.queue) for one in still), *owners),
    )


def _never(course: _Course) -> bool:
    return course.intervals[-1].consumer_offset is None


def _begins(picture: Picture, course: _Course) -> bool:
    """Return whether a queue at 0 has an owner that may not have committed yet what it consumed."""
    owners = picture.owners.get(course.queue, ())
    is_young = any(not _is_long_there(picture, owner) for owner in owners)
    return course.intervals[-1].consumer_offset == 0 and is_young


def _has_backlog(picture: Picture) -> bool:
    return any(entry.lag for queue, entry in picture.offsets.items() if not queue.is_retry)


def _say_they_do_nothing(picture: Picture, queues: Sequence[Queue]) -> tuple[str, ...]:
    """Return the owners' own word that they consumed nothing of these topics for a minute; empty when they did."""
    topics = {queue.topic for queue in queues}
    owners = {owner for queue in queues for owner in picture.owners.get(queue, ())}
    told = tuned(picture, owners)
    figures = [
        figure.ok_per_s + figure.failed_per_s
        for member in told
        for figure in (member.tuning.figures if member.tuning else ())
        if figure.topic in topics
    ]
    is_old = picture.youngest_s is not None and picture.youngest_s >= SURE_S
    return (
        ("their own figures: nothing consumed within the last minute",) if told and is_old and not any(figures) else ()
    )


def _growing(picture: Picture, courses: Sequence[_Course]) -> str:
    rates = [picture.arrival_rates[one.queue] for one in courses if one.queue in picture.arrival_rates]
    return f", {rate(sum(rates))} come in" if sum(rates) > 0 else ""


def rewinding(picture: Picture) -> Iterator[Symptom | Gap]:
    """Commits that went back: a reset, or a client that woke up and committed what it knew (rocketmq.md 3.5).

    A move of the queue takes the commit back by what was in flight, ``IN_FLIGHT`` messages at most, a quick one that no
    look saw usually by less than ``ONE_PULL``: these are no rewinds.
    """
    back = {queue: by for queue, of_queue in picture.intervals.items() if (by := _gone_back(of_queue)) > 0}
    if not back:
        return
    total = sum(back.values())
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Commits went back on {counted(len(back), 'queue')}",
        evidence=(some(f"{queue} by {counted(by, 'message')}" for queue, by in sorted(back.items(), key=str)),),
        consequence=f"{counted(total, 'message')} {verb(total, 'comes', 'come')} again",
        advice="if nobody reset offsets on purpose, look for a client that was frozen and came back, "
        "or for two owners of one queue",
        about=tuple(map(str, back)),
    )


def _gone_back(intervals: Sequence[QueueInterval]) -> int:
    """Return by how many messages the commit of a data queue went back, the usual steps left out."""
    total = 0
    owners = intervals[0].owners
    for one in intervals:
        went = -(one.consumed or 0)
        usual = ONE_PULL if one.owners == owners else IN_FLIGHT
        if went > usual and not (one.broker_reset or one.queue.is_retry):
            total += went
        owners = one.owners
    return total


def falling_behind(picture: Picture) -> Iterator[Symptom | Gap]:
    """A lag that grew from look to look over the whole watch: more comes in than goes out."""
    if not picture.members or picture.is_broadcasting or not _has_backlog(picture):
        return
    if picture.watched_s < TREND_S or len(picture.samples) < LOOKS:
        yield Gap(f"watched for {picture.watched_s:.0f} s, a trend needs {TREND_S:.0f} s and {LOOKS} looks: --watch 60")
        return
    growing = [one for one in _courses(picture) if _grows(one) and not _never(one) and not one.stands]
    if not growing:
        return
    grown = sum((one.lags[-1] or 0) - (one.lags[0] or 0) for one in growing)
    span_s = max(one.span_s for one in growing)
    per_s = grown / span_s
    waiting = sum(one.lags[-1] or 0 for one in growing)
    yield Symptom(
        severity=Severity.WARNING,
        title=f"The backlog grows on {counted(len(growing), 'queue')}",
        evidence=(
            f"at every look longer than before: {some(one.queue for one in growing)}",
            f"by {counted(grown, 'message')} within {seconds(span_s)}, to {waiting}",
        ),
        consequence=f"{rate(per_s)} more come in than go out: {per_s * 3600:.0f} messages more in an hour",
        advice="planner plan says which number of consumers keeps up; where one queue alone grows, more cannot help",
        about=tuple(str(one.queue) for one in growing),
    )


def _grows(course: _Course) -> bool:
    lags = [lag for lag in course.lags if lag is not None]
    if len(lags) < LOOKS or 0 in lags:
        return False
    arrived = sum(max(0, one.arrived) for one in course.intervals)
    is_much = lags[-1] - lags[0] >= max(LEAST_GROWTH, GROWS * arrived)
    return is_much and all(later >= earlier for earlier, later in pairwise(lags))


def long_backlog(picture: Picture) -> Iterator[Symptom | Gap]:
    """A backlog behind which a new message waits ``LONG_S`` or more, at the pace of the watch."""
    if not picture.members or picture.is_broadcasting or not picture.lag or not picture.watched_s:
        return
    courses = _courses(picture)
    consumed = sum(max(0, one.consumed or 0) for course in courses for one in course.intervals)
    span_s = max((course.span_s for course in courses), default=0.0)
    pace = consumed / span_s if span_s else 0.0
    if pace <= 0 or picture.lag / pace < LONG_S:
        return
    arriving = sum(picture.arrival_rates.values())
    spare = pace - arriving
    yield Symptom(
        severity=Severity.WARNING,
        title=f"A message that comes now waits {seconds(picture.lag / pace)}",
        evidence=(
            f"{counted(picture.lag, 'message')} behind, {rate(pace)} consumed, {rate(arriving)} come in",
            f"at this pace gone in {seconds(picture.lag / spare)}" if spare > 0 else "at this pace never gone",
        ),
        consequence=f"{counted(picture.lag, 'message')} wait, the newest for {seconds(picture.lag / pace)}",
        advice="planner plan says how many consumers drain it in time; one queue alone drains at one consumer's pace",
    )


def never_commits(picture: Picture) -> Iterator[Symptom | Gap]:
    """Members that consume and commit nothing: after a restart everything comes again, or is skipped.

    No commit on any queue with messages. A client commits the 0 that it began at by itself, so commits of 0 count where
    the members consume by their own figures, or do not commit by themselves; else ``stalled`` speaks of these queues.
    Members must have had time to commit.
    """
    if not picture.members or picture.is_broadcasting:
        return
    with_messages = [
        entry for queue, entry in picture.offsets.items() if queue in set(picture.queues) and entry.broker_offset
    ]
    bare = [entry for entry in with_messages if _is_bare(entry, _consumes_untold(picture))]
    if not bare or len(bare) < len(with_messages):
        return
    owners = sorted({owner for entry in bare for owner in picture.owners.get(entry.queue, ())})
    if any(not _is_long_there(picture, owner) for owner in owners):
        yield Gap("members have just started: they commit every 5 s, and on the first pull after that")
        return
    yield _uncommitted(picture, bare, owners)


def _is_bare(entry: QueueOffsets, zero_counts: bool) -> bool:
    """Return whether a queue's messages are uncommitted, all of them."""
    is_none = entry.consumer_offset is None or (zero_counts and entry.consumer_offset == 0)
    return is_none and entry.broker_offset != entry.first_offset


def _consumes_untold(picture: Picture) -> bool:
    """Return whether the members may consume although their commits stay at 0."""
    return bool(_delivered(picture)) or any(_commits_by_hand(member) for member in picture.rocketmq_members)


def _commits_by_hand(member: Member) -> bool:
    """Return whether only the application's own call commits: a pull client without ``autoCommit``."""
    pulls = tuning_property(member, "PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY"
    return pulls and tuning_property(member, "autoCommit") != "true"


def _uncommitted(picture: Picture, bare: Sequence[QueueOffsets], owners: Sequence[str]) -> Symptom:
    waiting = sum(entry.broker_offset - (entry.first_offset or 0) for entry in bare)
    none = [entry.queue for entry in bare if entry.consumer_offset is None]
    at_0 = [entry.queue for entry in bare if entry.consumer_offset is not None]
    busy = _delivered(picture)
    by_hand = any(_commits_by_hand(member) for member in picture.rocketmq_members)
    return Symptom(
        severity=Severity.ERROR,
        title="The group never commits" if none else "The group commits nothing beyond offset 0",
        evidence=(
            *([f"no commit on {counted(len(none), 'queue')} with messages: {some(none)}"] if none else []),
            *(
                [f"committed is 0, where clients begin, on {counted(len(at_0), 'queue')} with messages: {some(at_0)}"]
                if at_0
                else []
            ),
            *([f"yet its members consume {rate(busy)} by their own figures"] if busy else []),
            *(["its members do not commit by themselves"] if at_0 and by_hand else []),
        ),
        consequence=f"after the next restart or rebalance up to {counted(waiting, 'message')} "
        f"{verb(waiting, 'comes', 'come')} again{', or are skipped where consumption starts at the end' * bool(none)}",
        advice="commit: leave auto-commit on, call commit after processing, and see whether the listener ever returns"
        if none or by_hand
        else "see whether the listener ever returns: what is consumed is committed up to the oldest call that runs",
        about=(*(str(entry.queue) for entry in bare), *owners),
    )


def _is_long_there(picture: Picture, client: str) -> bool:
    member = next((one for one in picture.members if one.identity == client), None)
    started = member.tuning.started_at_ms if member and member.tuning else None
    if started is not None:
        return picture.newest.at.timestamp() - started / 1000 >= 2 * STALLS_S
    return picture.watched_s >= STALLS_S


def _delivered(picture: Picture) -> float:
    return sum(f.ok_per_s for member in picture.rocketmq_members if member.tuning for f in member.tuning.figures)


def too_old(picture: Picture) -> Iterator[Symptom | Gap]:
    """Messages that wait longer than the policy allows, by the store time of the newest consumed one."""
    bound = picture.oldest_message_s
    if bound is None or not picture.members:
        return
    now = picture.newest.at.timestamp()
    ages = {
        queue: now - entry.last_timestamp_ms / 1000
        for queue, entry in picture.offsets.items()
        if queue in set(picture.queues) and entry.lag and entry.last_timestamp_ms
    }
    late = {queue: age for queue, age in ages.items() if age > bound}
    if not late:
        return
    worst = max(late, key=lambda queue: late[queue])
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Messages wait {seconds(late[worst])}, the policy allows {seconds(bound)}",
        evidence=(f"oldest: {worst}; over the bound: {some(late)}",),
        consequence=f"{counted(len(late), 'queue')} {verb(len(late), 'is', 'are')} late by up to "
        f"{seconds(late[worst] - bound)}",
        advice="planner plan says which number of consumers meets the objective",
        about=tuple(map(str, late)),
    )
