"""Routes: which brokers hold which queues of a topic, as the name server tells it."""

from dataclasses import dataclass

from planner.model.queues import MessageQueue

PERMISSION_WRITE = 2
PERMISSION_READ = 4


@dataclass(frozen=True, slots=True)
class BrokerQueues:
    """What one broker holds of one topic (``QueueData``): how many queues are read and written, and the permission."""

    broker: str
    read_queues: int
    write_queues: int
    permission: int

    @property
    def is_readable(self) -> bool:
        """True when consumers see the queues (``PermName#isReadable``: bit 4)."""
        return bool(self.permission & PERMISSION_READ)


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The route of one topic, brokers in name order."""

    topic: str
    brokers: tuple[BrokerQueues, ...]

    @property
    def read_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that consumers allocate among themselves, sorted.

        As ``MQClientInstance#topicRouteData2TopicSubscribeInfo``: every readable broker, ids 0 to read_queues - 1,
        whether or not its master is there.
        """
        return tuple(
            sorted(
                MessageQueue(self.topic, part.broker, queue_id)
                for part in self.brokers
                if part.is_readable
                for queue_id in range(part.read_queues)
            )
        )


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where one broker listens: its master's address, or a slave's when no master is there."""

    broker: str
    cluster: str
    address: str
    is_master: bool = True


@dataclass(frozen=True, slots=True)
class RouteTable:
    """All topics of one group with their routes (topics in name order), and the brokers' addresses."""

    topics: tuple[TopicRoute, ...]
    brokers: tuple[BrokerAddress, ...] = ()

    @property
    def read_queues(self) -> tuple[MessageQueue, ...]:
        """The readable queues of all topics, sorted."""
        return tuple(queue for route in self.topics for queue in route.read_queues)
