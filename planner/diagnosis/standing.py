"""Queues that stand still while messages wait, judged with the member that serves them.

A queue whose member is busy with its other queues is not blocked: it waits for its turn (``planner.history.work``).
Blocked is a queue that its member passes over, and a member that commits nothing for longer than its batches take.
Where a watch is too short to distinguish a slow cycle from a block, the answer is a gap that names the watch to take.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.phrases import rate, seconds, some, verb
from planner.diagnosis.picture import Picture, tuning_property
from planner.diagnosis.turns import tuned, turn_s
from planner.history.blocked import POLL_S, STALLS_S, SURE_S, Ground, Verdict, peer_pace, peers_of, verdict_on
from planner.history.work import MemberWork, QueueProgress
from planner.model.queues import Queue
from planner.words import counted

MOST_S = 3_600.0
"""No longer watch is advised."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A queue, its member's work, and what the watch shows of it; ``because`` is evidence for a block."""

    queue: QueueProgress
    work: MemberWork
    verdict: Verdict
    because: str = ""

    @property
    def is_blocked(self) -> bool:
        return self.verdict in (Verdict.SUSPECT, Verdict.BLOCKED)


def stalled(picture: Picture) -> Iterator[Symptom | Gap]:
    """Queues with an owner and waiting messages that their member passes over, and members that commit nothing at all.

    A commit of 0 counts once the owners have had time to commit what they consume.
    """
    if not picture.members or picture.is_broadcasting or not has_backlog(picture):
        return
    if picture.watched_s < STALLS_S:
        yield Gap(
            f"watched for {picture.watched_s:.0f} s, {STALLS_S:.0f} s are needed to tell a stall from a slow commit"
        )
        return
    judged = _judge(picture)
    blocked = [one for one in judged if one.is_blocked]
    undecided = [one for one in judged if one.verdict is Verdict.UNDECIDED]
    if blocked:
        yield _blocked(picture, blocked)
    if undecided:
        yield _undecided(picture, undecided)


def blocked_queues(picture: Picture) -> frozenset[Queue]:
    """Return the queues that ``stalled`` finds blocked: what comes into them is no work for anybody now."""
    if not picture.members or picture.watched_s < STALLS_S:
        return frozenset()
    return frozenset(one.queue.queue for one in _judge(picture) if one.is_blocked)


def has_backlog(picture: Picture) -> bool:
    """Return whether more waits on a data queue than comes in while a client that keeps up commits twice."""
    return any(
        entry.lag and entry.lag > STALLS_S * picture.arrival_rates.get(queue, 0.0)
        for queue, entry in picture.offsets.items()
        if not queue.is_retry
    )


def is_long_there(picture: Picture, client: str) -> bool:
    """Return whether a member has surely been there for long enough to have committed what it consumed.

    A Kafka consumer commits a batch once it is done with it, and nobody else knows since when it works on that.
    """
    if picture.is_kafka:
        return picture.watched_s >= POLL_S
    member = next((one for one in picture.members if one.identity == client), None)
    started = member.tuning.started_at_ms if member and member.tuning else None
    if started is not None:
        return picture.newest.at.timestamp() - started / 1000 >= 2 * STALLS_S
    return picture.watched_s >= STALLS_S


def _judge(picture: Picture) -> list[_Judged]:
    return [
        _judged(picture, work, queue)
        for work in picture.work
        for queue in work.queues
        if not (queue.never_committed or _begins(picture, queue, work)) and queue.standing_s >= STALLS_S
    ]


def _begins(picture: Picture, queue: QueueProgress, work: MemberWork) -> bool:
    """Return whether a queue at 0 has an owner that may not have committed yet what it consumed."""
    is_young = any(not is_long_there(picture, member) for member in work.members)
    return queue.intervals[-1].consumer_offset == 0 and is_young


def _judged(picture: Picture, work: MemberWork, queue: QueueProgress) -> _Judged:
    if _reports_pool(picture, work):
        verdict = _by_pool(picture, queue)
        return _Judged(queue, work, verdict)
    peers = peers_of(work, picture.work)
    verdict, ground = verdict_on(queue, work, peers)
    return _Judged(queue, work, verdict, _because(picture, ground, queue, work, peers) if ground else "")


def _reports_pool(picture: Picture, work: MemberWork) -> bool:
    """Return whether the figures of the consume pool say how long a queue may wait: of one push client alone."""
    members = tuned(picture, work.members)
    pushes = all(tuning_property(member, "PROP_CONSUME_TYPE") != "CONSUME_ACTIVELY" for member in members)
    return bool(members) and pushes and not picture.is_pop


