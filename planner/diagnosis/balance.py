"""How the work lies on the members: idle ones, tilt, hot queues, slow members."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from planner.allocation.group import allocate_group
from planner.allocation.registry import runnable_strategy
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence, topic_sizes
from planner.diagnosis.load import Cause, MemberLoad, group_load
from planner.diagnosis.phrases import percent, rate, some, verb
from planner.diagnosis.waiting import waiting
from planner.history.busy import SPAN_S
from planner.model.queues import Queue, message_queues
from planner.simulation.balance import Balance, balance
from planner.text.words import counted, duration, number

TILTED = 1.5
"""The busiest member carries at least so many times the mean before a group is called tilted."""

HOT = 1.5
"""A queue is hot when it alone is so many times what an even share of the group would be."""

ENOUGH = 100
"""Messages seen before shares of queues mean anything."""

SLOW = 3.0
SLOW_MS = 50.0
"""A member is slow when one call takes so many times its peers' median, and so many milliseconds.

On a busy machine calls of a few milliseconds differ by more than that for nothing.
"""

CURES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
"""Strategies that a group can switch to without any settings."""

MOST_COUNTS = 256


def idle_members(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members without a queue because the group has more members than its topics have queues (rocketmq.md 4.1).

    Where the queues of all topics together would do for everybody, ``tilt`` speaks instead.
    """
    if not evidence.has_owners or not evidence.queues:
        return
    sizes = topic_sizes(evidence.queues)
    if len(evidence.members) <= max(sizes.values()) or _has_enough_only_together(evidence):
        return
    if evidence.is_moving:
        return  # tilt says so
    idle = [member.identity for member in evidence.members if member.owned is not None and not _data(member.owned)]
    if not idle:
        if evidence.silent:
            yield Gap(
                f"{counted(len(evidence.silent), 'member')} did not report what they own: {some(evidence.silent)}"
            )
        return
    most = max(sizes.values()) if evidence.strategy is None or len(sizes) == 1 else _most_useful(evidence)
    yield Symptom(
        severity=Severity.WARNING,
        title=f"{len(idle)} of {counted(len(evidence.members), 'member')} {verb(len(idle), 'owns', 'own')} "
        f"no {evidence.queue_noun}",
        evidence=(
            f"idle: {some(idle)}",
            f"{evidence.queue_noun}s by topic: {_sizes(evidence)}",
        ),
        consequence=f"{percent(len(idle) / len(evidence.members))} of the members do nothing: more than {most} cannot "
        f"help, and each of them still moves {evidence.queue_noun}s when it comes or goes",
        advice=f"run {most}, or raise the number of {evidence.queue_noun}s first if the lag needs more"
        + (f" ({order})" if (order := evidence.system.growth_order) else ""),
        about=tuple(idle),
    )


def _data(owned: Sequence[Queue]) -> list[Queue]:
    return [queue for queue in owned if not queue.is_retry]


def _sizes(evidence: GroupEvidence) -> str:
    return some(f"{topic} {size}" for topic, size in sorted(topic_sizes(evidence.queues).items()))


def _has_enough_only_together(evidence: GroupEvidence) -> bool:
    """Return whether several topics have queues enough for everybody, but none has by itself."""
    sizes = topic_sizes(evidence.queues)
    return len(sizes) > 1 and len(evidence.queues) >= len(evidence.members)


def _most_useful(evidence: GroupEvidence) -> int:
    """Return the fewest members that own as many queues at most as the present ones do."""
    now = _by_members(evidence, evidence.strategy_name, len(evidence.members))
    for count in range(1, min(len(evidence.members), MOST_COUNTS) + 1):
        if now and (fewer := _by_members(evidence, evidence.strategy_name, count)) and fewer.most <= now.most:
            return count
    return len(evidence.members)


@dataclass(frozen=True, slots=True)
class _Cure:
    words: str
    balance: Balance


