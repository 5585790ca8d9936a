"""The members that brokers list: ids that run twice, lists that differ, members that are silent or that broadcast."""

from collections import Counter
from collections.abc import Iterator, Sequence

from planner.allocation.group import allocate_group
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import percent, some, verb
from planner.model.membership import Member
from planner.model.queues import Queue, message_queues
from planner.model.samples import GroupSample
from planner.text.words import counted, duration

HEARTBEAT_S = 30.0
"""A client sends a heartbeat to every broker at least this often (``ClientConfig.heartbeatBrokerInterval``)."""


def duplicate_client_ids(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Two processes with one client id: ``ConsumerGroupInfo`` keys members by channel (rocketmq.md 1.4).

    Both take the first place of the id, and the queues of the second place have no owner. An id that is connected
    twice in one sample only has just reconnected.
    """
    if not evidence.members:
        return
    if not evidence.newest.listed:
        yield Gap("the samples do not say which broker lists which member")
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
    queues = message_queues((*evidence.queues, *evidence.retry_queues))
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
    if not evidence.has_owners:
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
        + (
            f"up to {counted(disputed, 'queue')} with two owners or none"
            if disputed
            else "no queue has two owners or none now"
        ),
        advice="if it lasts longer than a minute, see why these clients send no heartbeat to that broker (network "
        "policy, blocked port, client 4.9 to 5.1 after a broker's restart), and restart them"
        if lasting
        else f"a broker or client that has just started explains it for {duration(HEARTBEAT_S)}: try --watch 60",
        about=tuple(sorted({name for names in missing.values() for name in names})),
    )


def _brokers_at_work(evidence: GroupEvidence) -> frozenset[str]:
    """Return the brokers of the data topics: clients keep connections to those of their topics only."""
    return frozenset(queue.broker for queue in message_queues(evidence.queues))


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
    queues = message_queues(evidence.queues)
    owners = []
    for clients in lists:
        allocation = allocate_group(evidence.strategy, queues, clients)
        owners.append([allocation.clients[slot] if slot >= 0 else None for slot in allocation.owners.tolist()])
    return sum(len(set(of_queue)) > 1 for of_queue in zip(*owners, strict=True))


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
            f"{counted(len(leaving), 'member')} did not answer in the last sample, and may have left: {_ids(leaving)}"
        )
    if others:
        kinds = some(sorted({member.language or "unknown language" for member in others}))
        yield Gap(f"{counted(len(others), 'member')} ({kinds}) cannot report what they run: {_ids(others)}")
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
