"""What a Kafka group shows: its state, protocol, assignors and static members (kafka.md 3, 4)."""

from collections.abc import Iterator
from statistics import median_low

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.load import MemberLoad, group_load
from planner.diagnosis.phrases import rate, some, verb
from planner.model.membership import kafka_members
from planner.simulation.kafka.share import LOCK_S, MOST_POLLED
from planner.text.words import counted, duration

LARGE = 10
"""Members from which a stop of all members at each change is worth a finding."""

HEARTBEAT_S = 3.0
"""``heartbeat.interval.ms`` of a classic member by default; a broker does not show the members' own."""

EAGER = ("range", "roundrobin", "sticky")
"""Assignors that revoke everything at each rebalance. ``cooperative-sticky`` does not, by itself."""

RESTART_S = 30.0
"""What a pod takes to restart where the Deployment does not show it: most JVM consumers are back by then."""

_SESSIONS = {"classic": "session.timeout.ms", "consumer": "group.consumer.session.timeout.ms"}
"""What ends a dead member's session, by the group's protocol."""

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Reconciling", "Assigning")


def eager_group(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A large classic group with an eager assignor: every change stops every partition (kafka.md 3.5)."""
    group, members = evidence.newest.kafka, kafka_members(evidence.members)
    if group is None or group.protocol != "classic" or len(members) < LARGE or group.assignor not in EAGER:
        return
    count = len(members)
    stop_s = HEARTBEAT_S * (count - 1) / (2 * (count + 1))
    yield Symptom(
        severity=Severity.WARNING,
        title=f"{count} members stop at every change: {group.assignor} is eager",
        evidence=(f"classic protocol, assignor {group.assignor}, {counted(len(evidence.queues), 'partition')}",),
        consequence=f"each join or leave stops all {counted(len(evidence.queues), 'partition')} for about "
        f"{duration(stop_s)} on average with default heartbeats, a crash with its restart for up to the session "
        f"timeout; a rolling restart does that {2 * count} times",
        advice="move to cooperative-sticky (two rolling restarts), or to group.protocol=consumer (brokers 4.0+)",
        about=tuple(member.member_id for member in members),
    )


def mixed_assignors(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that offer different lists of assignors: only what all of them know can be chosen (kafka.md 3.3)."""
    group, members = evidence.newest.kafka, kafka_members(evidence.members)
    if group is None or not members or group.protocol != "classic":
        return
    offered = {member.member_id: member.assignors for member in members}
    lists = {assignors for assignors in offered.values() if assignors is not None}
    if None in offered.values():
        yield Gap("brokers show the assignor that was agreed on, not what each member offers")
    if len(lists) < 2:
        return
    common = set.intersection(*(set(assignors) for assignors in lists))
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Members offer {len(lists)} different lists of assignors",
        evidence=tuple(
            f"{some(assignors)}: {some([client for client, of_client in offered.items() if of_client == assignors], 3)}"
            for assignors in sorted(lists)
        ),
        consequence=f"only {some(sorted(common)) or 'nothing'} can be chosen, {group.assignor or 'none'} is; a member "
        "without any of these cannot join",
        advice="finish the rolling restart that changes the assignor; until then do not scale",
        about=tuple(offered),
    )


