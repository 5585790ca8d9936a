"""The names behind the numbers of a Kafka group: its members as an assignor knows them, and its topics."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_GENERATION = -1

Claim = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Member:
    """One member; ``generation`` is ``NO_GENERATION`` and ``rack`` empty where it has none."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    rack: str = ""
    owned: tuple[Claim, ...] = ()
    generation: int = NO_GENERATION


@dataclass(frozen=True, slots=True)
class GroupNames:
    """The names by their numbers: topics, members, and by topic the racks of each partition's replicas where known."""

    topics: tuple[str, ...]
    members: tuple[Member, ...]
    racks: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