def _by_pool(picture: Picture, queue: QueueProgress) -> Verdict:
    if queue.standing_s < turn_s(picture, queue.queue):
        return Verdict.MOVES
    is_sure = queue.standing_s >= SURE_S or _idle(picture, [queue.queue])
    return Verdict.BLOCKED if is_sure else Verdict.SUSPECT


def _because(picture: Picture, ground: Ground, queue: QueueProgress, work: MemberWork, peers: Sequence[float]) -> str:
    """Return the evidence for a block in a clause; none where its length says enough."""
    if ground is Ground.PASSED_OVER:
        return f"meanwhile its member served its other {picture.queue_noun}s twice or more often"
    if ground is Ground.PAST_GAPS:
        return f"its member committed at least every {seconds(work.longest_gap_s or 0.0)} before"
    if ground is Ground.BEHIND_PEERS:
        in_hand = work.waited_at(queue.standing_since)
        pace = rate(peer_pace(peers))
        return f"its member commits nothing; its peers do {pace} (median), and {in_hand} waited for it then"
    return ""


def _blocked(picture: Picture, blocked: Sequence[_Judged]) -> Symptom:
    queues = [one.queue for one in blocked]
    count = counted(len(queues), picture.queue_noun)
    longest = max(queue.standing_s for queue in queues)
    idle = _idle(picture, [queue.queue for queue in queues])
    with_messages = [queue for work in picture.work for queue in work.queues if queue.lags[-1]]
    waiting = sum(queue.lags[-1] or 0 for queue in queues)
    members = sorted({member for one in blocked for member in one.work.members})
    is_sure = any(one.verdict is Verdict.BLOCKED for one in blocked)
    return Symptom(
        severity=Severity.ERROR if is_sure else Severity.WARNING,
        title=f"The group stands still: no {picture.queue_noun} with messages is consumed"
        if len(queues) == len(with_messages)
        else f"{count} {verb(len(queues), 'stands', 'stand')} still while messages wait",
        evidence=(
            f"no commit for {seconds(longest)} on {some(queue.queue for queue in queues)}",
            f"owned by {some(members)}",
            *dict.fromkeys(one.because for one in blocked if one.because),
            *idle,
        ),
        consequence=f"{counted(waiting, 'message')} {verb(waiting, 'waits', 'wait')}{_growing(picture, queues)}",
        advice="look at these members: a listener that blocks, a message that fails again and again (orderly), a "
        "consumer that is paused, or one call that takes minutes; jstack shows where its threads stand",
        about=(*(str(queue.queue) for queue in queues), *members),
    )


def _undecided(picture: Picture, undecided: Sequence[_Judged]) -> Gap:
    queues = [one.queue for one in undecided]
    count = counted(len(queues), picture.queue_noun)
    longest = max(queue.standing_s for queue in queues)
    watch_s = min(MOST_S, max(_needed_s(one) for one in undecided))
    return Gap(
        f"{count} {verb(len(queues), 'has', 'have')} stood for up to {seconds(longest)} "
        f"({some(queue.queue for queue in queues)}); whether a slow cycle of the member or a block, "
        f"a longer watch shows: --watch {watch_s:.0f}"
    )


def _needed_s(judged: _Judged) -> float:
    """Return how long a watch shows two whole cycles of the member, or a batch that is longer than any."""
    work = judged.work
    lag = sum(queue.lags[-1] or 0 for queue in work.queues)
    cycles_s = 2 * lag / work.pace if work.has_moved_since(judged.queue.standing_since) else 0.0
    return ceil(max(POLL_S + STALLS_S, cycles_s) / 10) * 10


def _idle(picture: Picture, queues: Iterable[Queue]) -> tuple[str, ...]:
    """Return the owners' own figures that they consumed nothing of these topics for a minute; empty when they did."""
    names = set(queues)
    topics = {queue.topic for queue in names}
    owners = {owner for queue in names for owner in picture.owners.get(queue, ())}
    members = [
        member
        for member in tuned(picture, owners)
        if tuning_property(member, "PROP_CONSUME_TYPE") != "CONSUME_ACTIVELY"  # pull clients report no figures at all
    ]
    figures = [
        figure.ok_per_s + figure.failed_per_s
        for member in members
        for figure in (member.tuning.figures if member.tuning else ())
        if figure.topic in topics
    ]
    is_old = picture.youngest_s is not None and picture.youngest_s >= SURE_S
    reported = members and is_old and not any(figures)
    return ("their own figures: nothing consumed within the last minute",) if reported else ()


def _growing(picture: Picture, queues: Sequence[QueueProgress]) -> str:
    rates = [picture.arrival_rates[queue.queue] for queue in queues if queue.queue in picture.arrival_rates]
    return f", {rate(sum(rates))} come in" if sum(rates) > 0 else ""
