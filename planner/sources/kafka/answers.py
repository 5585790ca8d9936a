"""What ``KafkaAdmin`` returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.errors import PlannerError
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute


@dataclass(frozen=True, slots=True)
class Node:
    """One broker of the cluster; ``rack`` is "" where it has none."""

    number: int
    address: str
    rack: str


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster's own id and its brokers by number.

    It has no controller: under KRaft a broker names any of its peers to clients.
    """

    cluster_id: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group: ``kind`` is ``classic``, ``consumer``, ``share``, ``streams``, or ``connect`` and the like.

    Consumers form the first three; a classic group of which only offsets are there (nobody ever subscribed)
    ``is_simple``. ``state`` as the broker names it.
    """

    group: str
    kind: str
    state: str
    is_simple: bool

    @property
    def is_consumer_group(self) -> bool:
        """True when we can read it."""
        return self.kind in {"classic", "consumer", "share"}


@dataclass(frozen=True, slots=True)
class GroupList:
    """All groups that the account may see, by name, and which brokers did not list theirs."""

    groups: tuple[GroupListing, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One consumer group as its coordinator describes it; ``members`` by member id, ``problems`` what it does not show.

    ``protocol`` is ``classic``, ``consumer`` or ``share``. ``epoch`` is a KIP-848 or share group's own and
    ``assignment_epoch`` the one that its target assignment was computed for; no request shows a classic group's
    generation.
    """

    group: str
    protocol: str
    state: str
    assignor: str | None
    coordinator: int | None
    members: tuple[KafkaMember, ...]
    epoch: int | None = None
    assignment_epoch: int | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Commits:
    """Committed offsets of one group; a partition that is in neither map never had a commit.

    A share group commits none: ``offsets`` are then those of the oldest record that is not done, and ``lags`` has how
    many are not, as its coordinator counts them (KIP-1226), ``None`` where it does not know.
    """

    offsets: Mapping[TopicPartition, int]
    errors: Mapping[TopicPartition, PlannerError]
    lags: Mapping[TopicPartition, int | None] = field(default_factory=dict)


Routes = tuple[PartitionRoute, ...]
"""The partitions of one topic by number."""
