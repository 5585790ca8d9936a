"""Who is in the group: ids that run twice, lists that differ, nobody at all, and membership that never rests."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.allocation.group import allocate_group
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.phrases import percent, rate, seconds, some, verb
from planner.diagnosis.picture import Picture
from planner.diagnosis.waiting import held
from planner.model.membership import Member
from planner.model.queues import MessageQueue, Queue
from planner.model.samples import GroupSample
from planner.snapshot.unlisted import is_behind_proxy, may_have_unlisted_consumers, unlisted_consumers
from planner.words import counted

HEARTBEAT_S = 30.0
"""A client tells every broker of itself at least this often (``ClientConfig.heartbeatBrokerInterval``)."""

LIVELY_S = 86_400.0
"""A group that consumed something within the last day is in use; an older one may well be a leftover."""

REBALANCES = 3
PER_HOUR = 4.0
"""Rebalances seen at least, and per hour, before they are called frequent: a rolling update is one, not a habit."""

ONE_CHANGE_S = 120.0
"""Starts within this time of each other count as one change: a Deployment's pods do not start at the same second."""


def duplicate_client_ids(picture: Picture) -> Iterator[Symptom | Gap]:
    """Two processes with one client id: ``ConsumerGroupInfo`` keys members by channel (rocketmq.md 1.4).

    Both take the first place of the id, and the queues of the second place belong to nobody. An id that is connected
    twice in one look only has just reconnected.
    """
    if picture.is_kafka or not picture.members:
        return
    if not picture.newest.listed:
        yield Gap("the samples do not tell which broker lists whom")
        return
    twice = {client: count for client, count in Counter(picture.processes).items() if count > 1}
    if not twice:
        return
    doubled = [queue for queue in picture.queues if set(picture.owners.get(queue, ())) & set(twice)]
    orphans = _orphans_of(picture)
    unread = [queue for queue in orphans if not queue.is_retry]
    lost = f", and {counted(len(unread), picture.queue_noun)} of its second place belong to nobody" if unread else ""
    yield Symptom(
        severity=Severity.ERROR,
        title=f"{counted(len(twice), 'client id')} {verb(len(twice), 'runs', 'run')} more than once",
        evidence=tuple(_where(picture, client, count) for client, count in sorted(twice.items())[:20]),
        consequence=f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'is', 'are')} consumed by every process of "
        f"the id, so each message comes {max(twice.values())} times{lost}",
        advice="give each process a name of its own (setInstanceName, or -Drocketmq.client.name), or its own client IP "
        "where containers share the host's network",
        about=(*sorted(twice), *map(str, sorted({*doubled, *orphans}))),
    )


def _orphans_of(picture: Picture) -> list[Queue]:
    if picture.strategy is None:
        return [queue for queue in picture.queues if not picture.owners.get(queue)] if not picture.silent else []
    queues = [queue for queue in (*picture.queues, *picture.retry_queues) if isinstance(queue, MessageQueue)]
    return list(allocate_group(picture.strategy, queues, picture.processes).unowned)


def _where(picture: Picture, client: str, count: int) -> str:
    for listing in picture.newest.listed:
        if listing.clients and listing.clients.count(client) == count:
            here = [at for name, at in zip(listing.clients, listing.addresses, strict=False) if name == client]
            origin = f", from {some(here)}" if here else ""
            return f"{client} is connected to {listing.broker} {count} times{origin}"
    return f"{client} is connected {count} times"


def brokers_list_differently(picture: Picture) -> Iterator[Symptom | Gap]:
    """Brokers that list different members: a client asks one of them at random (``findBrokerAddrByTopic``).

    After a broker's restart its list is empty until each client's next heartbeat, at most 30 s (rocketmq.md 3.9).
    """
    if not picture.has_owners or picture.is_kafka:
        return
    at_work = _brokers_at_work(picture)
    lists = _lists(picture.newest, at_work)
    if len(lists) < 2:
        return
    everybody = frozenset().union(*lists.values())
    missing = {broker: sorted(everybody - found) for broker, found in lists.items() if everybody - found}
    if not missing:
        return
    lasting = picture.recent_s >= HEARTBEAT_S and all(_lists(one, at_work) == lists for one in picture.recent)
    torn = _torn(picture, [sorted(found) for found in lists.values()])
    yield Symptom(
        severity=Severity.ERROR if lasting else Severity.WARNING,
        title="Brokers list different members of the group",
        evidence=tuple(f"{broker} does not list {some(names)}" for broker, names in sorted(missing.items())),
        consequence="members that ask one broker share the queues out differently from those that ask the other: "
        + (f"up to {counted(torn, 'queue')} with two owners or none" if torn else "no queue is torn by it now"),
        advice="if it lasts longer than a minute, see why these clients send no heartbeat to that broker (network "
        "policy, blocked port, client 4.9 to 5.1 after a broker's restart), and restart them"
        if lasting
        else f"a broker or client that has just started explains it for {HEARTBEAT_S:.0f} s: try --watch 60",
        about=tuple(sorted({name for names in missing.values() for name in names})),
    )


