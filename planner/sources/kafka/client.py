"""``KafkaAdmin``: what the brokers of one cluster report, read by typed methods, each with a deadline.

Offsets, topics and configuration come through ``confluent-kafka``. It has no way to a member's subscription, rack or
epoch, so groups are described over connections of our own (``describe``), where we know the account's mechanism;
where not, by the library, and what then stays unknown is named. Nothing here can write to a cluster.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Self

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicCollection
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import ConfigResource, ConsumerGroupDescription, OffsetSpec

from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute
from planner.sources.kafka import requests
from planner.sources.kafka.answers import ClusterInfo, Commits, GroupDescription, GroupList, GroupListing, Node, Routes
from planner.sources.kafka.broker_connections import BrokerConnections
from planner.sources.kafka.commits import committed_offsets
from planner.sources.kafka.connection import Address, can_connect
from planner.sources.kafka.describe import Described, describe_groups, host_of, unknown_group
from planner.sources.kafka.errors import answer_error
from planner.sources.kafka.library import Library, in_batches
from planner.sources.kafka.settings import KafkaSettings
from planner.sources.kafka.share_lags import SharePositions, share_lags

log = logging.getLogger(__name__)

_GROUPS_TOGETHER: Final = 200  # requests for commits under way at the same time, one a group
_PARTITIONS_TOGETHER: Final = 5_000
_STATES: Final = {"PREPARING_REBALANCING": "PreparingRebalance", "COMPLETING_REBALANCING": "CompletingRebalance"}


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long one request may take, in seconds; connecting, TLS and proving the account included."""

    request_s: float = 10.0


