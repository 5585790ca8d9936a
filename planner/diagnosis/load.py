"""Members that get more than they can do, and why: too few of them, a slow one, or a hot queue.

A member is overloaded when it has had work at every commit (``planner.history.busy``) and its backlog does not fall.
Its pace runs from commit to commit over all its queues: a default Kafka consumer commits one partition at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from math import ceil, sqrt
from statistics import median

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import rate, some, verb
from planner.diagnosis.standing import blocked_queues, has_backlog
from planner.diagnosis.threads import threads_instead_of_members
from planner.history.blocked import POLL_S
from planner.history.busy import SPAN_S, ClientSpan, client_spans
from planner.history.work import MemberWork, QueueProgress
from planner.model.queues import Queue
from planner.simulation.second_lever import USED
from planner.text.words import counted, duration, number

WINDOW_S = 300.0
"""How far back load is judged: an overload of this morning is over."""

NEEDED_S = 60.0
"""A watch of so many seconds shows whether the backlog of members grows that commit every 10 s."""

NEVER_FALLS_S = 120.0
"""A backlog that does not measurably fall over so long, while all members work, does not go by itself."""

SLOW_PACE = 2 / 3
"""An overloaded member is slow when it does no more than this share of the median of its peers."""

HOT = 1.5
"""A queue is hot when so many times what usually comes into a queue comes into it."""

DEVIATION = 0.8
"""Two standard deviations of the difference of two commit times, each known to one sampling period, in periods."""


class Cause(Enum):
    """Why a member is overloaded."""

    SLOW_MEMBER = "slow-member"
    HOT_QUEUE = "hot-queue"
    SLOW_QUEUE = "slow-queue"
    TOO_FEW = "too-few-consumers"


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """What comes to one member and what it does, in messages per second, since ``since``: it was at work ever since.

    ``pace`` is what it commits, give or take ``error`` (95 %). ``queues`` are those that are not blocked, since then.
    """

    members: tuple[str, ...]
    queues: tuple[QueueProgress, ...]
    since: datetime
    inflow: float
    pace: float
    error: float

    @property
    def growth(self) -> float:
        """Messages per second by which the backlog grows, negative where it falls."""
        return self.inflow - self.pace

    @property
    def backlog(self) -> int:
        """Messages that wait now."""
        return sum(queue.lags[-1] or 0 for queue in self.queues)

    @property
    def backlog_before(self) -> int:
        """Messages that waited at ``since``."""
        later = [interval for queue in self.queues for interval in queue.intervals]
        return self.backlog - sum(interval.arrived - (interval.consumed or 0) for interval in later)

    def inflow_of(self, queue: QueueProgress) -> float:
        """Return the messages per second that came into one of its queues meanwhile."""
        return _inflow(queue, self.since)


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """The overloaded members with their causes; ``paces`` of all members that were watched for long enough.

    ``unknown`` are members with a backlog that committed too seldom to be judged, ``undecided`` those at work whose
    backlog may grow or fall.
    """

    overloaded: tuple[tuple[MemberLoad, Cause], ...]
    paces: Mapping[tuple[str, ...], float]
    unknown: tuple[MemberWork, ...]
    undecided: tuple[MemberLoad, ...]

    def of(self, cause: Cause) -> list[MemberLoad]:
        """Return the members that are overloaded for this cause."""
        return [load for load, why in self.overloaded if why is cause]


def group_load(evidence: GroupEvidence) -> GroupLoad:
    """Return which members get more than they can do, judged over the time for which they have been at work."""
    blocked = blocked_queues(evidence)
    since = evidence.newest.at - timedelta(seconds=WINDOW_S)
    works = [_without(work, blocked) for work in evidence.work]
    spans = {work.members: _spans(work, since) for work in works}
    loads = [load for work in works if (load := _load(work, spans[work.members])) is not None]
    paces = {members: _pace(of_member) for members, of_member in spans.items() if of_member}
    sure, undecided = _split_by_growth(evidence, [load for load in loads if load.growth > -load.error])
    inflows = [
        rate_in for work in works for queue in work.queues if (rate_in := _inflow(queue, evidence.samples[0].at)) > 0
    ]
    usual = median(inflows) if inflows else 0.0
    return GroupLoad(
        overloaded=tuple((load, _cause(load, paces, usual)) for load in sure),
        paces=paces,
        unknown=tuple(work for work in works if not spans[work.members] and any(q.lags[-1] for q in work.queues)),
        undecided=tuple(undecided),
    )


def _without(work: MemberWork, blocked: frozenset[Queue]) -> MemberWork:
    return replace(work, queues=tuple(queue for queue in work.queues if queue.queue not in blocked))


def _spans(work: MemberWork, since: datetime) -> tuple[ClientSpan, ...]:
    """Return the member's spans of the window; those before it where there is none in it."""
    name = ("+".join(work.members),)
    is_shared = len(work.members) > 1
    intervals = [
        replace(interval, owners=name, moved_from=() if is_shared else interval.moved_from)
        for queue in work.queues
        for interval in queue.intervals
        if is_shared or interval.owners == work.members
    ]
    spans = client_spans(intervals)
    return tuple(span for span in spans if span.started_at >= since) or spans[-1:]


