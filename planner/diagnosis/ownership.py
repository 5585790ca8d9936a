"""Ownership: queues with two owners or none, and the different views that lead there (split brain).

Every RocketMQ client allocates alone, from its own strategy, route and member list (rocketmq.md 3.13).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.allocation.group import allocate_group
from planner.allocation.registry import runnable_strategy
from planner.allocation.strategy import Strategy
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import ADOPTS_ROUTES_S, GroupEvidence, subscribed_topics, tuning_property
from planner.diagnosis.phrases import rate, seconds, some, verb
from planner.diagnosis.waiting import uncommitted, waiting
from planner.inference import Inference, contradiction
from planner.model.membership import GroupMember
from planner.model.queues import MessageQueue, Queue
from planner.simulation.ownership import MemberView, ownership
from planner.snapshot.strategy import strategy_name
from planner.words import counted

WATCH_LONGER = "a rebalance under way looks the same for some seconds: look again with --watch 60 before you act"

MOVING = "a rebalance may be under way: look again with --watch 60"

MOST_VIEWS = 64
"""Members whose view is searched for; more would only repeat the same."""


def mixed_strategies(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that run different allocation strategies: a permanent split brain."""
    if not evidence.has_owners or evidence.is_kafka:
        return
    by_class: dict[str, list[str]] = {}
    for member in evidence.rocketmq_members:
        if member.tuning and member.tuning.strategy_class:
            by_class.setdefault(member.tuning.strategy_class, []).append(member.client_id)
    unreported = [member.client_id for member in evidence.rocketmq_members if not _reports_strategy(member)]
    if unreported and len(by_class) < 2:
        yield Gap(f"{counted(len(unreported), 'member')} did not tell the allocation strategy: {some(unreported)}")
    if len(by_class) < 2:
        return
    split = _split_now(evidence) or _split_by(evidence, by_class)
    yield Symptom(
        severity=Severity.ERROR,
        title=f"Split brain: members run {len(by_class)} different allocation strategies",
        evidence=(
            *(f"{_short(name)}: {some(clients)}" for name, clients in sorted(by_class.items())),
            *split.evidence,
        ),
        consequence=split.consequence,
        advice="give all members the same strategy; a rollout that changes it tears the group until its end",
        about=(*split.about, *evidence.clients),
    )


def _reports_strategy(member: GroupMember) -> bool:
    return bool(member.tuning and member.tuning.strategy_class)


def _short(strategy_class: str) -> str:
    return strategy_name(strategy_class) or strategy_class


@dataclass(frozen=True, slots=True)
class SplitOwnership:
    """Queues that are owned more than once, and by nobody."""

    doubled: Mapping[Queue, tuple[str, ...]]
    orphans: Sequence[Queue]
    consequence: str

    def __bool__(self) -> bool:
        return bool(self.doubled or self.orphans)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The queues by name."""
        doubled = [f"{queue} ({', '.join(owners)})" for queue, owners in sorted(self.doubled.items(), key=_by_name)]
        return (
            *([f"owned more than once: {some(doubled)}"] if doubled else []),
            *([f"owned by nobody: {some(self.orphans)}"] if self.orphans else []),
        )

    @property
    def about(self) -> tuple[str, ...]:
        """All of them, by name."""
        return tuple(sorted(map(str, {*self.doubled, *self.orphans})))


def _by_name(entry: tuple[Queue, tuple[str, ...]]) -> str:
    return str(entry[0])


def split_ownership(
    evidence: GroupEvidence, doubled: Mapping[Queue, tuple[str, ...]], orphans: Sequence[Queue]
) -> SplitOwnership:
    """Return these queues with what they cost."""
    return SplitOwnership(doubled, tuple(orphans), _cost(evidence, list(doubled), list(orphans)))


def _cost(evidence: GroupEvidence, doubled: Sequence[Queue], orphans: Sequence[Queue]) -> str:
    clauses = []
    if doubled:
        clauses.append(
            f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'is', 'are')} consumed more than once"
            f"{_flow(evidence, doubled)}: every message comes to each of the owners"
        )
    if orphans:
        clauses.append(
            f"{counted(len(orphans), 'queue')} {verb(len(orphans), 'is', 'are')} consumed by nobody"
            f"{_flow(evidence, orphans)}: {waiting(evidence, orphans)}"
        )
    return "; ".join(clauses) or "no queue is torn at present, but the next change of members may tear some"


def _flow(evidence: GroupEvidence, queues: Sequence[Queue]) -> str:
    known = [evidence.arrival_rates[queue] for queue in queues if queue in evidence.arrival_rates]
    return f" ({rate(sum(known))})" if known and len(known) == len(queues) else ""


def _split_now(evidence: GroupEvidence) -> SplitOwnership:
    """Return the split ownership by the members' own reports."""
    doubled = {queue: owners for queue, owners in evidence.owners.items() if len(owners) > 1 and not queue.is_retry}
    orphans = [] if evidence.silent else [queue for queue in evidence.queues if not evidence.owners.get(queue)]
    return split_ownership(evidence, doubled, orphans)


