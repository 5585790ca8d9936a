"""The requests that we send by ourselves, all of them only read: there is no way to send another.

``confluent-kafka`` shows neither subscriptions, racks and epochs nor groups of other kinds; these requests do.
Layouts: https://kafka.apache.org/protocol and the JSON files of ``org.apache.kafka.common.message`` (Kafka 4.3).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from planner.model.queues import TopicPartition
from planner.sources.kafka import wire
from planner.sources.kafka.wire import NO_TAGS, Reader

_T = TypeVar("_T")
CONSUMER_GROUP: Final = 0  # the key type of FindCoordinator that stands for a group


@dataclass(frozen=True, slots=True)
class Api(Generic[_T]):
    """One kind of request: its number, the versions that we read, the first flexible one, how its answer reads."""

    name: str
    key: int
    versions: tuple[int, int]
    flexible_from: int
    read: Callable[[Reader, int], _T] = field(repr=False)

    def is_flexible(self, version: int) -> bool:
        """True when that version has compact lengths and tagged fields."""
        return version >= self.flexible_from


@dataclass(frozen=True, slots=True)
class WireNode:
    """One broker, as it wants to be reached."""

    number: int
    host: str
    port: int
    rack: str


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that keeps one group, or why there is none (``code`` not 0)."""

    group: str
    node: int
    host: str
    port: int
    code: int
    remark: str


@dataclass(frozen=True, slots=True)
class Listing:
    """One group in a broker's list; ``kind`` is ``classic``, ``consumer``, ``share``, ``streams``, "" before 3.8."""

    group: str
    protocol_type: str
    state: str
    kind: str


