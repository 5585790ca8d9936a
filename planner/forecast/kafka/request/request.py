"""A request of ``planner forecast`` for Kafka: design.md section 4."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from planner.allocation.ordering import java_sorted
from planner.forecast.common.request_fields import DEFAULT_TRIALS, Version
from planner.forecast.kafka.request.changes import Change, Member, RollingUpdate, StrategyChange
from planner.forecast.kafka.request.settings import CLASSIC, CONSUMER, Settings

COOPERATIVE = "cooperative-sticky"
OF_PROTOCOL = {CLASSIC: ("range", "roundrobin", "sticky", COOPERATIVE), CONSUMER: ("uniform", "range-server")}


def is_of_clients(assignor: str) -> bool:
    """Return whether it is one of a classic group: a client's of Kafka or a user's own, not the server's."""
    return assignor not in OF_PROTOCOL[CONSUMER]


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: records per second, records waiting, and the broker that leads it (``None``: unknown)."""

    rate: float
    lag: float
    leader: str | None


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """One checked request; ``since_rebalance_s`` is ``None`` where nobody knows when the group rebalanced last.

    ``assignor_options`` are those of a user's own ``strategy``; Kafka's take none here.
    """

    system: ClassVar[str] = "kafka"

    client: Version
    is_java: bool
    broker: Version
    protocol: str
    strategy: str
    partitions: Mapping[str, tuple[Partition, ...]]
    racks: Mapping[str, tuple[frozenset[str], ...]]
    members: tuple[Member, ...]
    service_time_s: float
    settings: Settings
    commits_on_revoke: bool
    since_rebalance_s: float | None
    change: Change
    trials: int = DEFAULT_TRIALS
    seed: int = 1
    warnings: tuple[str, ...] = ()
    assignor_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def converts(self) -> bool:
        """True where members come by the consumer protocol to a classic group, which becomes one of it (KIP-848)."""
        return self.protocol == CLASSIC and self.assignor_after in OF_PROTOCOL[CONSUMER]

    @property
    def reverts(self) -> bool:
        """True where members come by the classic protocol to a group of the consumer protocol."""
        return self.protocol == CONSUMER and is_of_clients(self.assignor_after)

    @property
    def mixes(self) -> bool:
        """True where the group has members of both protocols for a while."""
        return self.converts or self.reverts

    @property
    def is_mixed(self) -> bool:
        """True where some of the members that are there have an instance id, and others have none."""
        return len({member.instance_id is None for member in self.members}) > 1

    @property
    def switches_static(self) -> bool:
        """True where static members of a classic group come again with another assignor of it."""
        return (
            isinstance(self.change, StrategyChange)
            and self.protocol == CLASSIC
            and is_of_clients(self.change.to)
            and self.change.to != self.strategy
            and any(member.instance_id is not None for member in self.members)
        )

    @property
    def assignor_after(self) -> str:
        """Return the assignor that members ask for which the change starts."""
        to = self.change.to if isinstance(self.change, StrategyChange | RollingUpdate) else None
        return to or self.strategy

    @property
    def brokers(self) -> tuple[str, ...]:
        """Return the brokers that lead a partition, empty where the request names none."""
        leaders = {
            partition.leader for partitions in self.partitions.values() for partition in partitions if partition.leader
        }
        return tuple(java_sorted(leaders))