def dynamic_members(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members without ``group.instance.id``: every restart of one is a leave and a join (KIP-345).

    Members of share groups have none, and need none.
    """
    group, members = evidence.newest.kafka, kafka_members(evidence.members)
    rolls = evidence.deployment is not None and evidence.deployment.strategy.kind == "RollingUpdate"
    if group is None or group.is_share or not members or not (rolls or len(members) >= LARGE):
        return
    dynamic = [member for member in members if not member.instance_id]
    if not dynamic:
        return
    count = len(dynamic)
    changes_names = "a Deployment's pods change their names: run them as a StatefulSet, then " if rolls else ""
    yield Symptom(
        severity=Severity.WARNING if rolls else Severity.NOTICE,
        title=f"{counted(count, 'member')} {verb(count, 'has', 'have')} no static id",
        evidence=(f"no group.instance.id: {some(member.client_id for member in dynamic)}",),
        consequence=f"a rolling restart of them rebalances the group {2 * count} times; with static ids and a session "
        "timeout above the restart time it would not at all",
        advice=f"{changes_names}set group.instance.id to a name that a restart keeps"
        + (" (the pod's, which a StatefulSet keeps)" if rolls else " (a StatefulSet keeps its pods' names)")
        + " and session.timeout.ms above the time of a restart",
        about=tuple(member.member_id for member in dynamic),
    )


def unstable_group(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A group that is rebalancing in every sample: a member never rejoins, or joins fail again and again."""
    group = evidence.newest.kafka
    if group is None or group.state not in REBALANCING:
        return
    lasting = all(sample.kafka is not None and sample.kafka.state in REBALANCING for sample in evidence.recent)
    lasting = lasting and len(evidence.recent) > 1
    yield Symptom(
        severity=Severity.ERROR if lasting and evidence.watched_s >= 5 else Severity.NOTICE,
        title=f"The group is rebalancing ({group.state})",
        evidence=(
            f"in that state at {'every sample' if lasting else 'the last sample'} of {duration(evidence.watched_s)}",
        ),
        consequence=f"while it lasts {counted(len(evidence.queues), 'partition')} may stand still (all of them with an "
        "eager assignor), at most for max.poll.interval.ms (5 min by default)",
        advice="see which member does not poll (a batch that takes minutes), or joins and leaves in a loop"
        if lasting
        else "run again with --watch 60",
    )


def mixed_protocols(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A KIP-848 group with members that still speak the classic protocol: a migration under way (kafka.md 3.6)."""
    members = kafka_members(evidence.members)
    classic = [member for member in members if member.protocol == "classic"]
    if evidence.newest.kafka is None or evidence.newest.kafka.protocol != "consumer" or not classic:
        return
    yield Symptom(
        severity=Severity.WARNING,
        title=f"{len(classic)} of {counted(len(members), 'member')} still {verb(len(classic), 'speaks', 'speak')} the "
        "classic protocol",
        evidence=(f"classic: {some(member.client_id for member in classic)}",),
        consequence=f"{counted(len(classic), 'member')} {verb(len(classic), 'stops', 'stop')} at every change as "
        "before, and the broker's assignor decides for all",
        advice="finish the rolling restart with group.protocol=consumer, or roll back",
        about=tuple(member.member_id for member in classic),
    )


def late_batches(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members of a share group whose full batch takes longer than the lock on its records (KIP-932).

    Then others are given what they still work on; after ``group.share.delivery.count.limit`` (5) deliveries the broker
    gives a record up. Seen of Java's client (docs/evidence.md). Brokers show neither the lock nor the batch: both as
    where nobody set them.
    """
    if not evidence.is_share:
        return
    load = group_load(evidence)
    busy = [*(of_member for of_member, _ in load.overloaded), *load.undecided]
    late = [each for each in busy if each.backlog >= MOST_POLLED and _pace(each) * LOCK_S < MOST_POLLED]
    if not late:
        return
    slowest = min(map(_pace, late))
    members = sorted({member for each in late for member in each.members})
    yield Symptom(
        severity=Severity.WARNING,
        title=f"A full batch takes {some(members)} longer than the lock on its records",
        evidence=(
            f"a member does {rate(slowest)}, so {MOST_POLLED} records (max.poll.records, if nobody set it) take it "
            f"{duration(MOST_POLLED / slowest)}; their lock ends after {LOCK_S} s "
            "(group.share.record.lock.duration.ms, if nobody set it)",
        ),
        consequence="what is not acknowledged by then is given to others while it is still worked on, and given up "
        "after five deliveries (group.share.delivery.count.limit)",
        advice=f"set max.poll.records to {_records_in_half_the_lock(slowest)} or less with "
        "share.acquire.mode=record_limit, or a longer group.share.record.lock.duration.ms",
        about=tuple(members),
    )


def _pace(load: MemberLoad) -> float:
    """Return what each of the members does, messages a second."""
    return load.pace / len(load.members)


def _records_in_half_the_lock(messages_per_s: float) -> int:
    """Return how many records are done in half of the lock's time, one at the least."""
    return max(int(messages_per_s * LOCK_S / 2), 1)


def session_timeout(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Whether the session timeout that the policy states goes with a pod's restart: brokers do not show it.

    A dead member is one until its session ends. Members without a static id should be out of the group before their
    pod is back under a new one; with one, a pod that is back in time goes on as if nothing had been (KIP-345).
    """
    group, members = evidence.newest.kafka, kafka_members(evidence.members)
    if group is None or group.is_share or not members:
        return
    name = _SESSIONS.get(group.protocol, _SESSIONS["classic"])
    stated = dict(evidence.timing.settings).get(name) if evidence.timing else None
    if stated is None:
        yield Gap(f"brokers do not show {name}: state it in the policy's spec.timing.settings")
        return
    session_s, measured_s = int(stated) / 1000, _restart_s(evidence)
    restart_s = RESTART_S if measured_s is None else measured_s
    severity = Severity.NOTICE if measured_s is None else Severity.WARNING
    sentences = (f"{name} {stated}, by the policy", _words_of_restart(measured_s))
    static = [member for member in members if member.instance_id]
    dynamic = [member for member in members if not member.instance_id]
    if dynamic and session_s > restart_s:
        share = counted(max(1, round(len(evidence.queues) / len(members))), "partition")
        yield Symptom(
            severity=severity,
            title=f"The session timeout of {duration(session_s)} is longer than a restart",
            evidence=(*sentences, f"no group.instance.id: {some(member.client_id for member in dynamic)}"),
            consequence=f"when a pod dies, about {share} stand still for up to {duration(session_s)}, "
            f"{duration(session_s - restart_s)} of them with the new pod there"
            + ("; no rebalance ends before, as it waits for the dead member" if group.protocol == "classic" else ""),
            advice=f"lower {name} (three heartbeats at the least), or set group.instance.id: then a restart moves "
            "nothing",
            about=tuple(member.member_id for member in dynamic),
        )
    if static and session_s < restart_s:
        yield Symptom(
            severity=severity,
            title=f"The session timeout of {duration(session_s)} is shorter than a restart",
            evidence=(*sentences, f"with group.instance.id: {some(member.client_id for member in static)}"),
            consequence=f"{counted(len(static), 'member')} with a static id {verb(len(static), 'is', 'are')} dropped "
            "at a restart all the same: it is two rebalances instead of none",
            advice=f"raise {name} above the time of a restart",
            about=tuple(member.member_id for member in static),
        )


def _restart_s(evidence: GroupEvidence) -> float | None:
    """Return how long pods took to be ready, the middle one; ``None`` where the Deployment does not show it.

    A pod whose containers restarted became ready later than that.
    """
    pods = evidence.deployment.pods if evidence.deployment else None
    known = [
        (pod.ready_at - pod.started_at).total_seconds()
        for pod in pods or ()
        if pod.is_ready and pod.ready_at and pod.started_at and not pod.restarts
    ]
    return median_low(known) if known else None


def _words_of_restart(measured_s: float | None) -> str:
    if measured_s is None:
        return f"how long a pod takes to restart is not known: compared with {duration(RESTART_S)}"
    return f"a pod takes {duration(measured_s)} until it is ready (the middle one of the Deployment's)"