@dataclass(frozen=True, slots=True)
class WireMember:
    """One member as the broker describes it.

    ``metadata`` and ``assignment`` are a classic member's bytes, empty while the group rebalances. The rest is known of
    the members of KIP-848 groups only: ``topics`` and ``pattern`` are its subscription, ``target`` is what it shall
    own once all members have given up what they must; ``is_classic`` means that it joined by the classic protocol.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    metadata: bytes = b""
    assignment: bytes = b""
    rack: str | None = None
    epoch: int | None = None
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    target: tuple[TopicPartition, ...] = ()
    is_classic: bool | None = None


@dataclass(frozen=True, slots=True)
class WireGroup:
    """One group as its coordinator describes it, or why it does not (``code`` not 0)."""

    group: str
    code: int
    remark: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[WireMember, ...]
    epoch: int | None = None
    assignment_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class WireCommit:
    """What a group has committed on one partition: -1 for nothing; ``code`` is not 0 where we may not read it."""

    partition: TopicPartition
    offset: int
    code: int


@dataclass(frozen=True, slots=True)
class WireCommits:
    """All that one group has committed, or why it is not known (``code`` not 0)."""

    group: str
    code: int
    commits: tuple[WireCommit, ...]


@dataclass(frozen=True, slots=True)
class WireShareOffsets:
    """Where a share group is on one partition: -1 for what its broker does not know; ``code`` not 0: why it cannot say.

    ``start`` is the oldest record that is not done, ``lag`` counts those from there on that are not done (KIP-1226).
    """

    partition: TopicPartition
    start: int
    lag: int
    code: int
    remark: str


@dataclass(frozen=True, slots=True)
class WireSharedOffsets:
    """Where one share group is on all its partitions, or why that is not known (``code`` not 0)."""

    group: str
    code: int
    remark: str
    offsets: tuple[WireShareOffsets, ...]


def mechanism_request(mechanism: str) -> bytes:
    """Return the body of ``SaslHandshake``."""
    return wire.text(mechanism)


def token_request(token: bytes) -> bytes:
    """Return the body of ``SaslAuthenticate``."""
    return wire.data(token)


def brokers_request() -> bytes:
    """Return the body of ``Metadata`` 9 for the brokers alone: no topics, none created, no operations listed."""
    return wire.compact_texts(()) + 3 * wire.int8(0) + NO_TAGS


def coordinators_request(groups: tuple[str, ...]) -> bytes:
    """Return the body of ``FindCoordinator`` for many groups at once."""
    return wire.int8(CONSUMER_GROUP) + wire.compact_texts(groups) + NO_TAGS


def groups_request(groups: tuple[str, ...]) -> bytes:
    """Return the body of ``DescribeGroups`` and of its kin for other kinds: without the operations we may do."""
    return wire.compact_texts(groups) + wire.int8(0) + NO_TAGS


def commits_request(groups: tuple[str, ...]) -> bytes:
    """Return the body of ``OffsetFetch`` 8: all topics of each group, without those of transactions that are open."""
    every_topic, is_stable_required = wire.varint(0), wire.int8(0)
    asked = b"".join(wire.compact_text(group) + every_topic + NO_TAGS for group in groups)
    return wire.varint(len(groups) + 1) + asked + is_stable_required + NO_TAGS


def share_offsets_request(groups: tuple[str, ...]) -> bytes:
    """Return the body of ``DescribeShareGroupOffsets`` 1: all topics of each group."""
    every_topic = wire.varint(0)
    asked = b"".join(wire.compact_text(group) + every_topic + NO_TAGS for group in groups)
    return wire.varint(len(groups) + 1) + asked + NO_TAGS


def listing_request(version: int) -> bytes:
    """Return the body of ``ListGroups``: whatever state, and whatever kind where there are kinds."""
    return wire.compact_texts(()) * (2 if version >= 5 else 1) + NO_TAGS


def _versions(reader: Reader, _: int) -> tuple[int, dict[int, tuple[int, int]]]:
    def version_range() -> tuple[int, tuple[int, int]]:
        return reader.int16(), (reader.int16(), reader.int16())

    return reader.int16(), dict(reader.array(version_range))


def _mechanisms(reader: Reader, _: int) -> tuple[int, tuple[str, ...]]:
    return reader.int16(), reader.array(reader.text)


def _token(reader: Reader, _: int) -> tuple[int, str, bytes]:
    return reader.int16(), reader.text(), reader.data() or b""


def _brokers(reader: Reader, _: int) -> tuple[str, tuple[WireNode, ...]]:
    def broker() -> WireNode:
        node = WireNode(reader.int32(), reader.compact_text() or "", reader.int32(), reader.compact_text() or "")
        reader.skip_tags()
        return node

    reader.int32()  # throttle time
    nodes = reader.compact_array(broker)
    return reader.compact_text() or "", nodes  # what follows is of no use here: see ``answers.ClusterInfo``


def _coordinators(reader: Reader, _: int) -> tuple[Coordinator, ...]:
    def coordinator() -> Coordinator:
        group, node, host, port = reader.compact_text() or "", reader.int32(), reader.compact_text(), reader.int32()
        code, remark = reader.int16(), reader.compact_text()
        reader.skip_tags()
        return Coordinator(group, node, host or "", port, code, remark or "")

    reader.int32()  # throttle time
    return reader.compact_array(coordinator)


def _listings(reader: Reader, version: int) -> tuple[int, tuple[Listing, ...]]:
    def listing() -> Listing:
        group, protocol_type, state = (reader.compact_text() or "" for _ in range(3))
        kind = (reader.compact_text() or "").lower() if version >= 5 else ""
        reader.skip_tags()
        return Listing(group, protocol_type, state, kind)

    reader.int32()  # throttle time
    return reader.int16(), reader.compact_array(listing)


def _classic_groups(reader: Reader, _: int) -> tuple[WireGroup, ...]:
    def member() -> WireMember:
        member_id, instance_id = reader.compact_text() or "", reader.compact_text()
        client_id, host = reader.compact_text() or "", reader.compact_text() or ""
        metadata, assignment = reader.compact_data() or b"", reader.compact_data() or b""
        reader.skip_tags()
        return WireMember(member_id, instance_id, client_id, host, metadata, assignment, is_classic=True)

    def group() -> WireGroup:
        code = reader.int16()
        name, state, protocol_type, assignor = (reader.compact_text() or "" for _ in range(4))
        members = reader.compact_array(member)
        reader.int32()  # the operations that we may do, which we did not ask for
        reader.skip_tags()
        return WireGroup(name, code, "", state, protocol_type, assignor, members)

    reader.int32()  # throttle time
    return reader.compact_array(group)


def _assignment(reader: Reader) -> tuple[TopicPartition, ...]:
    def partitions_of_topic() -> tuple[TopicPartition, ...]:
        reader.uuid()
        topic, numbers = reader.compact_text() or "", reader.compact_array(reader.int32)
        reader.skip_tags()
        return tuple(TopicPartition(topic, number) for number in numbers)

    by_topic = reader.compact_array(partitions_of_topic)
    reader.skip_tags()
    return tuple(sorted(partition for of_topic in by_topic for partition in of_topic))


def _consumer_groups(reader: Reader, version: int) -> tuple[WireGroup, ...]:
    def member() -> WireMember:
        member_id, instance_id, rack = reader.compact_text() or "", reader.compact_text(), reader.compact_text()
        epoch, client_id, host = reader.int32(), reader.compact_text() or "", reader.compact_text() or ""
        topics, pattern = reader.compact_array(lambda: reader.compact_text() or ""), reader.compact_text()
        owned, target = _assignment(reader), _assignment(reader)
        kind = reader.int8() if version >= 1 else -1
        reader.skip_tags()
        return WireMember(
            member_id,
            instance_id,
            client_id,
            host,
            rack=rack or None,
            epoch=epoch,
            topics=topics,
            pattern=pattern or None,
            owned=owned,
            target=target,
            is_classic=None if kind < 0 else kind == 0,
        )

    return _described_groups(reader, "consumer", member)


def _described_groups(reader: Reader, protocol: str, member: Callable[[], WireMember]) -> tuple[WireGroup, ...]:
    """Return the groups of an answer to 69 or 77, which differ in their members alone."""

    def group() -> WireGroup:
        code, remark = reader.int16(), reader.compact_text() or ""
        name, state = reader.compact_text() or "", reader.compact_text() or ""
        epoch, assignment_epoch, assignor = reader.int32(), reader.int32(), reader.compact_text() or ""
        members = reader.compact_array(member)
        reader.int32()
        reader.skip_tags()
        return WireGroup(name, code, remark, state, protocol, assignor, members, epoch, assignment_epoch)

    reader.int32()  # throttle time
    return reader.compact_array(group)


def _share_groups(reader: Reader, _: int) -> tuple[WireGroup, ...]:
    def member() -> WireMember:
        member_id, rack, epoch = reader.compact_text() or "", reader.compact_text(), reader.int32()
        client_id, host = reader.compact_text() or "", reader.compact_text() or ""
        topics, owned = reader.compact_array(lambda: reader.compact_text() or ""), _assignment(reader)
        reader.skip_tags()
        return WireMember(member_id, None, client_id, host, rack=rack or None, epoch=epoch, topics=topics, owned=owned)

    return _described_groups(reader, "share", member)


def _shared_offsets(reader: Reader, _: int) -> tuple[WireSharedOffsets, ...]:
    def partition(topic: str) -> WireShareOffsets:
        number, start = reader.int32(), reader.int64()
        reader.int32()  # the leader's epoch
        lag, code, remark = reader.int64(), reader.int16(), reader.compact_text() or ""
        reader.skip_tags()
        return WireShareOffsets(TopicPartition(topic, number), start, lag, code, remark)

    def of_topic() -> tuple[WireShareOffsets, ...]:
        topic = reader.compact_text() or ""
        reader.uuid()
        offsets = reader.compact_array(lambda: partition(topic))
        reader.skip_tags()
        return offsets

    def group() -> WireSharedOffsets:
        name, by_topic = reader.compact_text() or "", reader.compact_array(of_topic)
        code, remark = reader.int16(), reader.compact_text() or ""
        reader.skip_tags()
        return WireSharedOffsets(name, code, remark, tuple(offset for offsets in by_topic for offset in offsets))

    reader.int32()  # throttle time
    return reader.compact_array(group)


def _commits(reader: Reader, _: int) -> tuple[WireCommits, ...]:
    def commit(topic: str) -> WireCommit:
        partition, offset = TopicPartition(topic, reader.int32()), reader.int64()
        reader.int32()  # the leader's epoch at that time
        reader.compact_text()  # a remark of the consumer's
        code = reader.int16()
        reader.skip_tags()
        return WireCommit(partition, offset, code)

    def commits_of_topic() -> tuple[WireCommit, ...]:
        topic = reader.compact_text() or ""
        commits = reader.compact_array(lambda: commit(topic))
        reader.skip_tags()
        return commits

    def group() -> WireCommits:
        name, by_topic, code = reader.compact_text() or "", reader.compact_array(commits_of_topic), reader.int16()
        reader.skip_tags()
        return WireCommits(name, code, tuple(commit for of_topic in by_topic for commit in of_topic))

    reader.int32()  # throttle time
    return reader.compact_array(group)


API_VERSIONS: Final = Api("ApiVersions", 18, (0, 0), 3, _versions)
SASL_HANDSHAKE: Final = Api("SaslHandshake", 17, (1, 1), 99, _mechanisms)
SASL_AUTHENTICATE: Final = Api("SaslAuthenticate", 36, (0, 1), 2, _token)
METADATA: Final = Api("Metadata", 3, (9, 9), 9, _brokers)
FIND_COORDINATOR: Final = Api("FindCoordinator", 10, (4, 4), 3, _coordinators)
LIST_GROUPS: Final = Api("ListGroups", 16, (4, 5), 3, _listings)
DESCRIBE_GROUPS: Final = Api("DescribeGroups", 15, (5, 5), 5, _classic_groups)
CONSUMER_GROUP_DESCRIBE: Final = Api("ConsumerGroupDescribe", 69, (0, 1), 0, _consumer_groups)
OFFSET_FETCH: Final = Api("OffsetFetch", 9, (8, 8), 6, _commits)
SHARE_GROUP_DESCRIBE: Final = Api("ShareGroupDescribe", 77, (1, 1), 0, _share_groups)
DESCRIBE_SHARE_GROUP_OFFSETS: Final = Api("DescribeShareGroupOffsets", 90, (1, 1), 0, _shared_offsets)