def _brokers_at_work(picture: Picture) -> frozenset[str]:
    """Return the brokers of the data topics: clients keep connections to those of their topics only."""
    return frozenset(queue.broker for queue in picture.queues if isinstance(queue, MessageQueue))


def _lists(sample: GroupSample, brokers: frozenset[str]) -> dict[str, frozenset[str]]:
    return {
        one.broker: frozenset(one.clients) for one in sample.listed if one.clients is not None and one.broker in brokers
    }


def _torn(picture: Picture, lists: Sequence[Sequence[str]]) -> int:
    """Return how many queues have another owner by one list than by another."""
    if picture.strategy is None:
        return 0
    queues = [queue for queue in picture.queues if isinstance(queue, MessageQueue)]
    owners = []
    for clients in lists:
        found = allocate_group(picture.strategy, queues, clients)
        owners.append([found.clients[slot] if slot >= 0 else None for slot in found.owners.tolist()])
    return sum(len(set(of_queue)) > 1 for of_queue in zip(*owners, strict=True))


def nobody_there(picture: Picture) -> Iterator[Symptom | Gap]:
    """A group with commits, no members, and nothing that shows consumption: nothing is consumed, whatever arrives."""
    if picture.members or picture.unlisted_consumption:
        return
    arrived = sum(messages for messages, _ in picture.arrivals.values())
    waiting = sum(held(picture, queue) for queue in picture.offsets if not queue.is_retry)
    since = _last_consumed_s(picture)
    is_certain = not may_have_unlisted_consumers(picture.newest)
    yield Symptom(
        severity=_urgency(waiting or arrived, since),
        title="Nobody consumes: the group has no members"
        if is_certain or picture.is_kafka
        else "No consumption shows, and no broker lists a member",
        evidence=(
            f"{counted(len(picture.queues), picture.queue_noun)}, {counted(waiting, 'message')} waiting",
            "when it last consumed is not known"
            if since is None
            else f"the newest message that it consumed is {seconds(since)} old",
            *([f"{counted(arrived, 'message')} came in while we watched"] if arrived else []),
            *_doubts(picture),
        ),
        consequence=f"{counted(waiting, 'message')} {verb(waiting, 'waits', 'wait')}"
        + (f", {rate(arrived / picture.watched_s)} more come in" if arrived and picture.watched_s else "")
        if waiting or arrived
        else "nothing waits at present",
        advice=_way_to_consumption(picture, is_certain),
    )


def _doubts(picture: Picture) -> tuple[str, ...]:
    """Return why members may exist that no broker lists, where that is in doubt."""
    reason = unlisted_consumers(picture.newest, ())
    return () if reason is None else (reason,)


def _way_to_consumption(picture: Picture, is_certain: bool) -> str:
    """Return what to do; nothing is to be deleted unless nobody can be behind a proxy."""
    if picture.is_kafka:
        return "start a consumer; a group that is a leftover expires by itself (offsets.retention.minutes)"
    if is_certain:
        return "start a consumer, or delete the subscription group if it is a leftover"
    return f"ask each proxy whether it has members: {ask_a_proxy(picture)}; where none has any, start a consumer"


def ask_a_proxy(picture: Picture) -> str:
    """Return the command that lists the group's members at a proxy, by its remoting port (8080 unless set)."""
    activity = picture.newest.rocketmq.unlisted if picture.newest.rocketmq else None
    host = activity.proxies[0] if activity and activity.proxies else "PROXY"
    return f"mqadmin consumerConnection -n NAME_SERVER -g {picture.group} -b {host}:8080"


def members_unknown(picture: Picture) -> Iterator[Symptom | Gap]:
    """Consumption that no listed member explains: clients behind a proxy are in no broker's list."""
    signs = picture.unlisted_consumption
    if not signs:
        return
    behind = is_behind_proxy(picture.newest)
    listed = f"the brokers list {counted(len(picture.members), 'member')}" if picture.members else "no broker lists one"
    title = "Consumed through a proxy; members unknown" if behind else "Consumed by clients that no broker lists"
    yield Symptom(
        severity=Severity.NOTICE,
        title="Some members are unknown: the group is consumed through a proxy, too" if picture.members else title,
        evidence=(", ".join(signs), listed),
        consequence="how many consumers run, and what one of them can do, is not known here, so planner plan holds"
        + ("; the lag leaves out what they hold and have not acknowledged" if behind else ""),
        advice=f"each proxy lists the members: {ask_a_proxy(picture)}"
        if behind
        else "see which clients commit for this group without joining it (Kafka: assign; RocketMQ: behind a proxy)",
    )


