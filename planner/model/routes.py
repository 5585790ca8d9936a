"""Routes: which brokers hold which queues of a topic, as the name server reports it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from planner.model.queues import MessageQueue, Queue, TopicPartition

PERMISSION_WRITE = 2
PERMISSION_READ = 4
MAX_QUEUES: Final = 65_536
"""Most queues of a topic on one broker that we believe in; a server that claims more would have us list billions."""

MAX_GROUP_QUEUES: Final = 200_000
"""Most queues of all topics of one group; a route of 17 KB could otherwise have us list millions."""


@dataclass(frozen=True, slots=True)
class BrokerQueues:
    """What one broker holds of one topic (``QueueData``): how many queues are read and written, and the permission.

    Raises ``ValueError`` for fewer queues than none or more than ``MAX_QUEUES``.
    """

    broker: str
    read_queues: int
    write_queues: int
    permission: int

    def __post_init__(self) -> None:
        """Refuse counts that no broker has."""
        for count in (self.read_queues, self.write_queues):
            if not 0 <= count <= MAX_QUEUES:
                raise ValueError(f"{count} queues of a topic on broker {self.broker}, expected 0 to {MAX_QUEUES}")

    @property
    def is_readable(self) -> bool:
        """True when consumers see the queues (``PermName#isReadable``: bit 4)."""
        return bool(self.permission & PERMISSION_READ)


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The route of one topic, brokers in name order; ``is_static`` marks a 5.x static topic (mapped queues)."""

    topic: str
    brokers: tuple[BrokerQueues, ...]
    is_static: bool = False

    @property
    def read_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that consumers allocate among themselves, sorted.

        As ``MQClientInstance#topicRouteData2TopicSubscribeInfo``: every readable broker, ids 0 to read_queues - 1,
        whether or not its master is there.
        """
        return tuple(
            sorted(
                MessageQueue(self.topic, broker_queues.broker, queue_id)
                for broker_queues in self.brokers
                if broker_queues.is_readable
                for queue_id in range(broker_queues.read_queues)
            )
        )


def count_read_queues(routes: Iterable[TopicRoute]) -> int:
    """Return how many queues the routes state, readable or not, without listing them."""
    return sum(broker_queues.read_queues for route in routes for broker_queues in route.brokers)


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where one broker listens: its master's address, or a slave's when no master is there."""

    broker: str
    cluster: str
    address: str
    is_master: bool = True


@dataclass(frozen=True, slots=True)
class PartitionRoute:
    """Where one Kafka partition lies.

    ``leader`` and ``replicas`` are broker ids, ``leader`` is ``None`` while there is none. ``racks`` are those of the
    replicas, in their order, ``""`` where a broker has none.
    """

    partition: TopicPartition
    leader: int | None
    replicas: tuple[int, ...] = ()
    racks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteTable:
    """All topics of one group with their routes (topics in name order), and the brokers' addresses.

    RocketMQ has ``topics``, Kafka ``partitions`` (sorted). Raises ``ValueError`` for topics of more than
    ``MAX_GROUP_QUEUES`` queues.
    """

    topics: tuple[TopicRoute, ...] = ()
    brokers: tuple[BrokerAddress, ...] = ()
    partitions: tuple[PartitionRoute, ...] = ()

    def __post_init__(self) -> None:
        """Refuse counts in few letters that stand for millions of queues."""
        if (queues := count_read_queues(self.topics)) > MAX_GROUP_QUEUES:
            raise ValueError(f"{queues} queues of {len(self.topics)} topics, expected {MAX_GROUP_QUEUES} at most")

    @property
    def read_queues(self) -> tuple[Queue, ...]:
        """The queues of all topics that members read, sorted."""
        if self.partitions:
            return tuple(route.partition for route in self.partitions)
        return tuple(queue for route in self.topics for queue in route.read_queues)

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The topics, in name order."""
        return tuple(dict.fromkeys([*(r.topic for r in self.topics), *(r.partition.topic for r in self.partitions)]))