def _load(work: MemberWork, spans: Sequence[ClientSpan]) -> MemberLoad | None:
    """Return the load since the member has been at work without a break, ``None`` where it lacks work at times."""
    busy: list[ClientSpan] = []
    for span in reversed(spans):
        if not span.is_saturated:
            break
        busy.insert(0, span)
    if not busy or not any(queue.lags[-1] for queue in work.queues):
        return None
    since, pace, spent = busy[0].started_at, _pace(busy), sum(span.seconds for span in busy)
    error = DEVIATION * pace * max(span.slack_s for span in busy) / spent
    inflow = sum(_inflow(queue, since) for queue in work.queues)
    queues = tuple(recent for queue in work.queues if (recent := _from(queue, since)).intervals)
    return MemberLoad(work.members, queues, since, inflow, pace, error)


def _from(queue: QueueProgress, since: datetime) -> QueueProgress:
    return replace(queue, intervals=tuple(interval for interval in queue.intervals if interval.started_at >= since))


def _pace(spans: Sequence[ClientSpan]) -> float:
    return sum(span.consumed for span in spans) / sum(span.seconds for span in spans)


def _inflow(queue: QueueProgress, since: datetime) -> float:
    intervals = [interval for interval in queue.intervals if interval.started_at >= since and not interval.broker_reset]
    spent = sum(interval.seconds for interval in intervals)
    return sum(interval.arrived for interval in intervals) / spent if spent else 0.0


def _split_by_growth(evidence: GroupEvidence, loads: Sequence[MemberLoad]) -> tuple[list[MemberLoad], list[MemberLoad]]:
    """Return the members whose backlog surely grows, or never falls; and those of which neither is sure.

    Members together are surer than each alone, as the errors of their commit times even out.
    """
    together = sum(load.growth for load in loads) > sqrt(sum(load.error**2 for load in loads))
    sure = [load for load in loads if together or load.growth > load.error or _never_falls(evidence, load)]
    return sure, [load for load in loads if load not in sure]


def _never_falls(evidence: GroupEvidence, load: MemberLoad) -> bool:
    is_long = (evidence.newest.at - load.since).total_seconds() >= NEVER_FALLS_S
    return is_long and load.growth >= 0 and load.backlog >= load.backlog_before


def _cause(load: MemberLoad, paces: Mapping[tuple[str, ...], float], usual_inflow: float) -> Cause:
    peers = [pace for members, pace in paces.items() if members != load.members]
    if peers and load.pace <= SLOW_PACE * median(peers):
        return Cause.SLOW_MEMBER
    if any(_is_hot(load, queue, usual_inflow) for queue in load.queues):
        return Cause.HOT_QUEUE
    return Cause.SLOW_QUEUE if slow_queues(load) else Cause.TOO_FEW


def _is_hot(load: MemberLoad, queue: QueueProgress, usual_inflow: float) -> bool:
    """Return whether more comes into this queue alone than the member can do, and more than into others."""
    inflow = load.inflow_of(queue)
    return inflow > load.pace - load.error and inflow >= HOT * usual_inflow


def slow_queues(load: MemberLoad) -> list[QueueProgress]:
    """Return the queues with a backlog where the member is done with its other ones at most samples.

    It is no lack of members then: an orderly client works on one message of a queue at a time.
    """
    fed = [queue for queue in load.queues if load.inflow_of(queue) > 0]
    done = [queue for queue in fed if 2 * sum(not lag for lag in queue.lags) > len(queue.lags)]
    behind = [queue for queue in load.queues if all(queue.lags)]
    return behind if done else []


