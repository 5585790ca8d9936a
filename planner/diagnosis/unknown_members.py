"""Groups without members, with members that brokers cannot see, or for which another number of members does nothing."""

from collections.abc import Iterator

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import rate, some, verb
from planner.diagnosis.waiting import uncommitted
from planner.model.membership import kafka_members
from planner.snapshot.other_levers import in_order_lever, kafka_lever
from planner.snapshot.unlisted import (
    PROXIES_FIELD,
    consumes_in_order,
    is_behind_proxy,
    is_of_grpc_clients,
    may_have_unlisted_consumers,
    silent_proxies,
    unlisted_consumers,
)
from planner.text.words import counted, duration

LIVELY_S = 86_400.0
"""A group that consumed something within the last day is in use; an older one may well be a leftover."""


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
        if is_certain or not evidence.system.has_proxies
        else "No consumption shows, and no broker lists a member",
        evidence=(
            f"{counted(len(evidence.queues), evidence.queue_noun)}, {counted(waiting, 'message')} waiting",
            "when it last consumed is not known"
            if since is None
            else f"the newest message that it consumed is {duration(since)} old",
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
    if evidence.system.leftover_advice is not None:
        return f"start a consumer; {evidence.system.leftover_advice}"
    if is_certain:
        return "start a consumer, or delete the subscription group if it is a leftover"
    return f"ask each proxy whether it has members: {ask_a_proxy(evidence)}; where none has any, start a consumer"


def ask_a_proxy(evidence: GroupEvidence) -> str:
    """Return the command that lists the group's members at a proxy, by its remoting port (8080 unless set)."""
    activity = evidence.newest.unlisted_activity
    host = activity.proxies[0] if activity and activity.proxies else "PROXY"
    return f"mqadmin consumerConnection -n NAME_SERVER -g {evidence.group} -b {host}:8080"


def _name_a_proxy(evidence: GroupEvidence) -> str:
    """Return what makes the members known: a proxy that is named, or one of those that were that answers."""
    if silent := silent_proxies(evidence.newest):
        return f"see whether {some(silent)} runs and answers at its remoting port; the planner asks it for the members"
    return (
        f"name a proxy's remoting port: {PROXIES_FIELD} of the policy, or --proxy HOST:8080 here; by hand: "
        f"{ask_a_proxy(evidence)}"
    )


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
        advice=_name_a_proxy(evidence)
        if behind
        else "see which clients commit for this group without joining it (Kafka: assign; RocketMQ: behind a proxy)",
    )


def other_lever(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Streams applications, Connect sinks and groups in order behind a proxy: more members do not make them faster."""
    newest = evidence.newest
    members = kafka_members(evidence.members)
    lever = kafka_lever(newest.kafka.assignor if newest.kafka else None, [member.client_id for member in members])
    if is_of_grpc_clients(newest) and consumes_in_order(newest):
        lever = in_order_lever(len(evidence.queues))
    if lever is None:
        return
    yield Symptom(
        severity=Severity.NOTICE,
        title=f"The group is {lever.kind}",
        evidence=(lever.evidence, lever.reason),
        consequence="the planner decides no number of consumers for it, so planner plan holds",
        advice=f"its lever: {lever.lever}",
    )


def _last_consumed_s(evidence: GroupEvidence) -> float | None:
    stored = max((entry.last_timestamp_ms for entry in evidence.newest.offsets), default=0)
    return max(0.0, evidence.newest.at.timestamp() - stored / 1000) if stored else None


def _urgency(is_needed: int, since: float | None) -> Severity:
    if not is_needed:
        return Severity.NOTICE
    return Severity.ERROR if since is not None and since <= LIVELY_S else Severity.WARNING
