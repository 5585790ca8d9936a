"""The members of the group: ids that run twice, lists that differ, no member at all, membership that never rests."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.allocation.group import allocate_group
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import percent, rate, seconds, some, verb
from planner.diagnosis.waiting import uncommitted
from planner.model.membership import Member
from planner.model.queues import MessageQueue, Queue
from planner.model.samples import GroupSample
from planner.snapshot.unlisted import is_behind_proxy, may_have_unlisted_consumers, unlisted_consumers
from planner.words import counted

HEARTBEAT_S = 30.0
"""A client sends a heartbeat to every broker at least this often (``ClientConfig.heartbeatBrokerInterval``)."""

LIVELY_S = 86_400.0
"""A group that consumed something within the last day is in use; an older one may well be a leftover."""

REBALANCES = 3
PER_HOUR = 4.0
"""Rebalances observed at least, and per hour, before they are called frequent: a rolling update is one, not a habit."""

SAME_CHANGE_S = 120.0
"""Starts within this time of each other count as one change: a Deployment's pods do not start at the same second."""


def duplicate_client_ids(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Two processes with one client id: ``ConsumerGroupInfo`` keys members by channel (rocketmq.md 1.4).

    Both take the first place of the id, and the queues of the second place have no owner. An id that is connected
    twice in one sample only has just reconnected.
    """
    if evidence.is_kafka or not evidence.members:
        return
    if not evidence.newest.listed:
        yield Gap("the samples do not tell which broker lists whom")
        return
    duplicates = {client: count for client, count in Counter(evidence.processes).items() if count > 1}
    if not duplicates:
        return
    doubled = [queue for queue in evidence.queues if set(evidence.owners.get(queue, ())) & set(duplicates)]
    orphans = _orphans_of(evidence)
    unread = [queue for queue in orphans if not queue.is_retry]
    lost = f", and {counted(len(unread), evidence.queue_noun)} of its second place belong to nobody" if unread else ""
    yield Symptom(
        severity=Severity.ERROR,
        title=f"{counted(len(duplicates), 'client id')} {verb(len(duplicates), 'runs', 'run')} more than once",
        evidence=tuple(_where(evidence, client, count) for client, count in sorted(duplicates.items())[:20]),
        consequence=f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'is', 'are')} consumed by every process of "
        f"the id, so each message comes {max(duplicates.values())} times{lost}",
        advice="give each process a name of its own (setInstanceName, or -Drocketmq.client.name), or its own client IP "
        "where containers share the host's network",
        about=(*sorted(duplicates), *map(str, sorted({*doubled, *orphans}))),
    )


def _orphans_of(evidence: GroupEvidence) -> list[Queue]:
    if evidence.strategy is None:
        return [queue for queue in evidence.queues if not evidence.owners.get(queue)] if not evidence.silent else []
    queues = [queue for queue in (*evidence.queues, *evidence.retry_queues) if isinstance(queue, MessageQueue)]
    return list(allocate_group(evidence.strategy, queues, evidence.processes).unowned)


def _where(evidence: GroupEvidence, client: str, count: int) -> str:
    for listing in evidence.newest.listed:
        if listing.clients and listing.clients.count(client) == count:
            here = [at for name, at in zip(listing.clients, listing.addresses, strict=False) if name == client]
            origin = f", from {some(here)}" if here else ""
            return f"{client} is connected to {listing.broker} {count} times{origin}"
    return f"{client} is connected {count} times"


def brokers_list_differently(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Brokers that list different members: a client asks one of them at random (``findBrokerAddrByTopic``).

    After a broker's restart its list is empty until each client's next heartbeat, at most 30 s (rocketmq.md 3.9).
    """
    if not evidence.has_owners or evidence.is_kafka:
        return
    at_work = _brokers_at_work(evidence)
    lists = _lists(evidence.newest, at_work)
    if len(lists) < 2:
        return
    everybody = frozenset().union(*lists.values())
    missing = {broker: sorted(everybody - listed) for broker, listed in lists.items() if everybody - listed}
    if not missing:
        return
    lasting = evidence.recent_s >= HEARTBEAT_S and all(_lists(sample, at_work) == lists for sample in evidence.recent)
    disputed = _disputed_queues(evidence, [sorted(listed) for listed in lists.values()])
    yield Symptom(
        severity=Severity.ERROR if lasting else Severity.WARNING,
        title="Brokers list different members of the group",
        evidence=tuple(f"{broker} does not list {some(names)}" for broker, names in sorted(missing.items())),
        consequence="members that ask one broker share the queues out differently from those that ask the other: "
        + (f"up to {counted(disputed, 'queue')} with two owners or none" if disputed else "no queue is torn by it now"),
        advice="if it lasts longer than a minute, see why these clients send no heartbeat to that broker (network "
        "policy, blocked port, client 4.9 to 5.1 after a broker's restart), and restart them"
        if lasting
        else f"a broker or client that has just started explains it for {HEARTBEAT_S:.0f} s: try --watch 60",
        about=tuple(sorted({name for names in missing.values() for name in names})),
    )


def _brokers_at_work(evidence: GroupEvidence) -> frozenset[str]:
    """Return the brokers of the data topics: clients keep connections to those of their topics only."""
    return frozenset(queue.broker for queue in evidence.queues if isinstance(queue, MessageQueue))


def _lists(sample: GroupSample, brokers: frozenset[str]) -> dict[str, frozenset[str]]:
    return {
        listing.broker: frozenset(listing.clients)
        for listing in sample.listed
        if listing.clients is not None and listing.broker in brokers
    }


def _disputed_queues(evidence: GroupEvidence, lists: Sequence[Sequence[str]]) -> int:
    """Return how many queues have another owner by one list than by another."""
    if evidence.strategy is None:
        return 0
    queues = [queue for queue in evidence.queues if isinstance(queue, MessageQueue)]
    owners = []
    for clients in lists:
        allocation = allocate_group(evidence.strategy, queues, clients)
        owners.append([allocation.clients[slot] if slot >= 0 else None for slot in allocation.owners.tolist()])
    return sum(len(set(of_queue)) > 1 for of_queue in zip(*owners, strict=True))


def no_members(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A group with commits, no members, and nothing that shows consumption: nothing is consumed, whatever arrives."""
    if evidence.members or evidence.unlisted_consumption:
        return
    arrived = sum(messages for messages, _ in evidence.arrivals.values())
    waiting = sum(uncommitted(evidence, queue) for queue in evidence.offsets if not queue.is_retry)
    since = _last_consumed_s(evidence)
    is_certain = not may_have_unlisted_consumers(evidence.newest)
    yield Symptom(
        severity=_urgency(waiting or arrived, since),
        title="Nobody consumes: the group has no members"
        if is_certain or evidence.is_kafka
        else "No consumption shows, and no broker lists a member",
        evidence=(
            f"{counted(len(evidence.queues), evidence.queue_noun)}, {counted(waiting, 'message')} waiting",
            "when it last consumed is not known"
            if since is None
            else f"the newest message that it consumed is {seconds(since)} old",
            *([f"{counted(arrived, 'message')} came in while we watched"] if arrived else []),
            *_doubts(evidence),
        ),
        consequence=f"{counted(waiting, 'message')} {verb(waiting, 'waits', 'wait')}"
        + (f", {rate(arrived / evidence.watched_s)} more come in" if arrived and evidence.watched_s else "")
        if waiting or arrived
        else "nothing waits at present",
        advice=_advice_without_members(evidence, is_certain),
    )


def _doubts(evidence: GroupEvidence) -> tuple[str, ...]:
    """Return why members may exist that no broker lists, where that is in doubt."""
    reason = unlisted_consumers(evidence.newest, ())
    return () if reason is None else (reason,)


def _advice_without_members(evidence: GroupEvidence, is_certain: bool) -> str:
    """Return what to do; nothing is to be deleted unless nobody can be behind a proxy."""
    if evidence.is_kafka:
        return "start a consumer; a group that is a leftover expires by itself (offsets.retention.minutes)"
    if is_certain:
        return "start a consumer, or delete the subscription group if it is a leftover"
    return f"ask each proxy whether it has members: {ask_a_proxy(evidence)}; where none has any, start a consumer"


def ask_a_proxy(evidence: GroupEvidence) -> str:
    """Return the command that lists the group's members at a proxy, by its remoting port (8080 unless set)."""
    activity = evidence.newest.rocketmq.unlisted if evidence.newest.rocketmq else None
    host = activity.proxies[0] if activity and activity.proxies else "PROXY"
    return f"mqadmin consumerConnection -n NAME_SERVER -g {evidence.group} -b {host}:8080"


def members_unknown(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Consumption that no listed member explains: clients behind a proxy are in no broker's list."""
    signs = evidence.unlisted_consumption
    if not signs:
        return
    behind = is_behind_proxy(evidence.newest)
    listed = (
        f"the brokers list {counted(len(evidence.members), 'member')}" if evidence.members else "no broker lists one"
    )
    title = "Consumed through a proxy; members unknown" if behind else "Consumed by clients that no broker lists"
    yield Symptom(
        severity=Severity.NOTICE,
        title="Some members are unknown: the group is consumed through a proxy, too" if evidence.members else title,
        evidence=(", ".join(signs), listed),
        consequence="how many consumers run, and what one of them can do, is not known here, so planner plan holds"
        + ("; the lag leaves out what they hold and have not acknowledged" if behind else ""),
        advice=f"each proxy lists the members: {ask_a_proxy(evidence)}"
        if behind
        else "see which clients commit for this group without joining it (Kafka: assign; RocketMQ: behind a proxy)",
    )


def _last_consumed_s(evidence: GroupEvidence) -> float | None:
    stored = max((entry.last_timestamp_ms for entry in evidence.newest.offsets), default=0)
    return max(0.0, evidence.newest.at.timestamp() - stored / 1000) if stored else None


def _urgency(is_needed: int, since: float | None) -> Severity:
    if not is_needed:
        return Severity.NOTICE
    return Severity.ERROR if since is not None and since <= LIVELY_S else Severity.WARNING


_KAFKA_MEMBER = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A Kafka member id: the client id and a UUID."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of membership or ownership between two samples."""

    joined: frozenset[str]
    left: frozenset[str]
    moved: int


def frequent_rebalances(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Membership that does not rest: changes observed between samples, and the members' own start times.

    Moves of queues in the samples after a change of members belong to it. Starts more than ``SAME_CHANGE_S`` apart are
    changes of their own.
    """
    if not evidence.members:
        return
    changes = _changes(evidence)
    per_hour = len(changes) * 3600 / evidence.watched_s if evidence.watched_s else 0.0
    if len(changes) >= REBALANCES and per_hour >= PER_HOUR:
        yield _restless(evidence, changes, per_hour)
        return
    starts = _start_times(evidence)
    bursts = 1 + sum(later - earlier > SAME_CHANGE_S for earlier, later in pairwise(starts)) if starts else 0
    if bursts >= REBALANCES + 1:
        yield Symptom(
            severity=Severity.WARNING,
            title=f"Members started at {bursts} different times within the last hour",
            evidence=(f"{counted(len(starts), 'member')} started {some(_ago(evidence, starts))} ago",),
            consequence=f"each start, and the stop before it, is a rebalance: at least {bursts} in this hour, and each "
            f"moves about {_share_of_member(evidence)}",
            advice="see why consumers restart (crash loop, liveness probe, an autoscaler that flaps): "
            "kubectl get pods shows their restarts",
            about=tuple(sorted(member.identity for member in evidence.members)),
        )


def _changes(evidence: GroupEvidence) -> list[_Change]:
    """Return the observed rebalances: each change of members is one, with the moves of queues that follow it."""
    changes: list[_Change] = []
    may_follow = False
    for before, after in pairwise(evidence.samples):
        change = _change_between(before, after)
        if change is not None and may_follow and not (change.joined or change.left):
            last = changes.pop()
            change = _Change(last.joined, last.left, last.moved + change.moved)
        if change is not None:
            changes.append(change)
        may_follow = change is not None
    return changes


def _change_between(before: GroupSample, after: GroupSample) -> _Change | None:
    old = frozenset(member.identity for member in before.members)
    new = frozenset(member.identity for member in after.members)
    owned_before, owned_after = before.owners, after.owners
    moved = sum(
        bool(owned_after.get(queue)) and set(owned_after[queue]) != set(owners)
        for queue, owners in owned_before.items()
        if not queue.is_retry
    )
    return _Change(new - old, old - new, moved) if old != new or moved else None


def _restless(evidence: GroupEvidence, changes: Sequence[_Change], per_hour: float) -> Symptom:
    came = Counter(_origin_of(client) for change in changes for client in change.joined)
    went = Counter(_origin_of(client) for change in changes for client in change.left)
    moved = sum(change.moved for change in changes)
    clients = sorted({client for change in changes for client in change.joined | change.left})
    origins = sorted({*came, *went}, key=lambda origin: (-came[origin] - went[origin], origin))
    sentences = [_comings_and_goings(origin, came[origin], went[origin], clients) for origin in origins[:5]]
    return Symptom(
        severity=Severity.WARNING,
        title=f"The group rebalances {per_hour:.0f} times an hour",
        evidence=(
            f"{counted(len(changes), 'rebalance')} within {seconds(evidence.watched_s)}, "
            f"{counted(moved, evidence.queue_noun)} moved",
            *(sentences or ["the same members all the time: their subscriptions change, or what there is to share"]),
        ),
        consequence=f"about {moved * 3600 / evidence.watched_s:.0f} moves of a {evidence.queue_noun} an hour, "
        "each with a pause and messages that come twice",
        advice="see what makes these members come and go (crash loop, probe, autoscaler that flaps), "
        "and whether all of them subscribe to the same",
        about=tuple(clients),
    )


def _comings_and_goings(origin: str, came: int, went: int, clients: Sequence[str]) -> str:
    """Return how often members of one origin came and went; of several ids there it gives the number.

    Each restart brings a new id. It is not said that these are restarts: processes may share an address or client id.
    """
    here = [client for client in clients if _origin_of(client) == origin]
    counts = f"came {came} and went {went} times"
    return f"{here[0]} {counts}" if len(here) == 1 else f"{origin} {counts}, under {len(here)} ids"


def _origin_of(client: str) -> str:
    """Return what a member keeps at a restart: ``10.0.0.7`` of ``10.0.0.7@4711#123``, a Kafka member's client id."""
    member = _KAFKA_MEMBER.fullmatch(client)
    return member[1] if member else client.partition("@")[0]


def _start_times(evidence: GroupEvidence) -> list[float]:
    """Return when members started within the last hour, seconds ago, ascending by time."""
    now = evidence.newest.at.timestamp()
    started_ms = [member.tuning.started_at_ms for member in evidence.members if member.tuning]
    return sorted(start / 1000 for start in started_ms if start is not None and 0 <= now - start / 1000 <= 3600)


def _ago(evidence: GroupEvidence, starts: Sequence[float]) -> list[str]:
    now = evidence.newest.at.timestamp()
    return [seconds(now - start) for start in reversed(starts)]


def _share_of_member(evidence: GroupEvidence) -> str:
    share = len(evidence.queues) / max(1, len(evidence.members))
    return f"{counted(max(1, round(share)), evidence.queue_noun)} ({percent(1 / max(1, len(evidence.members)))})"


def silent_members(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that did not answer the broker's question what they run (request 307, it waits 10 s).

    Java clients always answer while they are alive; members behind a proxy (gRPC) and some other languages cannot. A
    member that was silent in the last sample only may have just left.
    """
    through_proxy = [member for member in evidence.rocketmq_members if member.is_grpc]
    if through_proxy:
        yield Gap(f"{counted(len(through_proxy), 'gRPC member')} cannot be asked what they run: {_ids(through_proxy)}")
    mute = [member for member in evidence.rocketmq_members if member.tuning is None and not member.is_grpc]
    before = _mute_members(evidence.samples[-2]) if len(evidence.samples) > 1 else set()
    frozen = [member.client_id for member in mute if member.language == "JAVA" and member.client_id in before]
    others = [member for member in mute if member.language != "JAVA"]
    leaving = [member for member in mute if member.language == "JAVA" and member.client_id not in before]
    if leaving:
        yield Gap(
            f"{counted(len(leaving), 'member')} did not answer in the last look, and may have left: {_ids(leaving)}"
        )
    if others:
        kinds = some(sorted({member.language or "unknown language" for member in others}))
        yield Gap(f"{counted(len(others), 'member')} ({kinds}) cannot tell what they run: {_ids(others)}")
    if not frozen:
        return
    always = set(frozen).intersection(*(_mute_members(sample) for sample in evidence.recent))
    owned = _last_owned(evidence, frozen)
    yield Symptom(
        severity=Severity.ERROR if always else Severity.WARNING,
        title=f"{counted(len(frozen), 'member')} {verb(len(frozen), 'does', 'do')} not answer",
        evidence=(f"{some(frozen)}: connected, but silent when asked what they run",),
        consequence=f"{counted(len(owned), 'queue')} that they owned last may stand still: brokers drop a silent "
        "client only after 120 s, and its peers take over 105 to 150 s after it froze"
        if owned
        else "what they own is not known; a frozen client keeps its queues for 105 to 150 s before peers take over",
        advice="look at these processes (long garbage collection, SIGSTOP, no CPU, half-open connection) "
        "and restart them if they hang",
        about=(*frozen, *map(str, owned)),
    )


def _ids(members: Sequence[Member]) -> str:
    return some([member.client_id for member in members])


def _mute_members(sample: GroupSample) -> set[str]:
    return {member.identity for member in sample.members if member.tuning is None}


def _last_owned(evidence: GroupEvidence, clients: Sequence[str]) -> list[Queue]:
    """Return the queues that these owned when they last answered."""
    last_owned: dict[str, Sequence[Queue]] = {}
    for sample in evidence.samples:
        for member in sample.members:
            if member.identity in clients and member.owned is not None:
                last_owned[member.identity] = member.owned
    return sorted((queue for owned in last_owned.values() for queue in owned if not queue.is_retry), key=str)


def broadcasting(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A broadcasting group: every member reads every queue and keeps its offsets to itself (rocketmq.md 3.8)."""
    models = {
        member.client_id: dict(member.tuning.properties).get("messageModel")
        for member in evidence.rocketmq_members
        if member.tuning
    }
    stated = {model for model in models.values() if model}
    if len(stated) > 1:
        several = [client for client, model in sorted(models.items()) if model == "BROADCASTING"]
        yield Symptom(
            severity=Severity.ERROR,
            title="Some members broadcast, others share the queues",
            evidence=(f"broadcasting: {some(several)}", f"all others say {some(sorted(stated - {'BROADCASTING'}))}"),
            consequence="the broadcasting ones read every queue although they count as members: the queues that fall "
            f"to them by allocation ({percent(len(several) / len(models))} of all) are committed by nobody",
            advice="give the group one message model, or the broadcasting members a group of their own",
            about=tuple(several),
        )
    elif stated == {"BROADCASTING"}:
        yield Symptom(
            severity=Severity.NOTICE,
            title="The group broadcasts: every member reads every queue",
            evidence=(f"{counted(len(models), 'member')} with message model BROADCASTING",),
            consequence="more members share no load, and lag is known to the members alone: their offsets lie in "
            "local files",
            advice="scale it by what each member can do, not by lag; failed messages are not redelivered",
        )
