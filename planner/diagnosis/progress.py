"""Whether the group gets on: commits that go back or never come, a backlog that lasts, messages that are too old.

A commit of 0 is one like any other: the broker answers 0 to a client that starts on a young queue, and the client
commits it by itself. Where no member ever committed, the offset is ``None``.

``planner.diagnosis.standing`` judges queues that stand still, ``planner.diagnosis.load`` members that get too much.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence, tuning_property
from planner.diagnosis.phrases import rate, some, verb
from planner.diagnosis.standing import has_had_time_to_commit
from planner.history.blocked import POLL_S, STALLS_S
from planner.history.rewinds import StepBack, steps_back
from planner.model.membership import Member
from planner.model.queues import Queue
from planner.model.samples import QueueOffsets
from planner.text.words import counted, duration

WINDOW_S = 300.0
"""How far back the pace of the group is judged."""

LONG_S = 600.0
"""A backlog of ten minutes outlasts what a rebalance or a burst leaves behind."""


def rewinding(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Commits that went back: a reset, or a client that woke up and committed what it knew (rocketmq.md 3.5).

    What a move takes back is none. Commits are judged by the member that made
    them: one member that goes back is a client, all queues that go back are a reset. A share group has no commits.
    """
    if evidence.is_share:
        return
    steps = [
        step
        for queue, intervals in sorted(evidence.intervals.items(), key=lambda item: str(item[0]))
        if not queue.is_retry
        for step in steps_back(queue, intervals)
    ]
    if not steps:
        return
    queues = sorted({step.queue for step in steps}, key=str)
    total = sum(step.messages for step in steps)
    members = sorted({member for step in steps for member in step.members})
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Commits went back on {counted(len(queues), evidence.queue_noun)}",
        evidence=tuple(_words_of_steps(steps, member) for member in (*members, *([None] if _nobodys(steps) else []))),
        consequence=f"{counted(total, 'message')} {verb(total, 'comes', 'come')} again: consumers that are not "
        "idempotent do their work twice",
        advice=_after_steps_back(evidence, queues, members),
        about=(*map(str, queues), *members),
    )


def _nobodys(steps: Sequence[StepBack]) -> list[StepBack]:
    return [step for step in steps if not step.members]


def _words_of_steps(steps: Sequence[StepBack], member: str | None) -> str:
    """Return what went back under one member, or with nobody as the owner."""
    own = [step for step in steps if member in step.members] if member is not None else _nobodys(steps)
    by_queue: dict[Queue, int] = {}
    for step in own:
        by_queue[step.queue] = by_queue.get(step.queue, 0) + step.messages
    shown = some(f"{queue} by {counted(messages, 'message')}" for queue, messages in by_queue.items())
    return f"{member or 'no owner known'}: {shown}"


def _after_steps_back(evidence: GroupEvidence, queues: Sequence[Queue], members: Sequence[str]) -> str:
    committed = [
        queue
        for queue in evidence.queues
        if not queue.is_retry and queue in evidence.offsets and evidence.offsets[queue].consumer_offset is not None
    ]
    if len(queues) > 1 and set(committed) <= set(queues):
        return (
            f"every {evidence.queue_noun} with commits went back: offsets were reset; if nobody did that on purpose, "
            "ask who may reset them"
        )
    client = f"look at {members[0]}" if len(members) == 1 else "look for a client"
    return (
        f"if nobody reset offsets on purpose, {client}: a client that was frozen and came back commits what it knew "
        "before, and two owners of one queue overwrite each other's commits"
    )


