"""A user's own Kafka assignor: one class in one file, run behind checks. ``examples/custom_assignor.py`` is the manual.

The group's leader computes the assignment of all members, so the class is asked once for the whole group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from planner.allocation import fields, plugins
from planner.allocation.kafka.group import Group, IntArray, Outcome, nobody
from planner.allocation.kafka.names import NO_GENERATION, GroupNames, Member
from planner.errors import BadInputError

Partitions = Mapping[str, int]
ReplicaRacks = Mapping[str, Sequence[frozenset[str]]]


class UserAssignor(Protocol):
    """The class that a user writes, the twin of their ``ConsumerPartitionAssignor``; called once for the group."""

    @property
    def name(self) -> str:
        """The name as the Java class's ``name()`` spells it: what the coordinator reports."""
        ...

    def assign(
        self, members: Sequence[Member], partitions: Partitions, racks: ReplicaRacks
    ) -> Mapping[str, Iterable[tuple[str, int]]]:
        """Return the partitions of each member by its id; members come sorted by id, topics by name."""
        ...


@dataclass(frozen=True, slots=True)
class OwnAssignor:
    """A user's assignor behind checks: an assignor as Kafka's own are, that wants the names behind the numbers.

    ``is_sticky``: its members show what they own, as ``StickyAssignor`` has them do by its user data; those of a plain
    eager one have given everything back when they join. ``is_cooperative``: they keep it and show it, too.
    """

    user: UserAssignor
    is_sticky: bool = False
    is_cooperative: bool = False

    @property
    def name(self) -> str:
        """The user's name for it."""
        return self.user.name

    def __call__(self, group: Group) -> Outcome:
        """Return the owners; raise ``BadInputError`` with a sentence for an answer that no leader should give."""
        names = group.names
        if names is None:
            raise BadInputError(f"assignor {self.name}: the group has numbers only, expected member ids and topics")
        asked = self._asked(group, names)
        owners = self._owners(self._ask(asked), group, names)
        repeated = self._owners(self._ask(asked), group, names)
        if not np.array_equal(owners, repeated):
            index = int(np.flatnonzero(owners != repeated)[0])
            raise BadInputError(
                f"assignor {self.name} answered the same question twice, and {_partition(group, names, index)} had "
                f"another owner: compute from the arguments alone, without clock, chance or memory"
            )
        return Outcome(owners)

    def _asked(self, group: Group, names: GroupNames) -> tuple[tuple[Member, ...], Partitions, ReplicaRacks]:
        """Return the arguments of the call, which it cannot change."""
        sizes = dict(zip(names.topics, group.topics.sizes, strict=True))
        racks = {topic: names.racks[topic] for topic in names.topics if topic in names.racks}
        members = tuple(replace(member, owned=(), generation=NO_GENERATION) for member in names.members)
        if self.is_sticky or self.is_cooperative:
            members = _claiming(group, names, members)
        return members, MappingProxyType(sizes), MappingProxyType(racks)

    def _ask(self, asked: tuple[tuple[Member, ...], Partitions, ReplicaRacks]) -> Mapping[str, Any]:
        try:
            answer = self.user.assign(*asked)
        except Exception as error:  # a user's code may raise anything
            raise BadInputError(f"assignor {self.name} raised {type(error).__name__}: {error}") from error
        if not isinstance(answer, Mapping):
            raise fields.refusal(
                f"assignor {self.name}: the answer", repr(answer), "a dict from member id to partitions"
            )
        return answer

    def _owners(self, answer: Mapping[str, Any], group: Group, names: GroupNames) -> IntArray:
        """Return the answer as numbers, checked: each partition once, and to a member that subscribes to its topic."""
        number_of = {member.member_id: number for number, member in enumerate(names.members)}
        starts = dict(zip(names.topics, group.topics.starts.tolist(), strict=False))
        sizes = dict(zip(names.topics, group.topics.sizes, strict=True))
        owners = nobody(group.topics.partition_count)
        for member_id, listed in answer.items():
            if member_id not in number_of:
                raise BadInputError(f"assignor {self.name} gives partitions to {_shown(member_id)}, which is no member")
            number = number_of[member_id]
            for topic, partition in self._listed(member_id, listed, len(owners)):
                if not 0 <= partition < sizes.get(topic, 0):
                    raise BadInputError(
                        f"assignor {self.name} gives {topic}-{partition} to {member_id}: there is no such partition"
                    )
                index = starts[topic] + partition
                self._check_pair(names.members[number], topic, partition, owners[index], names)
                owners[index] = number
        self._check_whole(owners, group, names)
        return owners

    def _listed(self, member_id: str, listed: Any, most: int) -> list[tuple[str, int]]:
        """Return one member's partitions as pairs; no more are read than there are."""
        try:
            pairs = [(topic, partition) for topic, partition in islice(listed, most + 1)]
        except Exception as error:  # an answer may be anything, a generator that raises as well
            raise BadInputError(
                f'assignor {self.name}: found {_shown(listed)} for {member_id}, expected partitions such as [("t0", 0)]'
            ) from error
        if len(pairs) > most:
            raise BadInputError(
                f"assignor {self.name} gives {member_id} more than the {most} partitions that there are"
            )
        for topic, partition in pairs:
            if not isinstance(topic, str) or not isinstance(partition, int) or isinstance(partition, bool):
                raise BadInputError(
                    f"assignor {self.name}: found {_shown((topic, partition))} for {member_id}, expected a partition "
                    f'such as ("t0", 0)'
                )
        return pairs

    def _check_pair(self, member: Member, topic: str, partition: int, owner: int, names: GroupNames) -> None:
        if topic not in member.topics:
            raise BadInputError(
                f"assignor {self.name} gives {topic}-{partition} to {member.member_id}, which does not subscribe to "
                f"{topic}"
            )
        if owner >= 0:
            raise BadInputError(
                f"assignor {self.name} gives {topic}-{partition} to {names.members[owner].member_id} and to "
                f"{member.member_id}, expected one owner"
            )

    def _check_whole(self, owners: IntArray, group: Group, names: GroupNames) -> None:
        forgotten = np.flatnonzero(owners < 0)
        if len(forgotten):
            raise BadInputError(
                f"assignor {self.name} forgot {len(forgotten)} of {len(owners)} partitions, first "
                f"{_partition(group, names, int(forgotten[0]))}: nobody would consume it"
            )


