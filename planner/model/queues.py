"""Units of ownership: a RocketMQ message queue, a Kafka topic partition."""

from dataclasses import dataclass

RETRY_PREFIX = "%RETRY%"


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One RocketMQ queue; ordered as ``MessageQueue#compareTo`` does: topic, broker name, queue id.

    Names compare as text, so ``broker-10`` comes before ``broker-2``.
    """

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

    def __str__(self) -> str:
        return f"{self.topic}/{self.broker}/{self.queue_id}"


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One Kafka partition; ordered by topic, then partition number."""

    topic: str
    partition: int

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

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


Queue = MessageQueue | TopicPartition
"""What a group's members share among themselves; all queues of one group are of one kind."""