def tilt(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Queues that pile up on some members: every topic is divided alone, in the same order of members.

    2 topics of 2 queues and 4 members under AVG: 2, 2, 0, 0 (rocketmq.md 4.2). Counted by queues that the members
    say they own; the cure is simulated.
    """
    if not evidence.has_owners or not evidence.queues:
        return
    if evidence.silent:
        yield Gap(f"{counted(len(evidence.silent), 'member')} did not report what they own: {some(evidence.silent)}")
        return
    if evidence.is_moving:
        yield Gap("a rebalance may be under way, so who owns how much is not judged")
        return
    counts = {member.identity: len(_data(member.owned or ())) for member in evidence.members}
    now = balance(list(counts.values()))
    if len(counts) > len(evidence.queues) or now.most - now.least < 2 or now.imbalance < TILTED:
        return
    cures = _cures(evidence, now)
    ordered = sorted(counts.items(), key=lambda entry: -entry[1])
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Tilt: {ordered[0][0]} owns {ordered[0][1]} of {counted(len(evidence.queues), evidence.queue_noun)}, "
        f"{ordered[-1][0]} owns {ordered[-1][1]}",
        evidence=(
            f"{evidence.queue_noun}s by member: {', '.join(str(count) for _, count in ordered[:32])}"
            + (" and so on" if len(ordered) > 32 else ""),
            f"{evidence.queue_noun}s by topic: {_sizes(evidence)}",
            f"strategy: {evidence.strategy_name or 'unknown'}, each topic divided by itself",
        ),
        consequence=f"the busiest member carries {now.imbalance:.1f} times the mean"
        + (f", and {counted(now.idle, 'member')} {verb(now.idle, 'does', 'do')} nothing" if now.idle else ""),
        advice="; or ".join(cure.words for cure in cures)
        if cures
        else "no strategy that works without settings evens it out: list the queues (CONFIG), or merge topics",
        about=tuple(counts),
    )


def _cures(evidence: GroupEvidence, now: Balance) -> list[_Cure]:
    """Return what evens the group out by simulation: another strategy at this count, another count."""
    if evidence.system.even_strategies is not None:
        return [_Cure(evidence.system.even_strategies, now)]
    here = len(evidence.members)
    by_strategy = [
        _Cure(f"switch to {name}: {_queues_per_member(simulated)} queues a member", simulated)
        for name in CURES
        if name != evidence.strategy_name
        and (simulated := _by_members(evidence, name, here))
        and simulated.most < now.most
    ]
    best = min(by_strategy, key=lambda cure: cure.balance.most, default=None)
    by_count = _count_cure(evidence, now)
    return [cure for cure in (by_count, best) if cure is not None]


def _count_cure(evidence: GroupEvidence, now: Balance) -> _Cure | None:
    """Return the fewest members whose busiest carries no more than now, when that saves members."""
    for count in range(1, min(len(evidence.members), MOST_COUNTS)):
        simulated = _by_members(evidence, evidence.strategy_name, count)
        if simulated is not None and simulated.most <= now.most:
            return _Cure(
                f"run {count}: nobody carries more than now ({_queues_per_member(simulated)} queues a member)",
                simulated,
            )
    return None


def _queues_per_member(simulated: Balance) -> str:
    return (
        f"{simulated.least:.0f} to {simulated.most:.0f}"
        if simulated.least != simulated.most
        else f"{simulated.most:.0f}"
    )


def _by_members(evidence: GroupEvidence, name: str | None, count: int) -> Balance | None:
    """Return the balance of queues with the first ``count`` of the present members under a strategy."""
    strategy = runnable_strategy(name)
    if strategy is None:
        return None
    queues = message_queues(evidence.queues)
    clients = evidence.clients[:count]
    allocation = allocate_group(strategy, queues, clients)
    sizes = dict.fromkeys(range(count), 0)
    for holder in allocation.holdings.holders.tolist():
        sizes[holder] += 1
    return balance(list(sizes.values()))


def hot_queue(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """One queue with more of the load than any number of members can share out.

    Its share must exceed ``HOT`` even shares by more than chance explains (two standard deviations of a share); or its
    member falls behind, as more comes into this queue alone than one member can do.
    """
    if not evidence.has_owners:
        return
    if len(evidence.samples) < 2:
        yield Gap("one sample gives no rates: watch for some seconds")
        return
    arrived = {queue: messages for queue, (messages, _) in evidence.arrivals.items()}
    total = sum(arrived.values())
    if len(arrived) < 2 or total <= 0:
        return
    if total < ENOUGH:
        yield Gap(
            f"only {counted(total, 'message')} came in while we watched, {ENOUGH} are needed to compare "
            f"{evidence.queue_noun}s"
        )
        return
    hottest = max(arrived, key=lambda queue: arrived[queue])
    overloaded = _overloaded_by(evidence, hottest)
    share = arrived[hottest] / total
    if overloaded is None and share - 2 * sqrt(share * (1 - share) / total) <= HOT * _even(evidence):
        return
    yield _hot(evidence, hottest, share, overloaded)


def _even(evidence: GroupEvidence) -> float:
    return 1 / min(len(evidence.members), len(evidence.arrivals))


def _overloaded_by(evidence: GroupEvidence, hottest: Queue) -> MemberLoad | None:
    """Return the load of the member that falls behind because of this queue alone."""
    loads = group_load(evidence).of(Cause.HOT_QUEUE)
    return next((load for load in loads if any(queue.queue == hottest for queue in load.queues)), None)


def _hot(evidence: GroupEvidence, hottest: Queue, share: float, overloaded: MemberLoad | None) -> Symptom:
    even, facts = _even(evidence), evidence.system
    useful = int(1 / share) + (1 / share > int(1 / share))
    owner = ", ".join(evidence.owners.get(hottest, ())) or "nobody"
    arrived = {queue: messages for queue, (messages, _) in evidence.arrivals.items()}
    behind = [str(queue.queue) for queue in overloaded.queues if queue.queue != hottest] if overloaded else []
    return Symptom(
        severity=Severity.WARNING,
        title=f"Hot {evidence.queue_noun}: {hottest} alone has {percent(share)} of the load",
        evidence=(
            f"{number(arrived[hottest])} of {number(sum(arrived.values()))} messages in "
            f"{duration(evidence.watched_s)}, {rate(evidence.arrival_rates[hottest])}; an even share of "
            f"{counted(len(arrived), evidence.queue_noun)} is {percent(1 / len(arrived))}",
            f"owned by {owner}, lag {_lag(evidence, hottest)}",
            *([f"its member does {rate(overloaded.pace)} and falls behind"] if overloaded else []),
        ),
        consequence=f"more consumers cannot help: beyond {useful} the busiest still carries {percent(share)}, "
        f"{share / even:.1f} times an even share of {counted(len(evidence.members), 'member')}",
        advice=f"find the key that producers send there and spread it over more {evidence.queue_noun}s "
        f"({facts.queue_choice}), or make its consumer faster ({facts.faster_queue})",
        about=(str(hottest), *evidence.owners.get(hottest, ()), *behind),
    )


def _lag(evidence: GroupEvidence, queue: Queue) -> str:
    entry = evidence.offsets.get(queue)
    return "unknown" if entry is None or entry.lag is None else number(entry.lag)


def slow_member(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A member that is much slower than its peers.

    Its listener calls take much longer, by its own figures of the last minute; or it falls behind at a pace far below
    theirs, which shows of Kafka members, too.
    """
    if not evidence.system.reports_setup and len(evidence.members) > 1 and evidence.watched_s < SPAN_S:
        yield Gap(
            f"no {evidence.system.title} member reports how long a record takes it; one that falls behind shows: "
            "--watch 60"
        )
    slow = _slow_calls(evidence)
    for client, words in _slow_paces(evidence).items():
        slow.setdefault(client, []).append(words)
    for client, sentences in slow.items():
        queues = [queue for queue, owners in evidence.owners.items() if client in owners and not queue.is_retry]
        yield Symptom(
            severity=Severity.WARNING,
            title=f"{client} is much slower than its peers",
            evidence=tuple(sentences),
            consequence=f"it has {counted(len(queues), evidence.queue_noun)} like the others, "
            f"and {waiting(evidence, queues)}; {_total_lag(evidence)} wait in the whole group",
            advice="look at its node (CPU limit, disk, neighbours), its version and what it calls; "
            "restart it elsewhere if the listener is the same",
            about=(client, *map(str, sorted(queues, key=str))),
        )


def _slow_calls(evidence: GroupEvidence) -> dict[str, list[str]]:
    """Return the members whose calls take much longer than their peers', with the figures by topic."""
    by_topic: dict[str, dict[str, tuple[float, float]]] = {}
    for member in evidence.rocketmq_members:
        for figure in member.tuning.figures if member.tuning else ():
            if figure.ok_per_s + figure.failed_per_s > 0 and not figure.topic.startswith("%RETRY%"):
                by_topic.setdefault(figure.topic, {})[member.client_id] = (figure.consume_rt_ms, figure.ok_per_s)
    slow: dict[str, list[str]] = {}
    for topic, figures in sorted(by_topic.items()):
        for client, words in _slow_callers(figures).items():
            slow.setdefault(client, []).append(f"{topic}: {words}")
    return slow


def _slow_paces(evidence: GroupEvidence) -> dict[str, str]:
    """Return the members that fall behind at a pace far below their peers', with the figures."""
    load = group_load(evidence)
    slow: dict[str, str] = {}
    for member in load.of(Cause.SLOW_MEMBER):
        peers = median(pace for members, pace in load.paces.items() if members != member.members)
        words = f"falls behind: {rate(member.inflow)} come in, it does {rate(member.pace)}, its peers {rate(peers)}"
        slow |= dict.fromkeys(member.members, f"{words} (median)")
    return slow


def _slow_callers(figures: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    slow = {}
    for client, (call_ms, _) in figures.items():
        peers = [ms for other, (ms, _) in figures.items() if other != client]
        if len(peers) >= 1 and call_ms >= max(SLOW_MS, SLOW * median(peers)):
            slow[client] = f"one call takes {call_ms:.0f} ms, its peers' {median(peers):.0f} ms (median)"
    return slow


def _total_lag(evidence: GroupEvidence) -> str:
    return "an unknown number" if evidence.lag is None else str(evidence.lag)
