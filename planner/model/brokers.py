"""What a RocketMQ broker is set to, as far as it changes what its groups do."""

from dataclasses import dataclass

V4_9_0 = 393
"""Ordinal of ``MQVersion.Version`` V4_9_0; from here on a snapshot precedes each release, ten releases a minor one."""


def release(ordinal: int) -> str | None:
    """Return the release that an ordinal of ``MQVersion.Version`` names, ``None`` before 4.9.0.

    393 is 4.9.0, 413 is 5.0.0, 513 is 5.5.0; a snapshot, 514, counts as the release it leads to, 5.5.1.
    """
    number, patch = divmod((ordinal - V4_9_0 + 1) // 2, 10)
    if ordinal < V4_9_0:
        return None
    return f"4.9.{patch}" if number == 0 else f"5.{number - 1}.{patch}"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A subscription group's settings on one broker (``SubscriptionGroupConfig``).

    ``retry_max_times`` is how often a failed message comes again before it is a dead letter, ``retry_queues`` how many
    queues the group's ``%RETRY%`` topic has there. ``notifies_changes`` is False where members learn of others only at
    their own tick (20 s). Without ``can_consume`` the broker hands out nothing. ``in_order`` is
    ``consumeMessageOrderly``: gRPC clients then get a queue's messages one after the other (FIFO); remoting clients do
    not go by it. ``None`` in older samples.
    """

    can_consume: bool
    can_broadcast: bool
    notifies_changes: bool
    retry_queues: int
    retry_max_times: int
    in_order: bool | None = None


@dataclass(frozen=True, slots=True)
class BrokerDisk:
    """How full the disk of a broker's messages is: all shares are of 1.

    Above ``removes_from`` the broker removes its oldest messages however young they are (``None``: it is set not to),
    and above ``refuses_from`` it refuses new ones (``DefaultMessageStore$CleanCommitLogService``).
    """

    used: float
    removes_from: float | None
    refuses_from: float


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What is known of one broker beside the group's own figures; ``None`` for what it did not report.

    ``version`` is the ordinal of ``MQVersion.Version`` (513 is V5_5_0). ``permission`` is 4 for read plus 2 for write,
    for all topics. Its clock is ahead of ours by a number of seconds within ``clock_ahead_s``: it reports whole
    seconds, and the answer takes time. ``settings`` are those of the group that the sample is about; ``None`` also
    where the broker has none.
    """

    broker: str
    version: int | None = None
    role: str | None = None
    permission: int | None = None
    clock_ahead_s: tuple[float, float] | None = None
    settings: GroupSettings | None = None
    disk: BrokerDisk | None = None