def _split_by(evidence: GroupEvidence, by_class: Mapping[str, Sequence[str]]) -> SplitOwnership:
    """Return the split ownership that these strategies compute; nothing when one of them cannot be computed."""
    strategies: dict[str, Strategy] = {}
    for name, clients in by_class.items():
        strategy = runnable_strategy(strategy_name(name))
        if strategy is None:
            return split_ownership(evidence, {}, ())
        strategies |= dict.fromkeys(clients, strategy)
    queues = tuple(queue for queue in evidence.queues if isinstance(queue, MessageQueue))
    allocated = ownership(
        MemberView(client, strategies[client], queues, evidence.clients) for client in sorted(strategies)
    )
    return split_ownership(evidence, {queue: allocated.owners[queue] for queue in allocated.doubled}, allocated.orphans)


def several_owners(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Data queues that two members consume at the same time, by the members' own reports."""
    if not evidence.has_owners:
        return
    doubled = {queue: owners for queue, owners in evidence.owners.items() if len(owners) > 1 and not queue.is_retry}
    if not doubled:
        return
    if evidence.is_moving:
        yield Gap(f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'has', 'have')} two owners now, but {MOVING}")
        return
    lasts = _lasts(evidence, [set(_doubled_queues(sample.owners)) for sample in evidence.recent])
    split = split_ownership(evidence, doubled, ())
    yield Symptom(
        severity=Severity.ERROR if lasts else Severity.WARNING,
        title=f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'has', 'have')} more than one owner",
        evidence=(*split.evidence, _observation_span(evidence)),
        consequence=split.consequence,
        advice="look at what these members see differently: strategy, members, queues, subscription, configured lists"
        if lasts
        else WATCH_LONGER,
        about=split.about,
    )


def _doubled_queues(owners: Mapping[Queue, tuple[str, ...]]) -> list[Queue]:
    return [queue for queue, of_queue in owners.items() if len(of_queue) > 1 and not queue.is_retry]