def too_few_consumers(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that work all the time, none of them slower than its peers, while more comes in than they can do."""
    if not evidence.members or evidence.is_broadcasting or not has_backlog(evidence):
        return
    if evidence.watched_s < SPAN_S:
        yield Gap(
            f"watched for {duration(evidence.watched_s)}; whether the members keep up, a minute shows: "
            f"--watch {NEEDED_S:.0f}"
        )
        return
    load = group_load(evidence)
    if loads := load.of(Cause.TOO_FEW):
        yield _too_few(evidence, loads)
    if load.unknown:
        yield Gap(_say_unknown(load.unknown))
    elif load.undecided and not load.overloaded:
        watch_s = max(2 * evidence.watched_s, NEVER_FALLS_S + SPAN_S)
        yield Gap(
            f"{counted(len(load.undecided), 'member')} had work all the time; whether the backlog grows or falls, "
            f"a longer watch shows: --watch {ceil(watch_s / 10) * 10}"
        )


def _say_unknown(unknown: Sequence[MemberWork]) -> str:
    members = sorted({member for work in unknown for member in work.members})
    return (
        f"{some(members)} committed too seldom to know the pace; two commits that lie {duration(SPAN_S)} apart are "
        f"needed: --watch {POLL_S:.0f}"
    )


def _too_few(evidence: GroupEvidence, loads: Sequence[MemberLoad]) -> Symptom:
    inflow, pace = sum(load.inflow for load in loads), sum(load.pace for load in loads)
    backlog, before = sum(load.backlog for load in loads), sum(load.backlog_before for load in loads)
    members = sorted({member for load in loads for member in load.members})
    queues = [queue for load in loads for queue in load.queues]
    wait_s = backlog / pace
    bound = evidence.oldest_message_s
    is_broken = bound is not None and wait_s > bound
    span_s = (evidence.newest.at - min(load.since for load in loads)).total_seconds()
    more, noun = inflow - pace, evidence.queue_noun
    grows = more > sqrt(sum(load.error**2 for load in loads))
    return Symptom(
        severity=Severity.ERROR if is_broken else Severity.WARNING,
        title=f"Too few consumers: {rate(inflow)} come in, {_members_at_work(evidence, members)} {rate(pace)}; "
        "see the plan",
        evidence=(
            f"at work at every commit within {duration(span_s)}, on {counted(len(queues), noun)}: {some(members)}",
            f"the backlog went from {counted(before, 'message')} to {number(backlog)}",
            f"what comes in is the work of {counted(ceil(inflow / (pace / len(members))), 'member')} at this pace",
        ),
        consequence=f"a message that comes now waits {duration(wait_s)}"
        + (f", the policy allows {duration(bound)}" if is_broken and bound is not None else "")
        + (f"; {number(more * 3600)} messages more in an hour" if grows else "; the backlog does not fall"),
        advice=". ".join((_advice(evidence), *_other_lever(evidence, inflow / pace))),
        about=(*(str(queue.queue) for queue in queues), *members),
    )


def _members_at_work(evidence: GroupEvidence, members: Sequence[str]) -> str:
    count = len(evidence.members)
    if len(members) == count:
        return f"{counted(count, 'member')} {verb(count, 'does', 'do')}"
    return f"{len(members)} of {counted(count, 'member')} {verb(len(members), 'does', 'do')}"


def _advice(evidence: GroupEvidence) -> str:
    if len(evidence.members) >= len(evidence.queues) and not evidence.is_pop:
        noun = evidence.queue_noun
        return (
            f"each {noun} has a member of its own already: more {noun}s first, or faster members; "
            "planner plan says what more members can do"
        )
    return "planner plan says which number of consumers keeps up, and what the change costs"


def _other_lever(evidence: GroupEvidence, factor: float) -> Iterator[str]:
    """Yield what would do instead of more members, where ``factor`` times what they do comes in."""
    if evidence.system.reports_setup:
        yield threads_instead_of_members(evidence, factor / USED)
    elif len(evidence.members) < len(evidence.queues):
        yield "planner simulate says what more consumers in each process would do instead"


def falling_behind(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Queues that their member consumes too slowly while it is done with its others."""
    if not evidence.members or evidence.is_broadcasting or not has_backlog(evidence) or evidence.watched_s < SPAN_S:
        return
    for load in group_load(evidence).of(Cause.SLOW_QUEUE):
        yield _slow_queue(evidence, load)


def _slow_queue(evidence: GroupEvidence, load: MemberLoad) -> Symptom:
    slow = slow_queues(load)
    names, behind = [str(queue.queue) for queue in slow], counted(len(slow), evidence.queue_noun)
    waiting = sum(queue.lags[-1] or 0 for queue in slow)
    grown = waiting - sum(queue.lags[0] or 0 for queue in slow)
    return Symptom(
        severity=Severity.WARNING,
        title=f"The backlog grows on {behind} while {some(load.members)} is done with its others",
        evidence=(
            f"behind at every sample: {some(names)}",
            f"by {counted(grown, 'message')} within {duration(slow[0].span_s)}, to {waiting}",
        ),
        consequence=f"{rate(load.growth)} more come in than go out: "
        f"{number(load.growth * 3600)} messages more in an hour",
        advice="more members cannot help: a queue that is consumed in order goes at the pace of one call at a time; "
        "look at what its messages take, or spread its keys over more queues",
        about=(*names, *load.members),
    )
