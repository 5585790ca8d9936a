"""How the clients themselves are set up: shutdown, versions, order, clocks."""

from collections.abc import Iterator
from typing import Final

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence, tuning_property
from planner.diagnosis.phrases import percent, some, verb
from planner.model.membership import Member
from planner.text.words import counted

V4_9_0: Final = 393
V4_9_5: Final = 403
V5_0_0: Final = 413
V5_2_0: Final = 453
"""Ordinals of ``MQVersion.Version``; release versions follow their snapshots."""

HALF_A_CALL = 0.5
"""Calls running at any moment, on average, from which a stop usually interrupts one."""


def shutdown_without_wait(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """``awaitTerminationMillisWhenShutdown`` 0, the default: a stop interrupts every running call (rocketmq.md 3.10).

    How many run at a time follows from Little's law: messages per second times seconds of a call. Below half a call a
    stop usually interrupts nothing, and that is no finding.
    """
    exposed = {
        member.client_id: running
        for member in evidence.rocketmq_members
        if tuning_property(member, "awaitTerminationMillisWhenShutdown") == "0" and not _is_orderly(member)
        for running in [_running_calls(member)]
        if running is not None and running >= HALF_A_CALL
    }
    if not exposed:
        return
    total = sum(exposed.values())
    yield Symptom(
        severity=Severity.NOTICE,
        title=f"{counted(len(exposed), 'member')} "
        f"{verb(len(exposed), 'stops without waiting for its', 'stop without waiting for their')} calls",
        evidence=(
            "awaitTerminationMillisWhenShutdown is 0, the default",
            f"calls running at a time: {some(f'{client} {count:.1f}' for client, count in sorted(exposed.items()))}",
        ),
        consequence=f"each stop interrupts about {total / len(exposed):.1f} calls, and their messages come twice: "
        f"about {total:.0f} in a rolling restart of them all",
        advice="set awaitTerminationMillisWhenShutdown to a few calls' time (5000 is a good start), below the pod's "
        "terminationGracePeriodSeconds",
        about=tuple(sorted(exposed)),
    )


def _is_orderly(member: Member) -> bool:
    return bool(member.tuning and member.tuning.orderly)


def _running_calls(member: Member) -> float | None:
    """Return how many listener calls run at a time on average, at most its threads; ``None`` when it does not tell."""
    if member.tuning is None:
        return None
    batch = member.tuning.batch_size or 1
    busy = sum((f.ok_per_s + f.failed_per_s) / batch * f.consume_rt_ms / 1000 for f in member.tuning.figures)
    return min(busy, float(member.tuning.threads or busy))


def old_clients(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Client versions with faults that later ones do not have (rocketmq.md 1.4, 3.7, 9)."""
    java = [member for member in evidence.rocketmq_members if member.language == "JAVA" and member.version]
    equal_ids = [member for member in java if member.version < V4_9_0]
    slow_locks = [member for member in java if V4_9_0 <= member.version < V4_9_5 and _is_orderly(member)]
    slow_hand_over = [member for member in java if V4_9_5 <= member.version < V5_0_0 and _is_orderly(member)]
    if equal_ids:
        yield _old(
            equal_ids,
            Severity.WARNING,
            "older than 4.9.0: the client id holds the process id alone",
            "two containers that share the host's network get one id, and half of the queues is lost (#667, #2760)",
            "upgrade to 4.9.8 or newer, or set a client IP or instance name of each process's own",
        )
    if slow_locks:
        yield _old(
            slow_locks,
            Severity.WARNING,
            "orderly, and older than 4.9.5: a lock that was just taken is not known to the client itself",
            "each queue that moves starts up to 20 s late (#2621, #5465)",
            "upgrade to 4.9.8 or newer",
        )
    if slow_hand_over:
        yield _old(
            slow_hand_over,
            Severity.NOTICE,
            "orderly, and older than 5.0: who loses the race for a queue's lock tries again at the next tick only",
            "a hand-over may take 20 s instead of 0.5 s, on every change of members",
            "upgrade to 5.2 or newer if the group is to scale often",
        )


def _old(members: list[Member], severity: Severity, fault: str, consequence: str, advice: str) -> Symptom:
    names = sorted(member.client_id for member in members)
    return Symptom(
        severity=severity,
        title=f"{counted(len(names), 'member')} {verb(len(names), 'runs', 'run')} a client with a known fault",
        evidence=(fault, f"members: {some(names)}"),
        consequence=consequence,
        advice=advice,
        about=tuple(names),
    )


def mixed_versions(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members of generations that rebalance differently: before 5.2 each 20 s, from 5.2 on 1 s when unbalanced."""
    java = {member.client_id: member.version for member in evidence.rocketmq_members if member.language == "JAVA"}
    old = sorted(client for client, version in java.items() if 0 < version < V5_2_0)
    new = sorted(client for client, version in java.items() if version >= V5_2_0)
    if old and new:
        yield Symptom(
            severity=Severity.NOTICE,
            title="Members run client versions that rebalance at different speeds",
            evidence=(f"before 5.2: {some(old)}", f"5.2 or newer: {some(new)}"),
            consequence="after a change the new ones agree within a second or two, the old ones may need up to 20 s: "
            "so long a queue can have two owners or none",
            advice="finish the upgrade",
            about=(*old, *new),
        )


def orderly_members(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Some members in order, some concurrently: the order is lost, and locks are taken by half of the group."""
    orders = {member.client_id: _is_orderly(member) for member in evidence.rocketmq_members if member.tuning}
    if len(set(orders.values())) < 2:
        return
    ordered = sorted(client for client, is_orderly in orders.items() if is_orderly)
    yield Symptom(
        severity=Severity.ERROR,
        title="Some members consume in order, others concurrently",
        evidence=(f"in order: {some(ordered)}", f"concurrently: {some(sorted(set(orders) - set(ordered)))}"),
        consequence=f"{percent(1 - len(ordered) / len(orders))} of the members ignore the order and the locks: "
        "messages overtake each other there, and after a move two members may work on one queue",
        advice="register the same kind of listener in every member",
        about=tuple(sorted(orders)),
    )