class KafkaAdmin:
    """A read-only client of one cluster; a context manager that knows on entering whether it is let in.

    ``bootstrap_servers`` are ``host:port``; ``settings`` have the way in. ``read_committed`` takes the last stable
    offset for a partition's end, as consumers with ``isolation.level=read_committed`` do, not the high watermark.
    ``own_connections=False`` leaves groups to the library. Raises ``BadInputError`` for addresses and properties that
    cannot be, ``OutOfReachError`` when no broker answers, ``RefusedError`` when the account is not let in.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[str],
        *,
        settings: KafkaSettings | None = None,
        limits: TimeLimits | None = None,
        read_committed: bool = False,
        own_connections: bool = True,
    ) -> None:
        self.settings = settings or KafkaSettings()
        self.limits = limits or TimeLimits()
        addresses = [Address.parse(server) for server in bootstrap_servers]
        if not addresses:
            raise BadInputError("there is no Kafka bootstrap server: name one as host:port")
        self.bootstrap = ",".join(map(str, addresses))
        self._connections = BrokerConnections(addresses, self.settings, self.limits.request_s)
        self._obstacle = can_connect(self.settings) if own_connections else "own connections are switched off"
        self._read_committed = read_committed
        self.share_positions = SharePositions()
        if self.settings.uses_tls and not self.settings.verifies_certificates:
            log.warning("certificates are not verified", extra={"bootstrap": self.bootstrap})
        try:
            # First by ourselves: a library with a wrong password goes on trying it.
            if not self._obstacle:
                self.cluster()
            self._library = Library(self.bootstrap, self.settings, self.limits.request_s)
            if self._obstacle:
                self.cluster()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; closing twice does nothing."""
        self._connections.close()

    def __repr__(self) -> str:
        return f"KafkaAdmin({self.bootstrap}, {self.settings.protocol})"

    def cluster(self) -> ClusterInfo:
        """Return the cluster's id and brokers."""
        if self._obstacle:
            return self._cluster_by_library()
        # By ourselves: we can name what is wrong, while the library mostly reports that time is over; and it asks the
        # broker that passes for the controller, which may be the one that is down.
        with self._connections.lock:
            cluster_id, nodes = self._connections.anywhere(
                lambda link: link.ask(requests.METADATA, requests.brokers_request())
            )
        brokers = (Node(node.number, str(Address(node.host, node.port)), node.rack) for node in nodes)
        return ClusterInfo(cluster_id, tuple(sorted(brokers, key=lambda node: node.number)))

    # Groups.

    def list_groups(self) -> GroupList:
        """Return every group that the account may see, of whatever kind; each broker lists those it coordinates.

        Without connections of our own only consumer groups are listed.
        """
        if self._obstacle:
            return self._listed_by_library()
        groups: dict[str, GroupListing] = {}
        problems = []
        for node in self.cluster().nodes:
            try:
                with self._connections.lock:
                    code, listings = self._connections.at(
                        Address.parse(node.address),
                        lambda link: link.ask(requests.LIST_GROUPS, requests.listing_request),
                    )
                if code:
                    raise answer_error(f"broker {node.number}, its list of groups", code)
            except OutOfReachError as error:
                problems.append(f"broker {node.number} does not list its groups: {error}")
            else:
                groups |= {listing.group: _listing(listing) for listing in listings}
        return GroupList(tuple(groups[name] for name in sorted(groups)), tuple(problems))

    def describe_groups(self, groups: Sequence[str]) -> Described:
        """Return group -> its description, or the error that stands in its way; see ``GroupDescription``.

        ``UnknownNameError`` for a group that is not there, ``BadInputError`` for one of another kind (streams,
        connect) and for a share group of brokers that do not show its lag, ``RefusedError`` for one that the account
        may not describe.
        """
        if self._obstacle:
            return self._described_by_library(groups)
        with self._connections.lock:
            return describe_groups(self._connections, groups)

    def committed(self, groups: Iterable[str]) -> dict[str, Commits | PlannerError]:
        """Return group -> its committed offsets on every topic that the account may describe.

        The broker leaves other topics out without a word: see with ``topics`` which they are.
        """
        names = sorted(set(groups))
        if self._obstacle:
            return self._committed_by_library(names)
        with self._connections.lock:
            return committed_offsets(self._connections, names)

    def share_lags(self, groups: Iterable[str]) -> dict[str, Commits | PlannerError]:
        """Return share group -> the lags of its partitions; only groups that ``describe_groups`` described as such."""
        names = sorted(set(groups))
        with self._connections.lock:
            return share_lags(self._connections, names) if names else {}

    # Topics.

    def topics(self, names: Iterable[str]) -> dict[str, Routes | PlannerError]:
        """Return topic -> where its partitions lie, or the error that stands in the way."""
        ordered = sorted(set(names))
        if not ordered:
            return {}
        descriptions = self._library.results("describe_topics", TopicCollection(ordered))
        return {
            topic: description if isinstance(description, PlannerError) else _routes(topic, description)
            for topic, description in descriptions.items()
        }

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | PlannerError]:
        """Return partition -> the offset of the next record: high watermark, or last stable offset (see the class).

        Compacted and transactional topics have gaps, so a difference of offsets is at most a number of records.
        """
        return self._offsets(partitions, OffsetSpec.latest())

    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | PlannerError]:
        """Return partition -> the offset of the oldest record that is still there (the log start offset)."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def offsets_at(
        self, partitions: Iterable[TopicPartition], at: datetime
    ) -> dict[TopicPartition, int | PlannerError]:
        """Return partition -> the offset of the first record of ``at`` or later, the next record's where none is."""
        asked = tuple(partitions)
        offsets = self._offsets(asked, OffsetSpec.for_timestamp(round(at.timestamp() * 1000)))
        late = [partition for partition, offset in offsets.items() if isinstance(offset, int) and offset < 0]
        return offsets | (self.end_offsets(late) if late else {})

    def topic_config(self, topic: str) -> dict[str, str]:
        """Return a topic's settings (``cleanup.policy``, ``retention.ms``, ...); secrets are never among them."""
        return self._config("topic", topic)

    def broker_config(self, number: int) -> dict[str, str]:
        """Return a broker's settings, for example ``group.initial.rebalance.delay.ms``; secrets are left out."""
        return self._config("broker", str(number))

    def group_config(self, group: str) -> dict[str, str]:
        """Return a KIP-848 group's settings (Kafka 4), for example ``consumer.session.timeout.ms``."""
        return self._config("group", group)

    # How the library's answers become ours.

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int | PlannerError]:
        level = IsolationLevel.READ_COMMITTED if self._read_committed else IsolationLevel.READ_UNCOMMITTED
        offsets: dict[TopicPartition, int | PlannerError] = {}
        for batch in in_batches(sorted(set(partitions)), _PARTITIONS_TOGETHER):
            specs = {TheirPartition(partition.topic, partition.partition): spec for partition in batch}
            answers = self._library.results("list_offsets", specs, isolation_level=level)
            offsets |= {
                TopicPartition(partition.topic, partition.partition): answer
                if isinstance(answer, PlannerError)
                else answer.offset
                for partition, answer in answers.items()
            }
        return offsets

    def _committed_by_library(self, groups: Sequence[str]) -> dict[str, Commits | PlannerError]:
        """Return the same by librdkafka, which may abort the process over a late answer: see ``commits``."""
        commits: dict[str, Commits | PlannerError] = {}
        for batch in in_batches(groups, _GROUPS_TOGETHER):
            asked = [[ConsumerGroupTopicPartitions(group)] for group in batch]
            answers = self._library.results_of_many("list_consumer_group_offsets", asked)
            commits |= {
                group: answer if isinstance(answer, PlannerError) else self._commits(answer)
                for group, answer in answers.items()
            }
        return commits

    def _commits(self, answer: Any) -> Commits:
        by_partition = {TopicPartition(commit.topic, commit.partition): commit for commit in answer.topic_partitions}
        return Commits(
            offsets={
                partition: commit.offset
                for partition, commit in by_partition.items()
                if commit.error is None and commit.offset >= 0
            },
            errors={
                partition: self._library.refusal(f"commit on {partition}", commit.error)
                for partition, commit in by_partition.items()
                if commit.error is not None
            },
        )

    def _config(self, kind: str, name: str) -> dict[str, str]:
        answers = self._library.results("describe_configs", [ConfigResource(kind, name)])
        entries = next(iter(answers.values()))
        if isinstance(entries, PlannerError):
            raise entries
        return {
            key: entry.value
            for key, entry in sorted(entries.items())
            if entry.value is not None and not entry.is_sensitive
        }

    def _cluster_by_library(self) -> ClusterInfo:
        cluster = self._library.result("describe_cluster")
        nodes = (Node(node.id, str(Address(node.host, node.port)), node.rack or "") for node in cluster.nodes or ())
        return ClusterInfo(cluster.cluster_id or "", tuple(sorted(nodes, key=lambda node: node.number)))

    def _listed_by_library(self) -> GroupList:
        listing = self._library.result("list_consumer_groups")
        groups = (
            GroupListing(
                group.group_id,
                group.type.name.lower() if group.type else "",
                _state(group.state),
                group.is_simple_consumer_group,
            )
            for group in listing.valid
        )
        problems = (self._library.failure("list of groups", error) for error in listing.errors)
        return GroupList(tuple(sorted(groups, key=lambda group: group.group)), tuple(map(str, problems)))

    def _described_by_library(self, groups: Sequence[str]) -> Described:
        answers = self._library.results("describe_consumer_groups", sorted(set(groups)))
        return {group: self._description(group, answer) for group, answer in answers.items()}

    def _description(
        self, group: str, answer: ConsumerGroupDescription | PlannerError
    ) -> GroupDescription | PlannerError:
        if isinstance(answer, PlannerError):
            return answer
        state = _state(answer.state)
        if state == "Dead":
            return unknown_group(group)
        problem = (
            f"group {group} was described by the library, as {self._obstacle}: "
            f"subscriptions, racks and epochs of its members are not known"
        )
        is_classic = answer.type.name == "CLASSIC"
        shows_owners = state == "Stable" or not is_classic
        members = (
            KafkaMember(
                member_id=member.member_id,
                client_id=member.client_id,
                host=host_of(member.host),
                instance_id=member.group_instance_id or None,
                owned=_assignment(member) if shows_owners else None,
            )
            for member in answer.members
        )
        return GroupDescription(
            group=group,
            protocol="classic" if is_classic else "consumer",
            state=state,
            assignor=answer.partition_assignor or None,
            coordinator=answer.coordinator.id,
            members=tuple(sorted(members, key=lambda member: member.member_id)),
            problems=(problem,),
        )


def _listing(listing: requests.Listing) -> GroupListing:
    is_simple = listing.protocol_type == ""
    kind = listing.kind or "classic"
    if kind == "classic" and listing.protocol_type not in {"", "consumer"}:
        kind = listing.protocol_type  # connect, or a kind of its own
    return GroupListing(listing.group, kind, listing.state, is_simple)


def _state(state: Enum) -> str:
    return _STATES.get(state.name, state.name.capitalize())


def _assignment(member: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(partition.topic, partition.partition) for partition in member.assignment.topic_partitions)
    )


def _routes(topic: str, description: Any) -> Routes:
    routes = (
        PartitionRoute(
            TopicPartition(topic, partition.id),
            partition.leader.id if partition.leader and partition.leader.id >= 0 else None,
            tuple(node.id for node in partition.replicas),
            tuple(node.rack or "" for node in partition.replicas),
        )
        for partition in description.partitions
    )
    return tuple(sorted(routes, key=lambda route: route.partition))
