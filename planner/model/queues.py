"""Units of ownership: a RocketMQ message queue, a Kafka topic partition."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

RETRY_PREFIX = "%RETRY%"


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One RocketMQ queue; ordered as ``MessageQueue#compareTo`` does: topic, broker name, queue id.

    Names compare as text, so ``broker-10`` comes before ``broker-2``.
    """

    noun: ClassVar[str] = "queue"

    topic: str
    broker: str
    queue_id: int

    @property
    def is_retry(self) -> bool:
        """True for a queue of a group's ``%RETRY%`` topic, which carries redelivered messages only."""
        return self.topic.startswith(RETRY_PREFIX)

    @property
    def place(self) -> tuple[str, ...]:
        """Where queue numbers count: topic and broker."""
        return self.topic, self.broker

    @property
    def number(self) -> int:
        """The queue's number at its place."""
        return self.queue_id

    def sibling(self, number: int) -> "MessageQueue":
        """Return the queue of that number at the same place."""
        return replace(self, queue_id=number)

    def __str__(self) -> str:
        return f"{self.topic}/{self.broker}/{self.queue_id}"


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One Kafka partition; ordered by topic, then partition number."""

    noun: ClassVar[str] = "partition"

    topic: str
    partition: int

    @property
    def broker(self) -> None:
        """No broker: a partition is the same one wherever its leader is."""
        return

    @property
    def is_retry(self) -> bool:
        """Always false: Kafka's broker keeps no topics for redelivery."""
        return False

    @property
    def place(self) -> tuple[str, ...]:
        """Where partition numbers count: the topic."""
        return (self.topic,)

    @property
    def number(self) -> int:
        """The partition's number at its place."""
        return self.partition

    def sibling(self, number: int) -> "TopicPartition":
        """Return the partition of that number of the same topic."""
        return replace(self, partition=number)

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


Queue = MessageQueue | TopicPartition
"""What a group's members share among themselves; all queues of one group are of one kind."""


def message_queues(queues: Iterable[Queue]) -> tuple[MessageQueue, ...]:
    """Return RocketMQ's among the queues, in their order: what its strategies allocate."""
    return tuple(queue for queue in queues if isinstance(queue, MessageQueue))


def topic_partitions(queues: Iterable[Queue]) -> tuple[TopicPartition, ...]:
    """Return Kafka's among the queues, in their order: what its assignors assign."""
    return tuple(queue for queue in queues if isinstance(queue, TopicPartition))
