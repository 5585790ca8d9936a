"""What the coordinator is asked and told during a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    MemberDescription,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)

from tests.clusters.kafka import REQUEST_S, KafkaCluster, done
from tests.clusters.kafka_load import Partition

LOOK_S = 20.0
"""Longer than any broker takes that answers at all: librdkafka may abort the process over an answer that comes after
the deadline (https://github.com/confluentinc/librdkafka/issues/4605)."""


@dataclass(frozen=True)
class Picture:
    """A group: ``ids`` and ``owned`` by client id, and whether it is at rest."""

    ids: Mapping[str, str]
    owned: Mapping[str, frozenset[Partition]]
    is_stable: bool

    @property
    def owners(self) -> dict[Partition, str]:
        """Return partition -> client id."""
        return {partition: client for client, owned in self.owned.items() for partition in owned}


def look(cluster: KafkaCluster, group: str) -> Picture | None:
    """Return the group as its coordinator has it, ``None`` while there is none that answers.

    At rest, members of KIP-848 have arrived at their targets.
    """
    try:
        told = cluster.admin.describe_consumer_groups([group], request_timeout=LOOK_S)[group].result(2 * LOOK_S)
    except KafkaException:
        return None
    owned = {one.client_id: _partitions(one.assignment.topic_partitions) for one in told.members}
    arrived = len(owned) == len(told.members) and all(_has_arrived(one) for one in told.members)
    is_stable = arrived and told.state == ConsumerGroupState.STABLE
    return Picture({one.client_id: one.member_id for one in told.members}, owned, is_stable)


def configure_group(cluster: KafkaCluster, group: str, settings: Mapping[str, str]) -> None:
    """Give a KIP-848 group settings of its own."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    wanted = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    done(cluster.admin.incremental_alter_configs([wanted]))


def grow_topic(cluster: KafkaCluster, topic: str, partitions: int) -> None:
    """Let a topic have so many partitions."""
    done(cluster.admin.create_partitions([NewPartitions(topic, partitions)]))


def ends(cluster: KafkaCluster, topic: str, partitions: int) -> list[int]:
    """Return the offset that the next record of each partition gets."""
    keys = [TopicPartition(topic, number) for number in range(partitions)]
    futures = cluster.admin.list_offsets({key: OffsetSpec.latest() for key in keys})
    return [futures[key].result(REQUEST_S).offset for key in keys]


def committed(cluster: KafkaCluster, group: str) -> dict[Partition, int]:
    """Return the offsets that a group has committed."""
    futures = cluster.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    told = futures[group].result(REQUEST_S).topic_partitions
    return {(one.topic, one.partition): one.offset for one in told}


def _has_arrived(member: MemberDescription) -> bool:
    target = member.target_assignment
    return target is None or _partitions(target.topic_partitions) == _partitions(member.assignment.topic_partitions)


def _partitions(found: Sequence[TopicPartition]) -> frozenset[Partition]:
    return frozenset((one.topic, one.partition) for one in found)