def _last_consumed_s(picture: Picture) -> float | None:
    stored = max((entry.last_timestamp_ms for entry in picture.newest.offsets), default=0)
    return max(0.0, picture.newest.at.timestamp() - stored / 1000) if stored else None


def _urgency(is_needed: int, since: float | None) -> Severity:
    if not is_needed:
        return Severity.NOTICE
    return Severity.ERROR if since is not None and since <= LIVELY_S else Severity.WARNING


_KAFKA_MEMBER = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A Kafka member id: the client id and a UUID."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of membership or ownership between two looks."""

    joined: frozenset[str]
    left: frozenset[str]
    moved: int


def frequent_rebalances(picture: Picture) -> Iterator[Symptom | Gap]:
    """Membership that does not rest: changes seen between looks, and the members' own start times.

    Moves of queues in the looks after a change of members belong to it. Starts more than ``ONE_CHANGE_S`` apart are
    changes of their own.
    """
    if not picture.members:
        return
    seen = _changes(picture)
    per_hour = len(seen) * 3600 / picture.watched_s if picture.watched_s else 0.0
    if len(seen) >= REBALANCES and per_hour >= PER_HOUR:
        yield _restless(picture, seen, per_hour)
        return
    starts = _start_times(picture)
    bursts = 1 + sum(later - earlier > ONE_CHANGE_S for earlier, later in pairwise(starts)) if starts else 0
    if bursts >= REBALANCES + 1:
        yield Symptom(
            severity=Severity.WARNING,
            title=f"Members started at {bursts} different times within the last hour",
            evidence=(f"{counted(len(starts), 'member')} started {some(_ago(picture, starts))} ago",),
            consequence=f"each start, and the stop before it, is a rebalance: at least {bursts} in this hour, and each "
            f"moves about {_moved_by_one(picture)}",
            advice="see why consumers restart (crash loop, liveness probe, an autoscaler that flaps): "
            "kubectl get pods shows their restarts",
            about=tuple(sorted(member.identity for member in picture.members)),
        )


def _changes(picture: Picture) -> list[_Change]:
    """Return the rebalances that were seen: each change of members is one, with the moves of queues that follow it."""
    found: list[_Change] = []
    may_follow = False
    for before, after in pairwise(picture.samples):
        change = _between(before, after)
        if change is not None and may_follow and not (change.joined or change.left):
            last = found.pop()
            change = _Change(last.joined, last.left, last.moved + change.moved)
        if change is not None:
            found.append(change)
        may_follow = change is not None
    return found


def _between(before: GroupSample, after: GroupSample) -> _Change | None:
    old = frozenset(member.identity for member in before.members)
    new = frozenset(member.identity for member in after.members)
    owned_before, owned_after = before.owners, after.owners
    moved = sum(
        bool(owned_after.get(queue)) and set(owned_after[queue]) != set(owners)
        for queue, owners in owned_before.items()
        if not queue.is_retry
    )
    return _Change(new - old, old - new, moved) if old != new or moved else None


def _restless(picture: Picture, seen: Sequence[_Change], per_hour: float) -> Symptom:
    came = Counter(_place_of(client) for change in seen for client in change.joined)
    went = Counter(_place_of(client) for change in seen for client in change.left)
    moved = sum(change.moved for change in seen)
    who = sorted({client for change in seen for client in change.joined | change.left})
    places = sorted({*came, *went}, key=lambda place: (-came[place] - went[place], place))
    named = [_turns(place, came[place], went[place], who) for place in places[:5]]
    return Symptom(
        severity=Severity.WARNING,
        title=f"The group rebalances {per_hour:.0f} times an hour",
        evidence=(
            f"{counted(len(seen), 'rebalance')} within {seconds(picture.watched_s)}, "
            f"{counted(moved, picture.queue_noun)} moved",
            *(named or ["the same members all the time: their subscriptions change, or what there is to share"]),
        ),
        consequence=f"about {moved * 3600 / picture.watched_s:.0f} moves of a {picture.queue_noun} an hour, "
        "each with a pause and messages that come twice",
        advice="see what makes these members come and go (crash loop, probe, autoscaler that flaps), "
        "and whether all of them subscribe to the same",
        about=tuple(who),
    )


def _turns(place: str, came: int, went: int, clients: Sequence[str]) -> str:
    """Return how often members came to one place and went from it; several ids there are told by their number.

    Each restart brings a new id. It is not said that these are restarts: processes may share an address or client id.
    """
    here = [client for client in clients if _place_of(client) == place]
    turns = f"came {came} and went {went} times"
    return f"{here[0]} {turns}" if len(here) == 1 else f"{place} {turns}, under {len(here)} ids"


