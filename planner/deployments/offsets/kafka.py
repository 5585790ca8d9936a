"""A Kafka group's offsets, through ``confluent-kafka``. The group's coordinator refuses while it has members."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as TheirPartition

from planner.deployments.offsets.actions import KeptOffsets, Offsets
from planner.documents.source import KafkaSource
from planner.errors import OutOfReachError, PlannerError
from planner.execution.ports import ConflictError, DeniedError
from planner.model.queues import Queue, TopicPartition, topic_partitions
from planner.sources.kafka import KafkaAdmin, KafkaSettings
from planner.sources.kafka.errors import AnswerError
from planner.sources.kafka.library import Library

REQUEST_S: Final = 10.0
_IN_USE: Final = {22, 25, 68}
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP: what a coordinator says of a group that has members."""


class KafkaOffsets:
    """Offsets of groups of one cluster, limited to the policy's topics where it names them."""

    def __init__(self, admin: KafkaAdmin, topics: Sequence[str] | None) -> None:
        self._admin = admin
        self._topics = frozenset(topics) if topics is not None else None

    def committed(self, group: str) -> Offsets:
        """Return the group's commits; a partition whose commit cannot be read is an error."""
        commits = _unwrap(self._admin.committed([group])[group])
        for error in commits.errors.values():
            raise error
        return {
            partition: offset
            for partition, offset in commits.offsets.items()
            if self._topics is None or partition.topic in self._topics
        }

    def since(self, group: str, time: datetime) -> Offsets:
        """Return where the first record at or after a time lies, the partition's end where there is none."""
        at_time = self._admin.offsets_at(self._all_partitions(group), time)
        return {partition: _unwrap(offset) for partition, offset in at_time.items()}

    def kept(self, group: str) -> Mapping[Queue, KeptOffsets]:
        """Return each partition's log start offset and its end."""
        partitions = self._all_partitions(group)
        earliest, latest = self._admin.first_offsets(partitions), self._admin.end_offsets(partitions)
        return {
            partition: KeptOffsets(_unwrap(earliest[partition]), _unwrap(latest[partition])) for partition in partitions
        }

    def clone(self, origin: str, group: str) -> None:
        """Give ``group`` the commits of ``origin``."""
        self.commit(group, self.committed(origin))

    def commit(self, group: str, offsets: Offsets) -> None:
        """Set the group's offsets in one request, which the coordinator refuses where it has members."""
        targets = [TheirPartition(partition.topic, partition.number, offset) for partition, offset in offsets.items()]
        library = Library(self._admin.bootstrap, self._admin.settings, REQUEST_S)
        asked = [ConsumerGroupTopicPartitions(group, targets)]
        answer = _check_written(group, library.results("alter_consumer_group_offsets", asked)[group])
        for partition in answer.topic_partitions:
            if partition.error is not None:
                _check_written(
                    group,
                    library.refusal(
                        f"offset of group {group} on {partition.topic}/{partition.partition}", partition.error
                    ),
                )

    def _all_partitions(self, group: str) -> list[TopicPartition]:
        """Return all partitions of the policy's topics, else of those that the group has committed on."""
        topics = (
            self._topics if self._topics is not None else {partition.topic for partition in self._partitions(group)}
        )
        return [route.partition for routes in self._admin.topics(topics).values() for route in _unwrap(routes)]

    def _partitions(self, group: str) -> Iterable[TopicPartition]:
        return topic_partitions(self.committed(group))


def _check_written(group: str, answer: Any) -> Any:
    if isinstance(answer, AnswerError) and answer.code in _IN_USE:
        raise ConflictError(f"group {group} has members: its coordinator refuses to set its offsets") from answer
    if isinstance(answer, AnswerError):
        raise DeniedError(str(answer)) from answer
    return _unwrap(answer)


def _unwrap(answer: Any) -> Any:
    """Return the answer, or raise why there is none; a topic or group that is gone meanwhile may come back."""
    if isinstance(answer, OutOfReachError):
        raise answer
    if isinstance(answer, PlannerError):
        raise OutOfReachError(str(answer)) from answer
    return answer


@contextmanager
def open_kafka(source: KafkaSource) -> Iterator[KafkaOffsets]:
    """Give the offsets of the groups of one cluster, by the policy's address and account."""
    settings = KafkaSettings.read(source.properties_file) if source.properties_file else None
    with KafkaAdmin(source.bootstrap_servers, settings=settings) as admin:
        yield KafkaOffsets(admin, source.topics)
