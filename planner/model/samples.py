"""One sample of one group: what the brokers reported at one time. The raw material of the lag history."""

from dataclasses import dataclass
from datetime import datetime

from planner.model.brokers import BrokerState
from planner.model.deployments import Deployment
from planner.model.membership import BrokerMembers, GroupMember, OtherGroup, UnlistedActivity
from planner.model.queues import Queue
from planner.model.routes import RouteTable
from planner.model.times import check_time


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """Offsets of one queue, in messages.

    ``broker_offset`` is the offset that the next message will get, ``consumer_offset`` the next one to be consumed as
    the broker has it stored: ``None`` when the group never committed on the queue or the broker does not report it.
    ``last_timestamp_ms`` is the store time of the newest consumed message, 0 when there is none or it is gone.
    ``first_offset`` is the oldest message still stored, ``None`` where nobody asked.
    """

    queue: Queue
    broker_offset: int
    consumer_offset: int | None
    last_timestamp_ms: int = 0
    first_offset: int | None = None

    @property
    def lag(self) -> int | None:
        """Messages between the two offsets, never below 0: they are read one after the other.

        Without a consumer offset it is ``None``, except where the queue holds no message that anybody could be behind.
        """
        if self.consumer_offset is None:
            return 0 if self.broker_offset in (0, self.first_offset) else None
        return max(0, self.broker_offset - self.consumer_offset)


@dataclass(frozen=True, slots=True)
class KafkaGroup:
    """What a Kafka coordinator reports of the group as a whole.

    ``state`` as the broker names it (``Stable``, ``PreparingRebalance``, ``Empty``, ...), ``protocol`` is ``classic``,
    ``consumer`` (KIP-848) or ``share`` (KIP-932), ``assignor`` the one that was agreed on, ``epoch`` the group's
    generation or epoch where it can be had, ``coordinator`` a broker id.
    """

    state: str
    protocol: str
    assignor: str | None
    epoch: int | None = None
    coordinator: int | None = None

    @property
    def is_share(self) -> bool:
        """True for a share group, whose members share the records of a partition."""
        return self.protocol == "share"


@dataclass(frozen=True, slots=True)
class RocketMQGroup:
    """What RocketMQ brokers report of the group as a whole; sorted, several where brokers differ.

    ``consume_types`` are ``CONSUME_PASSIVELY`` (push), ``CONSUME_ACTIVELY`` (pull) or ``CONSUME_POP``;
    ``message_models`` ``CLUSTERING`` or ``BROADCASTING``. Both are empty while nobody is connected. ``brokers`` are in
    name order. ``unlisted`` says what brokers know of consumers that they do not list; ``None`` in older samples, and
    where the listed members explain everything. ``proxies`` has the members that each proxy of the policy lists, with
    its address for ``broker``; empty where the policy names none. ``other_groups`` are those that clients of this one
    serve, too.
    """

    consume_types: tuple[str, ...] = ()
    message_models: tuple[str, ...] = ()
    brokers: tuple[BrokerState, ...] = ()
    unlisted: UnlistedActivity | None = None
    proxies: tuple[BrokerMembers, ...] = ()
    other_groups: tuple[OtherGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupSample:
    """Routes, members and offsets of one group, read within ``took_s`` seconds from ``at`` on (UTC).

    ``members`` and ``offsets`` are sorted by client id and by queue. ``problems`` names, in sentences, every
    part that could not be read or that brokers disagree on; an empty tuple means that the sample is complete.
    ``dead_letters`` counts the messages in the group's ``%DLQ%`` topic, ``None`` where that is not known.
    ``deployment`` is the one that serves the group, where it was read.
    ``kafka`` is set for Kafka groups only, ``rocketmq`` for RocketMQ groups of newer captures. ``listed`` has the
    members that each RocketMQ broker lists, in broker order; empty where nobody asked.
    """

    system: str
    cluster: str
    group: str
    at: datetime
    took_s: float
    routes: RouteTable
    members: tuple[GroupMember, ...]
    offsets: tuple[QueueOffsets, ...]
    problems: tuple[str, ...] = ()
    dead_letters: int | None = None
    kafka: KafkaGroup | None = None
    deployment: Deployment | None = None
    listed: tuple[BrokerMembers, ...] = ()
    rocketmq: RocketMQGroup | None = None

    def __post_init__(self) -> None:
        check_time(f"sample of group {self.group}", self.at)

    @property
    def data_queues(self) -> tuple[Queue, ...]:
        """The queues that members read, without those of the group's retry topic."""
        return tuple(queue for queue in self.routes.read_queues if not queue.is_retry)

    @property
    def unlisted_activity(self) -> UnlistedActivity | None:
        """What brokers know of consumers that they do not list; ``None`` where the listed ones explain everything."""
        return self.rocketmq.unlisted if self.rocketmq else None

    @property
    def owners(self) -> dict[Queue, tuple[str, ...]]:
        """The owners of each queue as the members report them; two names mean that both consume it."""
        owners: dict[Queue, tuple[str, ...]] = {}
        for member in self.members:
            for queue in member.owned or ():
                owners[queue] = (*owners.get(queue, ()), member.identity)
        return owners

    @property
    def consumers(self) -> dict[Queue, tuple[str, ...]]:
        """The members that read each queue: its owners, and every gRPC client, as these take messages of all queues."""
        shared_by = tuple(member.identity for member in self.members if member.is_grpc)
        if not shared_by:
            return self.owners
        owners = self.owners
        return owners | {queue: (*owners.get(queue, ()), *shared_by) for queue in self.data_queues}