def _place_of(client: str) -> str:
    """Return what a member keeps at a restart: ``10.0.0.7`` of ``10.0.0.7@4711#123``, a Kafka member's client id."""
    member = _KAFKA_MEMBER.fullmatch(client)
    return member[1] if member else client.partition("@")[0]


def _start_times(picture: Picture) -> list[float]:
    """Return when members started within the last hour, seconds ago, ascending by time."""
    now = picture.newest.at.timestamp()
    told = [member.tuning.started_at_ms for member in picture.members if member.tuning]
    return sorted(start / 1000 for start in told if start is not None and 0 <= now - start / 1000 <= 3600)


def _ago(picture: Picture, starts: Sequence[float]) -> list[str]:
    now = picture.newest.at.timestamp()
    return [seconds(now - start) for start in reversed(starts)]


def _moved_by_one(picture: Picture) -> str:
    share = len(picture.queues) / max(1, len(picture.members))
    return f"{counted(max(1, round(share)), picture.queue_noun)} ({percent(1 / max(1, len(picture.members)))})"


def silent_members(picture: Picture) -> Iterator[Symptom | Gap]:
    """Members that did not answer the broker's question what they run (request 307, it waits 10 s).

    Java clients always answer while they are alive; members behind a proxy (gRPC) and some other languages cannot. One
    that was silent in the last look only may have just left.
    """
    through_proxy = [one for one in picture.rocketmq_members if one.is_grpc]
    if through_proxy:
        yield Gap(f"{counted(len(through_proxy), 'gRPC member')} cannot be asked what they run: {_ids(through_proxy)}")
    mute = [one for one in picture.rocketmq_members if one.tuning is None and not one.is_grpc]
    before = _mute(picture.samples[-2]) if len(picture.samples) > 1 else set()
    frozen = [one.client_id for one in mute if one.language == "JAVA" and one.client_id in before]
    others = [one for one in mute if one.language != "JAVA"]
    leaving = [one for one in mute if one.language == "JAVA" and one.client_id not in before]
    if leaving:
        yield Gap(
            f"{counted(len(leaving), 'member')} did not answer in the last look, and may have left: {_ids(leaving)}"
        )
    if others:
        kinds = some(sorted({one.language or "unknown language" for one in others}))
        yield Gap(f"{counted(len(others), 'member')} ({kinds}) cannot tell what they run: {_ids(others)}")
    if not frozen:
        return
    always = set(frozen).intersection(*(_mute(sample) for sample in picture.recent))
    owned = _last_owned(picture, frozen)
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


def _mute(sample: GroupSample) -> set[str]:
    return {member.identity for member in sample.members if member.tuning is None}


def _last_owned(picture: Picture, clients: Sequence[str]) -> list[Queue]:
    """Return the queues that these owned when they last answered."""
    found: dict[str, Sequence[Queue]] = {}
    for sample in picture.samples:
        for member in sample.members:
            if member.identity in clients and member.owned is not None:
                found[member.identity] = member.owned
    return sorted((queue for owned in found.values() for queue in owned if not queue.is_retry), key=str)


def broadcasting(picture: Picture) -> Iterator[Symptom | Gap]:
    """A broadcasting group: every member reads every queue and keeps its offsets to itself (rocketmq.md 3.8)."""
    models = {
        member.client_id: dict(member.tuning.properties).get("messageModel")
        for member in picture.rocketmq_members
        if member.tuning
    }
    said = {model for model in models.values() if model}
    if len(said) > 1:
        several = [client for client, model in sorted(models.items()) if model == "BROADCASTING"]
        yield Symptom(
            severity=Severity.ERROR,
            title="Some members broadcast, others share the queues",
            evidence=(f"broadcasting: {some(several)}", f"all others say {some(sorted(said - {'BROADCASTING'}))}"),
            consequence="the broadcasting ones read every queue although they count as members: the queues that fall "
            f"to them by allocation ({percent(len(several) / len(models))} of all) are committed by nobody",
            advice="give the group one message model, or the broadcasting members a group of their own",
            about=tuple(several),
        )
    elif said == {"BROADCASTING"}:
        yield Symptom(
            severity=Severity.NOTICE,
            title="The group broadcasts: every member reads every queue",
            evidence=(f"{counted(len(models), 'member')} with message model BROADCASTING",),
            consequence="more members share no load, and lag is known to the members alone: their offsets lie in "
            "local files",
            advice="scale it by what each member can do, not by lag; failed messages are not redelivered",
        )
