"""What a classic member sends to its group's leader, and what comes back: versions 0 to 3, and newer by their start.

A broker passes these bytes on without reading them. Source: ``ConsumerProtocolSubscription.json``,
``ConsumerProtocolAssignment.json`` (Kafka 4.3): later versions only add fields at the end.
"""

from dataclasses import dataclass

from planner.model.queues import TopicPartition
from planner.sources.kafka.wire import Reader


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription when it last joined.

    ``owned`` is what it held at that moment (nothing under an eager protocol) and ``generation`` the one in which it
    did, ``None`` for a newcomer and for clients that do not send it (before Kafka 3.4, librdkafka). ``rack`` is its
    ``client.rack``.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] | None = None
    generation: int | None = None
    rack: str | None = None


def read_subscription(metadata: bytes) -> Subscription:
    """Return the subscription in a member's metadata; raise ``ProtocolError`` when it is none."""
    reader = Reader(metadata)
    version = reader.int16()
    topics = reader.array(reader.text)
    user_data = reader.data()
    owned = _partitions(reader) if version >= 1 else None
    generation = reader.int32() if version >= 2 else -1
    rack = reader.text() if version >= 3 else ""
    return Subscription(version, topics, user_data, owned, generation if generation >= 0 else None, rack or None)


def read_assignment(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions in a member's assignment, sorted; none for empty bytes."""
    if not assignment:
        return ()
    reader = Reader(assignment)
    reader.int16()  # the version: fields are only added behind the partitions
    return _partitions(reader)


def _partitions(reader: Reader) -> tuple[TopicPartition, ...]:
    by_topic = reader.array(lambda: (reader.text(), reader.array(reader.int32)))
    return tuple(sorted(TopicPartition(topic, number) for topic, numbers in by_topic for number in numbers))
