"""What the brokers report of themselves: their settings of the group, their clocks, their disks."""

from collections.abc import Iterator

from planner.diagnosis.finding import Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import percent, some, verb
from planner.diagnosis.waiting import waiting
from planner.model.brokers import BrokerDisk
from planner.text.words import counted, duration

SKEWED_S = 5.0
"""Clocks that differ by less do no harm to ages and rates that span several seconds."""


def group_settings(evidence: GroupEvidence) -> Iterator[Symptom]:
    """Settings of the subscription group that stop it, or slow its rebalances (``SubscriptionGroupConfig``)."""
    rocketmq = evidence.newest.rocketmq
    if rocketmq is None:
        return
    settings = {entry.broker: entry.settings for entry in rocketmq.brokers if entry.settings is not None}
    shut = [broker for broker, entry in settings.items() if not entry.can_consume]
    if shut:
        queues = [queue for queue in evidence.queues if queue.place[-1] in shut]
        yield Symptom(
            severity=Severity.ERROR,
            title=f"The group may not consume from {some(shut)}",
            evidence=(f"consumeEnable is false at {some(shut)}",),
            consequence=f"{counted(len(queues), 'queue')} cannot be consumed: pulls are refused",
            advice="switch it on again: mqadmin updateSubGroup -s true",
            about=tuple(map(str, queues)),
        )
    mute = [broker for broker, entry in settings.items() if not entry.notifies_changes]
    if mute:
        yield Symptom(
            severity=Severity.WARNING,
            title=f"{some(mute)} {verb(len(mute), 'does', 'do')} not notify members of joins and leaves",
            evidence=(f"notifyConsumerIdsChangedEnable is false at {some(mute)}",),
            consequence="each change is noticed at the members' own ticks, up to 20 s apart: so long queues have two "
            "owners or none",
            advice="switch it on again: mqadmin updateSubGroup -a true",
        )


def clock_skew(evidence: GroupEvidence) -> Iterator[Symptom]:
    """Brokers whose clock is surely ahead of ours, or behind it, by ``SKEWED_S`` or more."""
    rocketmq = evidence.newest.rocketmq
    off: dict[str, float] = {}
    for broker in rocketmq.brokers if rocketmq else ():
        if broker.clock_ahead_s is not None:
            least, most = broker.clock_ahead_s
            if least >= SKEWED_S or most <= -SKEWED_S:
                off[broker.broker] = least if least >= SKEWED_S else most
    if off:
        worst = max(off.values(), key=abs)
        yield Symptom(
            severity=Severity.WARNING,
            title=f"The clock of {some(sorted(off))} differs from ours by {duration(abs(worst))} or more",
            evidence=(
                some(
                    f"{name} {duration(abs(by))} {'ahead' if by > 0 else 'behind'}" for name, by in sorted(off.items())
                ),
            ),
            consequence=f"how long messages have waited is wrong by {duration(abs(worst))}, as is every age told here",
            advice="see whether both machines keep time (NTP)",
            about=tuple(sorted(off)),
        )


def full_disks(evidence: GroupEvidence) -> Iterator[Symptom]:
    """Brokers whose disk is so full that they remove messages before their time, or refuse new ones."""
    rocketmq = evidence.newest.rocketmq
    for broker in rocketmq.brokers if rocketmq else ():
        disk = broker.disk
        if disk is None or not (_refuses(disk) or _removes(disk)):
            continue
        queues = [queue for queue in evidence.queues if queue.place[-1] == broker.broker]
        removed = f"it removes its oldest messages, consumed or not: {waiting(evidence, queues)}"
        refused = "it refuses new messages: producers get errors, or send to the other brokers"
        yield Symptom(
            severity=Severity.ERROR if _refuses(disk) else Severity.WARNING,
            title=f"The disk of {broker.broker} is {percent(disk.used)} full",
            evidence=tuple(
                f"above {percent(bound)} {what}"
                for bound, what in (
                    (disk.removes_from, "it removes messages that fileReservedTime would keep"),
                    (disk.refuses_from, "it refuses new ones"),
                )
                if bound is not None
            ),
            consequence="; ".join([refused] * _refuses(disk) + [removed] * _removes(disk)),
            advice="make room on its disk, or give it a larger one; a shorter fileReservedTime removes more, sooner",
            about=(broker.broker, *map(str, queues)),
        )


def _refuses(disk: BrokerDisk) -> bool:
    return disk.used > disk.refuses_from


def _removes(disk: BrokerDisk) -> bool:
    return disk.removes_from is not None and disk.used > disk.removes_from