def find_own(name: str, options: Mapping[str, Any]) -> OwnAssignor | None:
    """Return the user's assignor of that path or installed name, ``None`` for another name.

    Raises ``BadInputError`` for a file that was not allowed (``plugins.check_allowed``) or that holds no assignor.
    """
    if plugins.is_path(name):
        plugins.check_allowed(name)
        kind, where = plugins.class_from_path(name, plugins.ASSIGNOR)
    else:
        installed = plugins.class_from_entry_point(name, plugins.ASSIGNOR)
        if installed is None:
            return None
        kind, where = installed
    user = plugins.instance(kind, options, where, plugins.ASSIGNOR)
    sticky, cooperative = (getattr(user, flag, False) is True for flag in ("is_sticky", "is_cooperative"))
    return OwnAssignor(user, sticky, cooperative)


def _claiming(group: Group, names: GroupNames, members: Sequence[Member]) -> tuple[Member, ...]:
    """Return the members with what they claim of the partitions that exist."""
    owned: list[list[tuple[str, int]]] = [[] for _ in members]
    claims = group.claims
    for number, partition in zip(claims.members.tolist(), claims.partitions.tolist(), strict=True):
        topic = names.topics[int(group.topics.topic_of[partition])]
        owned[number].append((topic, int(group.topics.number_of[partition])))
    return tuple(
        replace(member, owned=tuple(sorted(owned[number])), generation=int(claims.generations[number]))
        for number, member in enumerate(members)
    )


def _partition(group: Group, names: GroupNames, index: int) -> str:
    return f"{names.topics[int(group.topics.topic_of[index])]}-{int(group.topics.number_of[index])}"


def _shown(value: object) -> str:
    return fields.shown(value if isinstance(value, str | int | tuple | list) else repr(value))