def long_backlog(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A backlog behind which a new message waits ``LONG_S`` or more, at the pace of the watch."""
    if not evidence.members or evidence.is_broadcasting or not evidence.lag or not evidence.watched_s:
        return
    since = evidence.newest.at - timedelta(seconds=WINDOW_S)
    intervals = [
        interval
        for queue in evidence.queues
        for interval in evidence.intervals.get(queue, ())
        if interval.started_at >= since
    ]
    consumed = sum(max(0, interval.consumed or 0) for interval in intervals)
    span_s = (
        evidence.newest.at - min((interval.started_at for interval in intervals), default=evidence.newest.at)
    ).total_seconds()
    pace = consumed / span_s if span_s else 0.0
    if pace <= 0 or evidence.lag / pace < LONG_S:
        return
    arriving = sum(evidence.arrival_rates.values())
    spare = pace - arriving
    yield Symptom(
        severity=Severity.WARNING,
        title=f"A message that comes now waits {duration(evidence.lag / pace)}",
        evidence=(
            f"{counted(evidence.lag, 'message')} behind, {rate(pace)} consumed, {rate(arriving)} come in",
            f"at this pace gone in {duration(evidence.lag / spare)}" if spare > 0 else "at this pace never gone",
        ),
        consequence=f"{counted(evidence.lag, 'message')} wait, the newest for {duration(evidence.lag / pace)}",
        advice="planner plan says how many consumers drain it in time; one queue alone drains at one consumer's pace",
        about=tuple(
            str(queue) for queue in evidence.queues if queue in evidence.offsets and evidence.offsets[queue].lag
        ),
    )


def never_commits(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that consume and commit nothing: after a restart everything comes again, or is skipped.

    No commit on any queue with messages. A client commits the 0 that it began at by itself, so commits of 0 count where
    the members consume by their own figures, or do not commit by themselves; else ``stalled`` speaks of these queues.
    Members must have had time to commit. Those of share groups commit nothing by design.
    """
    if not evidence.members or evidence.is_broadcasting or evidence.is_share:
        return
    with_messages = [
        entry for queue, entry in evidence.offsets.items() if queue in set(evidence.queues) and entry.broker_offset
    ]
    bare = [entry for entry in with_messages if _is_bare(entry, _may_consume_without_commits(evidence))]
    if not bare or len(bare) < len(with_messages):
        return
    owners = sorted({owner for entry in bare for owner in evidence.owners.get(entry.queue, ())})
    if any(not has_had_time_to_commit(evidence, owner) for owner in owners):
        yield Gap(
            f"nothing is committed yet; a {evidence.system.title} consumer may work on its first batch for "
            f"{duration(POLL_S)}: --watch {POLL_S + STALLS_S:.0f}"
            if evidence.system.commits_batches
            else "members have just started: they commit every 5 s, and on the first pull after that"
        )
        return
    yield _no_commit_symptom(evidence, bare, owners)


def _is_bare(entry: QueueOffsets, zero_counts: bool) -> bool:
    """Return whether a queue's messages are uncommitted, all of them."""
    is_none = entry.consumer_offset is None or (zero_counts and entry.consumer_offset == 0)
    return is_none and entry.broker_offset != entry.first_offset


def _may_consume_without_commits(evidence: GroupEvidence) -> bool:
    """Return whether the members may consume although their commits stay at 0."""
    return bool(_delivery_rate(evidence)) or any(_commits_by_hand(member) for member in evidence.rocketmq_members)


def _commits_by_hand(member: Member) -> bool:
    """Return whether only the application's own call commits: a pull client without ``autoCommit``."""
    pulls = tuning_property(member, "PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY"
    return pulls and tuning_property(member, "autoCommit") != "true"


def _no_commit_symptom(evidence: GroupEvidence, bare: Sequence[QueueOffsets], owners: Sequence[str]) -> Symptom:
    waiting = sum(entry.broker_offset - (entry.first_offset or 0) for entry in bare)
    none = [entry.queue for entry in bare if entry.consumer_offset is None]
    at_0 = [entry.queue for entry in bare if entry.consumer_offset is not None]
    busy = _delivery_rate(evidence)
    by_hand = any(_commits_by_hand(member) for member in evidence.rocketmq_members)
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


def _delivery_rate(evidence: GroupEvidence) -> float:
    return sum(f.ok_per_s for member in evidence.rocketmq_members if member.tuning for f in member.tuning.figures)


def too_old(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Messages that wait longer than the policy allows, by the store time of the newest consumed one."""
    bound = evidence.oldest_message_s
    if bound is None or not evidence.members:
        return
    now = evidence.newest.at.timestamp()
    ages = {
        queue: now - entry.last_timestamp_ms / 1000
        for queue, entry in evidence.offsets.items()
        if queue in set(evidence.queues) and entry.lag and entry.last_timestamp_ms
    }
    late = {queue: age for queue, age in ages.items() if age > bound}
    if not late:
        return
    worst = max(late, key=lambda queue: late[queue])
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Messages wait {duration(late[worst])}, the policy allows {duration(bound)}",
        evidence=(f"oldest: {worst}; over the bound: {some(late)}",),
        consequence=f"{counted(len(late), 'queue')} {verb(len(late), 'is', 'are')} late by up to "
        f"{duration(late[worst] - bound)}",
        advice="planner plan says which number of consumers meets the objective",
        about=tuple(map(str, late)),
    )
