"""Members of a consumer group: which they are, how they are set up, what they own."""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.model.queues import MessageQueue, TopicPartition


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """What one member reports of one topic over its last minute (``ConsumeStatus``).

    ``consume_rt_ms`` is the mean time of one listener call in milliseconds, ``ok_per_s`` and ``failed_per_s``
    are messages per second.
    """

    topic: str
    consume_rt_ms: float
    ok_per_s: float
    failed_per_s: float


@dataclass(frozen=True, slots=True)
class ClientTuning:
    """How one member is set up, from its running info (request 307).

    ``strategy_class`` is the Java class name of its allocation strategy, ``None`` when the client does not
    report it. ``threads`` is its consume pool, ``batch_size`` the most messages of one listener call,
    ``pull_threshold`` the messages it caches per queue. ``properties`` holds the other properties that the
    forecasts use, by the client's own names. ``cached_messages`` were fetched and not yet consumed, over all queues
    that it owns; ``None`` where it does not report them.
    """

    strategy_class: str | None
    orderly: bool
    threads: int | None
    batch_size: int | None
    pull_threshold: int | None
    started_at_ms: int | None
    figures: tuple[TopicFigures, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    cached_messages: int | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one member wants of one topic: ``expression`` is a tag list (``*`` for all) or SQL, as ``kind`` says."""

    topic: str
    expression: str
    kind: str = "TAG"


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """Another group, and the client ids that are members of both."""

    group: str
    clients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One running client of a RocketMQ group.

    ``version`` is the ordinal of ``MQVersion.Version`` (513 is V5_5_0), 0 where it is not known. ``tuning`` and
    ``owned`` are ``None`` when the client did not answer: unknown, which is not the same as owning nothing; so are
    ``subscriptions``. ``protocol`` is ``remoting``, or ``grpc`` for a client of a proxy: it owns no queue by
    design, and answers nobody what it runs.
    """

    client_id: str
    address: str
    language: str
    version: int
    tuning: ClientTuning | None = None
    owned: tuple[MessageQueue, ...] | None = None
    subscriptions: tuple[Subscription, ...] | None = None
    protocol: str = "remoting"

    @property
    def is_grpc(self) -> bool:
        """True for a gRPC client, which takes messages of every queue and owns none."""
        return self.protocol == "grpc"

    @property
    def shares_messages(self) -> bool:
        """True where the broker hands it messages of queues that others read, too: gRPC clients pop from all."""
        return self.is_grpc

    @property
    def commits_each_queue(self) -> bool:
        """True for a pull client: it commits what it polled of a queue, where a push client's pool works on all."""
        return self.tuning is not None and ("PROP_CONSUME_TYPE", "CONSUME_ACTIVELY") in self.tuning.properties

    @property
    def data_topics(self) -> tuple[str, ...] | None:
        """The topics that it subscribes, without retry topics, sorted; ``None`` where it does not report them."""
        if self.subscriptions is None:
            return None
        topics = {subscription.topic for subscription in self.subscriptions}
        return tuple(sorted(topic for topic in topics if not topic.startswith("%RETRY%")))

    @property
    def identity(self) -> str:
        """The name that allocation sorts by: the client id."""
        return self.client_id

    @property
    def ip_addresses(self) -> tuple[str, ...]:
        """The addresses of its host: the one that its id names, and the one that its connection comes from.

        The id is ``ip@instance[@unit][@STREAM]`` (``ClientConfig.buildMQClientId``, 4.9 to 5.5), the IP being what the
        client takes for its own; behind address translation the broker sees another one. A gRPC client's id names no
        address.
        """
        announced = "" if self.is_grpc else self.client_id.partition("@")[0]
        return _distinct(announced, self.address.rpartition(":")[0].removeprefix("/").strip("[]"))

    @property
    def given_names(self) -> tuple[str, ...]:
        """What it is called by itself: the instance name in its id, of a gRPC client its host's name.

        A gRPC client's id is ``host@pid@number@time`` (``ClientId`` of rocketmq-clients 5.0), in a pod the pod's name.
        """
        first, _, rest = self.client_id.partition("@")
        return _distinct(first if self.is_grpc else rest.partition("@")[0])


@dataclass(frozen=True, slots=True)
class KafkaMember:
    """One running member of a Kafka group; whatever the broker does not show is ``None``.

    ``host`` is the address that its connection comes from, without the leading slash. ``topics`` is its subscription,
    ``assignors`` its own list in its own order (classic) or the one that it asks for (KIP-848). ``epoch`` is its member
    epoch (KIP-848), or the generation in which it last owned something when it joined the current one (classic).
    ``protocol`` is the one that it joined by: a ``consumer`` group may have ``classic`` members while it is migrated.
    ``owned`` of a ``share`` member are the partitions whose records it shares with other members, or has alone.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    rack: str | None = None
    topics: tuple[str, ...] | None = None
    assignors: tuple[str, ...] | None = None
    owned: tuple[TopicPartition, ...] | None = None
    epoch: int | None = None
    protocol: str | None = None

    @property
    def identity(self) -> str:
        """The name that allocation sorts by: the member id."""
        return self.member_id

    @property
    def ip_addresses(self) -> tuple[str, ...]:
        """The address that its connection comes from."""
        return _distinct(self.host.removeprefix("/"))

    @property
    def given_names(self) -> tuple[str, ...]:
        """What its application named it: client id and group instance id."""
        return _distinct(self.client_id, self.instance_id or "")

    @property
    def tuning(self) -> ClientTuning | None:
        """Always ``None``: a Kafka broker shows nothing of how a member is tuned."""
        return None

    @property
    def is_grpc(self) -> bool:
        """Always false: Kafka has one protocol for all clients."""
        return False

    @property
    def shares_messages(self) -> bool:
        """True in a share group, whose members share the records of a partition."""
        return self.protocol == "share"

    @property
    def commits_each_queue(self) -> bool:
        """Always true: a member works off what it polled of a partition and commits it."""
        return True

    @property
    def data_topics(self) -> tuple[str, ...] | None:
        """Its subscription; ``None`` where the broker does not show it."""
        return self.topics


def _distinct(*values: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


@dataclass(frozen=True, slots=True)
class BrokerMembers:
    """The members of the group that one broker lists, or one proxy; each keeps a list of its own.

    ``clients`` holds a client id once for each connection: twice means two processes with one id. ``addresses`` are
    those of the connections, in the same order, where the broker reported them. ``None``: it did not.
    """

    broker: str
    clients: tuple[str, ...] | None
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnlistedActivity:
    """What RocketMQ brokers know of consumers that none of them lists, as the clients of a cluster-mode proxy.

    ``proxies`` are the hosts of the proxies that are connected to the brokers, ``None`` where some broker did not
    answer. ``last_pop_s`` is seconds since the last pop, ``None`` without any within ten minutes: a client that waits
    for messages pops at least every 20 s. ``acknowledged_per_s`` is messages per second over the last minute, ``None``
    where the brokers have counted none since they started. ``is_complete`` says that every broker answered.
    """

    proxies: tuple[str, ...] | None
    last_pop_s: float | None = None
    acknowledged_per_s: float | None = None
    is_complete: bool = True

    @property
    def has_popped(self) -> bool:
        """True when some broker remembers a pop of the group."""
        return self.last_pop_s is not None or self.acknowledged_per_s is not None


GroupMember = Member | KafkaMember
"""A member of either system; all members of one group are of one kind."""


def rocketmq_members(members: Iterable[GroupMember]) -> tuple[Member, ...]:
    """Return RocketMQ's among the members, in their order: all of a group's, or none."""
    return tuple(member for member in members if isinstance(member, Member))


def kafka_members(members: Iterable[GroupMember]) -> tuple[KafkaMember, ...]:
    """Return Kafka's among the members, in their order: all of a group's, or none."""
    return tuple(member for member in members if isinstance(member, KafkaMember))
