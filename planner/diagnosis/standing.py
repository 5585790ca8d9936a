"""Queues that stand still while messages wait, judged with the member that serves them.

A queue whose member is busy with its other queues is not blocked: it waits until the member comes to it
(``planner.history.work``). Blocked is a queue that its member passes over, and a member that commits nothing for longer
than its batches take.
Where a watch is too short to distinguish a slow cycle from a block, the answer is a gap that names the watch to take.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from planner.diagnosis.cycles import cycle_s, members_with_tuning
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence, tuning_property
from planner.diagnosis.phrases import rate, some, verb
from planner.history.blocked import POLL_S, STALLS_S, SURE_S, BlockReason, Verdict, peer_pace, peers_of, verdict_on
from planner.history.work import MemberWork, QueueProgress
from planner.model.queues import Queue
from planner.text.words import counted, duration

MOST_S = 3_600.0
"""No longer watch is advised."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """A queue, its member's work, and what the watch shows of it; ``because`` is evidence for a block."""

    queue: QueueProgress
    work: MemberWork
    verdict: Verdict
    because: str = ""

    @property
    def is_blocked(self) -> bool:
        return self.verdict in (Verdict.SUSPECT, Verdict.BLOCKED)


def stalled(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Queues with an owner and waiting messages that their member passes over, and members that commit nothing at all.

    A commit of 0 counts once the owners have had time to commit what they consume.
    """
    if not evidence.members or evidence.is_broadcasting or not has_backlog(evidence):
        return
    if evidence.watched_s < STALLS_S:
        yield Gap(
            f"watched for {duration(evidence.watched_s)}, {duration(STALLS_S)} are needed to distinguish a stall from "
            "a slow commit"
        )
        return
    judged = _judge(evidence)
    blocked = [judgement for judgement in judged if judgement.is_blocked]
    undecided = [judgement for judgement in judged if judgement.verdict is Verdict.UNDECIDED]
    if blocked:
        yield _block_symptom(evidence, blocked)
    if undecided:
        yield _undecided_gap(evidence, undecided)


def blocked_queues(evidence: GroupEvidence) -> frozenset[Queue]:
    """Return the queues that ``stalled`` finds blocked: what comes into them is no work for anybody now."""
    if not evidence.members or evidence.watched_s < STALLS_S:
        return frozenset()
    return frozenset(judgement.queue.queue for judgement in _judge(evidence) if judgement.is_blocked)


def has_backlog(evidence: GroupEvidence) -> bool:
    """Return whether more waits on a data queue than comes in while a client that keeps up commits twice."""
    return any(
        entry.lag and entry.lag > STALLS_S * evidence.arrival_rates.get(queue, 0.0)
        for queue, entry in evidence.offsets.items()
        if not queue.is_retry
    )


def has_had_time_to_commit(evidence: GroupEvidence, client: str) -> bool:
    """Return whether a member has surely been there for long enough to have committed what it consumed.

    A Kafka consumer commits a batch once it is done with it, and only it knows since when it works on that.
    """
    if evidence.system.commits_batches:
        return evidence.watched_s >= POLL_S
    member = next((each for each in evidence.members if each.identity == client), None)
    started = member.tuning.started_at_ms if member and member.tuning else None
    if started is not None:
        return evidence.newest.at.timestamp() - started / 1000 >= 2 * STALLS_S
    return evidence.watched_s >= STALLS_S


def _judge(evidence: GroupEvidence) -> list[_Judgement]:
    return [
        _judge_queue(evidence, work, queue)
        for work in evidence.work
        for queue in work.queues
        if not (queue.never_committed or _begins(evidence, queue, work)) and queue.standing_s >= STALLS_S
    ]


def _begins(evidence: GroupEvidence, queue: QueueProgress, work: MemberWork) -> bool:
    """Return whether a queue at 0 has an owner that may not have committed yet what it consumed."""
    is_young = any(not has_had_time_to_commit(evidence, member) for member in work.members)
    return queue.intervals[-1].consumer_offset == 0 and is_young


def _judge_queue(evidence: GroupEvidence, work: MemberWork, queue: QueueProgress) -> _Judgement:
    if _reports_pool(evidence, work):
        verdict = _by_pool(evidence, queue)
        return _Judgement(queue, work, verdict)
    peers = peers_of(work, evidence.work)
    verdict, reason = verdict_on(queue, work, peers)
    return _Judgement(queue, work, verdict, _because(evidence, reason, queue, work, peers) if reason else "")


def _reports_pool(evidence: GroupEvidence, work: MemberWork) -> bool:
    """Return whether the figures of the consume pool say how long a queue may wait: of one push client alone."""
    members = members_with_tuning(evidence, work.members)
    pushes = all(tuning_property(member, "PROP_CONSUME_TYPE") != "CONSUME_ACTIVELY" for member in members)
    return bool(members) and pushes and not evidence.is_pop


def _by_pool(evidence: GroupEvidence, queue: QueueProgress) -> Verdict:
    if queue.standing_s < cycle_s(evidence, queue.queue):
        return Verdict.MOVES
    is_sure = queue.standing_s >= SURE_S or _idle(evidence, [queue.queue])
    return Verdict.BLOCKED if is_sure else Verdict.SUSPECT


def _because(
    evidence: GroupEvidence, reason: BlockReason, queue: QueueProgress, work: MemberWork, peers: Sequence[float]
) -> str:
    """Return the evidence for a block in a clause; none where its length says enough."""
    if reason is BlockReason.PASSED_OVER:
        return f"meanwhile its member served its other {evidence.queue_noun}s twice or more often"
    if reason is BlockReason.PAST_GAPS:
        return f"its member committed at least every {duration(work.longest_gap_s or 0.0)} before"
    if reason is BlockReason.BEHIND_PEERS:
        in_hand = work.waited_at(queue.standing_since)
        pace = rate(peer_pace(peers))
        return f"its member commits nothing; its peers do {pace} (median), and {in_hand} waited for it then"
    return ""


def _block_symptom(evidence: GroupEvidence, blocked: Sequence[_Judgement]) -> Symptom:
    queues = [judgement.queue for judgement in blocked]
    count = counted(len(queues), evidence.queue_noun)
    longest = max(queue.standing_s for queue in queues)
    idle = _idle(evidence, [queue.queue for queue in queues])
    with_messages = [queue for work in evidence.work for queue in work.queues if queue.lags[-1]]
    waiting = sum(queue.lags[-1] or 0 for queue in queues)
    members = sorted({member for judgement in blocked for member in judgement.work.members})
    is_sure = any(judgement.verdict is Verdict.BLOCKED for judgement in blocked)
    return Symptom(
        severity=Severity.ERROR if is_sure else Severity.WARNING,
        title=f"The group stands still: no {evidence.queue_noun} with messages is consumed"
        if len(queues) == len(with_messages)
        else f"{count} {verb(len(queues), 'stands', 'stand')} still while messages wait",
        evidence=(
            f"no commit for {duration(longest)} on {some(queue.queue for queue in queues)}",
            f"owned by {some(members)}",
            *dict.fromkeys(judgement.because for judgement in blocked if judgement.because),
            *idle,
        ),
        consequence=f"{counted(waiting, 'message')} {verb(waiting, 'waits', 'wait')}{_growing(evidence, queues)}",
        advice="look at these members: a listener that blocks, a message that fails again and again (orderly), a "
        "consumer that is paused, or one call that takes minutes; jstack shows where its threads stand",
        about=(*(str(queue.queue) for queue in queues), *members),
    )


def _undecided_gap(evidence: GroupEvidence, undecided: Sequence[_Judgement]) -> Gap:
    queues = [judgement.queue for judgement in undecided]
    count = counted(len(queues), evidence.queue_noun)
    longest = max(queue.standing_s for queue in queues)
    watch_s = min(MOST_S, max(_needed_s(judgement) for judgement in undecided))
    return Gap(
        f"{count} {verb(len(queues), 'has', 'have')} stood for up to {duration(longest)} "
        f"({some(queue.queue for queue in queues)}); whether a slow cycle of the member or a block, "
        f"a longer watch shows: --watch {watch_s:.0f}"
    )


def _needed_s(judged: _Judgement) -> float:
    """Return how long a watch shows two whole cycles of the member, or a batch that is longer than any."""
    work = judged.work
    lag = sum(queue.lags[-1] or 0 for queue in work.queues)
    cycles_s = 2 * lag / work.pace if work.has_moved_since(judged.queue.standing_since) else 0.0
    return ceil(max(POLL_S + STALLS_S, cycles_s) / 10) * 10


def _idle(evidence: GroupEvidence, queues: Iterable[Queue]) -> tuple[str, ...]:
    """Return the owners' own figures that they consumed nothing of these topics for a minute; empty when they did."""
    names = set(queues)
    topics = {queue.topic for queue in names}
    owners = {owner for queue in names for owner in evidence.owners.get(queue, ())}
    members = [
        member
        for member in members_with_tuning(evidence, owners)
        if tuning_property(member, "PROP_CONSUME_TYPE") != "CONSUME_ACTIVELY"  # pull clients report no figures at all
    ]
    figures = [
        figure.ok_per_s + figure.failed_per_s
        for member in members
        for figure in (member.tuning.figures if member.tuning else ())
        if figure.topic in topics
    ]
    is_old = evidence.youngest_s is not None and evidence.youngest_s >= SURE_S
    reported = members and is_old and not any(figures)
    return ("their own figures: nothing consumed within the last minute",) if reported else ()


def _growing(evidence: GroupEvidence, queues: Sequence[QueueProgress]) -> str:
    rates = [evidence.arrival_rates[queue.queue] for queue in queues if queue.queue in evidence.arrival_rates]
    return f", {rate(sum(rates))} come in" if sum(rates) > 0 else ""
