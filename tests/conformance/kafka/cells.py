"""What is tried: each cell is one kind of group and one change of it; a repetition draws what is left open anew."""

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.clusters.kafka import CLIENT
from tests.clusters.kafka_load import LIBRDKAFKA
from tests.conformance.record import record_id

AUTO, SYNC = "auto", "sync"
CONSUMER_PROTOCOL = ("uniform", "range-server")

Document = dict[str, Any]

_AWAY = {"freeze": "freeze", "partition": "cut"}
"""What happens to members that are back after a while, by the kind of change."""

_JAVA_CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of group and of change.

    ``rate`` is records per second and partition, ``backlog`` the records that wait in each when the members start.
    ``change`` has ``kind`` and its figures: ``count`` members, ``how``, ``for_s``, ``interval_s``, ``stagger_s``.
    ``settings`` are the clients' own ones, ``group`` the broker's ones of a KIP-848 group.
    """

    assignor: str
    change: Mapping[str, Any]
    client: str = CLIENT
    members: int = 3
    partitions: int = 8
    rate: float = 20.0
    service_ms: float = 5.0
    backlog: int = 0
    commit: str = AUTO
    is_static: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    group: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> Document:
        """Return the cell as JSON has it."""
        return asdict(self)

    @property
    def is_server_side(self) -> bool:
        """True for groups of KIP-848."""
        return self.assignor in CONSUMER_PROTOCOL

    @property
    def brings_server_side(self) -> bool:
        """True where newcomers come by KIP-848, whatever the protocol of those that are there."""
        to = self.change.get("to") if self.kind in ("strategy", "rolling_update") else None
        return (to or self.assignor) in CONSUMER_PROTOCOL

    @property
    def kind(self) -> str:
        """What changes."""
        return str(self.change["kind"])

    @property
    def count(self) -> int:
        """How many members the change is about."""
        return int(self.change.get("count", 0))

    @property
    def blow(self) -> tuple[str, float]:
        """What hits the process of the victims, and for how many seconds: ``kill``, ``freeze``, ``cut``, or nothing."""
        if self.kind in _AWAY:
            return _AWAY[self.kind], float(self.change["for_s"])
        return ("kill", 0.0) if self.change.get("how") == "crash" else ("", 0.0)

    @property
    def release(self) -> str:
        """The release of the client that members get, ``""`` where they keep theirs."""
        return str(self.change["to"]) if self.kind == "upgrade" else ""

    @property
    def named(self) -> int:
        """How many of the first members have a ``group.instance.id``, at most."""
        return sys.maxsize if self.is_static else 0

    def config(self, assignors: Sequence[str], instance_id: str | None) -> dict[str, str]:
        """Return the settings of one member's client that supports these assignors."""
        if assignors[0] in CONSUMER_PROTOCOL:
            chosen = {"group.protocol": "consumer", "group.remote.assignor": assignors[0].removesuffix("-server")}
        else:
            names = ",".join(assignor_class(self.client, one) for one in assignors)
            chosen = {"partition.assignment.strategy": names}
        return {**chosen, **({"group.instance.id": instance_id} if instance_id else {}), **self.settings}


@dataclass(frozen=True, slots=True)
class Mixed(Cell):
    """A group of which only the first so many members have a ``group.instance.id``."""

    statics: int = 1

    @property
    def named(self) -> int:
        """How many of the first members have a ``group.instance.id``."""
        return self.statics


def assignor_class(client: str, assignor: str) -> str:
    """Return what a client calls an assignor."""
    return assignor if client == LIBRDKAFKA else f"org.apache.kafka.clients.consumer.{_JAVA_CLASSES[assignor]}"


@dataclass(frozen=True, slots=True)
class Case:
    """One repetition of a cell; ``dice`` falls the same way for the same one."""

    cell: Cell
    repetition: int

    @property
    def id(self) -> str:
        """The id of its record."""
        return record_id("kafka", self.cell.document(), self.repetition)

    @property
    def dice(self) -> random.Random:
        """A generator of its own."""
        return random.Random(self.id)