def without_owner(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Data queues that no member consumes although the group has members."""
    if not evidence.has_owners:
        return
    orphans = [queue for queue in evidence.queues if not evidence.owners.get(queue)]
    if not orphans:
        return
    if evidence.silent:
        yield Gap(
            f"{counted(len(evidence.silent), 'member')} did not tell what they own, and one of them may own the "
            f"{counted(len(orphans), 'queue')} that no other has: {some(evidence.silent)}"
        )
        return
    if evidence.is_moving:
        yield Gap(f"{counted(len(orphans), 'queue')} {verb(len(orphans), 'has', 'have')} no owner now, but {MOVING}")
        return
    lasts = _lasts(evidence, [set(evidence.queues) - set(sample.owners) for sample in evidence.recent])
    split = split_ownership(evidence, {}, orphans)
    yield Symptom(
        severity=Severity.ERROR if lasts else Severity.WARNING,
        title=f"{counted(len(orphans), 'queue')} {verb(len(orphans), 'has', 'have')} no owner",
        evidence=(*split.evidence, _observation_span(evidence)),
        consequence=split.consequence,
        advice="see whether every member subscribes to this topic and reaches the broker, and restart one that does not"
        if lasts
        else WATCH_LONGER,
        about=split.about,
    )


def retry_without_owner(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Retry queues that nobody consumes: failed messages never come again (CONFIG that does not list them).

    A retry topic reaches its members only by a later route poll, so that only an old group is judged. Pull consumers
    have no retry topic at all.
    """
    if not evidence.has_owners or evidence.silent or evidence.is_kafka or not _is_old(evidence):
        return
    if all(tuning_property(member, "PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY" for member in evidence.rocketmq_members):
        return
    orphans = [queue for queue in evidence.retry_queues if not evidence.owners.get(queue)]
    if not orphans or any(sample.owners.get(queue) for sample in evidence.recent for queue in orphans):
        return
    stuck = sum(uncommitted(evidence, queue) for queue in orphans)
    yield Symptom(
        severity=Severity.ERROR if stuck else Severity.WARNING,
        title=f"{counted(len(orphans), 'retry queue')} {verb(len(orphans), 'has', 'have')} no owner",
        evidence=(some(orphans), f"allocation strategy: {evidence.strategy_name or 'unknown'}"),
        consequence=f"messages that failed are not consumed again: {waiting(evidence, orphans)}",
        advice="with strategy CONFIG list the group's %RETRY% queues, too; else see whether members reach that broker",
        about=tuple(map(str, orphans)),
    )


def _is_old(evidence: GroupEvidence) -> bool:
    """Return whether every member has had time to adopt all routes."""
    return evidence.is_steady and max(evidence.watched_s, evidence.youngest_s or 0.0) >= ADOPTS_ROUTES_S


def _lasts(evidence: GroupEvidence, split_queues: Sequence[set[Queue]]) -> bool:
    """Return whether one queue was split in every sample of a group that has settled."""
    return evidence.has_settled and bool(set.intersection(*split_queues))


def _observation_span(evidence: GroupEvidence) -> str:
    return f"seen in the last of {len(evidence.recent)} looks within {seconds(evidence.recent_s)}"


def other_view(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members whose queues do not follow from the group's strategy, and the view that would explain them.

    Tried: a member list without one that is there or with one that has left, a broker left out, fewer queues on each
    broker. Where no such view explains what a member owns, it says so.
    """
    if not evidence.has_owners or evidence.is_kafka:
        return
    strategy = evidence.strategy
    if strategy is None:
        if not (evidence.inference and evidence.inference.is_mixed):  # that is a finding of its own
            yield _unexplained_symptom(evidence)
        return
    queues = tuple(queue for queue in evidence.queues if isinstance(queue, MessageQueue))
    expected = _expected_queues(evidence, _answers(strategy, queues, evidence.processes))
    owned = {member.client_id: _data(member) for member in evidence.rocketmq_members if member.owned is not None}
    astray = [client for client, of_client in owned.items() if of_client != expected.get(client, frozenset())]
    if not astray:
        return
    if evidence.is_moving:
        yield Gap(
            f"{counted(len(astray), 'member')} {verb(len(astray), 'is', 'are')} on another view now, but {MOVING}"
        )
        return
    reasons = {client: _view(evidence, strategy, queues, client, owned[client]) for client in astray[:MOST_VIEWS]}
    lasting = evidence.has_settled and all(
        _is_astray(evidence, index, expected, astray) for index in range(len(evidence.recent))
    )
    split = _split_now(evidence)
    elsewhere = sorted(
        {queue for client in astray for queue in owned[client] ^ expected.get(client, frozenset())}, key=str
    )
    yield Symptom(
        severity=Severity.ERROR if lasting and split else Severity.WARNING,
        title=f"{counted(len(astray), 'member')} {verb(len(astray), 'does', 'do')} not own what "
        f"{evidence.strategy_name} gives them",
        evidence=(
            *(f"{client}: {reason}" for client, reason in list(reasons.items())[:5]),
            *split.evidence,
        ),
        consequence=split.consequence
        if split
        else f"{counted(len(elsewhere), 'queue')} {verb(len(elsewhere), 'is', 'are')} elsewhere than predicted, "
        "each with one owner",
        advice="restart the members that act on another view; if it comes back, see what keeps them from the brokers"
        if lasting
        else WATCH_LONGER,
        about=(*astray, *split.about),
    )


def _unexplained_symptom(evidence: GroupEvidence) -> Symptom | Gap:
    """Say why nothing can be computed: a strategy that is not known, or owners that no parameters of it explain."""
    inference = evidence.inference
    if inference is None or not inference.named or inference.explanations or not evidence.has_settled:
        return Gap(
            f"who should own what cannot be computed: {inference.sentence if inference else 'no owner is known'}"
        )
    now = _split_now(evidence)
    return Symptom(
        severity=Severity.ERROR if now else Severity.WARNING,
        title=f"No parameters of {inference.named[0]} explain who owns what",
        evidence=(inference.sentence, *now.evidence),
        consequence=now.consequence if now else "every queue has one owner, but not the one that all members agree on",
        advice="see whether all members are set up with the same parameters (virtual nodes, rooms, lists)",
        about=now.about,
    )


def against_policy(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A policy that states another strategy than the members run: it would plan for a group that does not exist."""
    if evidence.stated_strategy is None or evidence.inference is None:
        return
    against = contradiction(evidence.stated_strategy, evidence.inference)
    if against is not None and (
        evidence.has_settled or _members_name_another(evidence.inference, evidence.stated_strategy)
    ):
        yield Symptom(
            severity=Severity.ERROR,
            title=f"The policy states {evidence.stated_strategy}, and the group runs another strategy",
            evidence=(against,),
            consequence="every forecast that rests on the policy's word predicts the wrong owners",
            advice="correct spec.strategy in the policy, or leave it out: members tell RocketMQ's own classes",
        )


def _members_name_another(inference: Inference, stated: str) -> bool:
    """Return whether the members' own reports are enough, whatever they own at the moment."""
    return bool(inference.named) and all(name.partition("-")[0] != stated.partition("-")[0] for name in inference.named)


def _expected_queues(
    evidence: GroupEvidence, answers: Mapping[str, frozenset[MessageQueue]]
) -> dict[str, frozenset[MessageQueue]]:
    """Return what each member can own of its answer: it drops what it does not subscribe."""
    subscribed = {member.identity: subscribed_topics(member) for member in evidence.members}
    return {
        client: answer if topics is None else frozenset(queue for queue in answer if queue.topic in topics)
        for client, answer in answers.items()
        for topics in [subscribed.get(client)]
    }


def _answers(
    strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> dict[str, frozenset[MessageQueue]]:
    answer = allocate_group(strategy, queues, clients).answer()
    return {client: frozenset(of_client) for client, of_client in answer.items()}


def _data(member: GroupMember) -> frozenset[Queue]:
    return frozenset(queue for queue in member.owned or () if not queue.is_retry)


def _is_astray(
    evidence: GroupEvidence, index: int, expected: Mapping[str, frozenset[MessageQueue]], astray: Sequence[str]
) -> bool:
    owned = {member.identity: _data(member) for member in evidence.recent[index].members if member.owned is not None}
    return any(client in owned and owned[client] != expected.get(client, frozenset()) for client in astray)


def _view(
    evidence: GroupEvidence, strategy: Strategy, queues: Sequence[MessageQueue], client: str, owned: frozenset[Queue]
) -> str:
    for words, view_queues, view_members in _views(evidence, queues, client):
        if _answers(strategy, view_queues, view_members).get(client, frozenset()) == owned:
            return f"acts as if {words}"
    return f"owns {counted(len(owned), 'queue')} that no view we tried explains: {some(sorted(owned, key=str), 3)}"


def _views(
    evidence: GroupEvidence, queues: Sequence[MessageQueue], client: str
) -> Iterator[tuple[str, Sequence[MessageQueue], Sequence[str]]]:
    """Yield (in words, queues, members) that this client may see."""
    clients = evidence.processes
    for other in clients[:MOST_VIEWS]:
        if other != client:
            yield f"{other} were not there", queues, [member for member in clients if member != other]
    gone = sorted({member.identity for sample in evidence.samples for member in sample.members} - set(clients))
    for other in gone[:MOST_VIEWS]:
        yield f"{other}, which has left, were still there", queues, sorted([*clients, other])
    if len(clients) > 2:
        yield "it were alone", queues, [client]
    for broker in sorted({queue.broker for queue in queues}):
        yield f"broker {broker} had no queues", [queue for queue in queues if queue.broker != broker], clients
    for topic in sorted({queue.topic for queue in queues}):
        yield f"topic {topic} were not there", [queue for queue in queues if queue.topic != topic], clients
    for fewer in range(1, min(MOST_VIEWS, max(queue.queue_id for queue in queues) + 1)):
        yield (
            f"each broker had {counted(fewer, 'queue')} of a topic at most",
            [queue for queue in queues if queue.queue_id < fewer],
            clients,
        )
