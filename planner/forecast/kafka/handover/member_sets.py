"""The members of a round as the assignors number them: a simulation meets the same few again in every state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.allocation.kafka.group import Claims, Group, no_claims
from planner.allocation.kafka.java_hash import hashed_order, string_hashes
from planner.allocation.kafka.names import NO_GENERATION, GroupNames, Member
from planner.allocation.kafka.request import NamedGroup, Request, named_group
from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Indexes, Scenario
from planner.forecast.kafka.membership.unknown_ids import Names

_GENERATION = 1
"""That of every claim: the members of a round were all in the one before it."""


@dataclass(frozen=True, slots=True)
class MemberSet:
    """Processes in the order of their ids, without claims.

    ``processes``: by the member's number, at the end NOBODY. ``numbers``: the other way round, by process, at the end
    NOBODY. ``indexes``: where each of the group's partitions is in the scenario. ``is_foreign``: partitions that are
    there and that nobody subscribes to.
    """

    group: Group
    processes: Indexes
    numbers: Indexes
    indexes: Indexes
    is_foreign: Booleans

    def claiming(self, owners: Indexes) -> Group:
        """Return the group in which those inside claim what they own in the scenario."""
        claimed_by = self.numbers[owners]
        foreign = claimed_by[self.is_foreign & (claimed_by != NOBODY)]
        claims = claimed_by[self.indexes]
        claimed = np.flatnonzero(claims != NOBODY)
        generations = np.full(self.group.member_count, NO_GENERATION, dtype=np.intp)
        generations[claims[claimed]] = _GENERATION
        generations[foreign] = _GENERATION
        claims_of_members = Claims(claims[claimed], claimed, generations, frozenset(foreign.tolist()), claims)
        return replace(self.group, claims=claims_of_members)


@dataclass(frozen=True, slots=True)
class _Cast:
    """All processes in one group, under the ids of a placement, of which a round's members are a subset.

    By process: ``numbers`` and ``hashes`` of the ids; by number: ``indexes_in_ring``.
    """

    group: Group
    numbers: Indexes
    hashes: NDArray[np.uint32]
    indexes_in_ring: Indexes

    def subset(self, processes: Indexes) -> tuple[Group, Indexes]:
        """Return the group of these processes, which all subscribe to the same and have no rack, and them by number."""
        order = np.argsort(self.numbers[processes])
        in_order = processes[order]
        numbers = np.empty_like(order)
        numbers[order] = members = np.arange(len(processes))
        group = replace(
            self.group,
            member_count=len(processes),
            subscribers=(members,) * len(self.group.subscribers),
            ring=np.argsort(self.indexes_in_ring[self.numbers[in_order]]),
            walk=numbers[hashed_order(self.hashes[processes])],
            claims=no_claims(len(processes)),
            names=self._names_of(in_order),
        )
        return group, in_order

    def _names_of(self, processes: Indexes) -> GroupNames | None:
        names = self.group.names
        if names is None:
            return None
        return replace(names, members=tuple(names.members[number] for number in self.numbers[processes].tolist()))


class MemberSets:
    """The member sets of one scenario, each made once."""

    def __init__(self, scenario: Scenario, names: Names) -> None:
        self._scenario, self._names, self._renamed = scenario, names, scenario.renamed.tolist()
        self._index = {partition: index for index, partition in enumerate(scenario.partitions)}
        subscribed = {scenario.topics_of(process) for process in range(len(scenario.processes))}
        self._are_alike = len(subscribed) == 1 and not scenario.request.racks
        self._casts: dict[tuple[int, int], tuple[_Cast, tuple[str, ...]]] = {}
        self._indexes: dict[tuple[tuple[str, ...], int], tuple[Indexes, Booleans]] = {}
        self._known: dict[tuple[tuple[int, ...], int, int], MemberSet] = {}

    def find(self, processes: Sequence[int], placement: int, side: int) -> MemberSet:
        """Return the member set of these processes, under the ids of a placement, with the partitions of a side."""
        key = (tuple(processes), placement, side)
        if key not in self._known:
            self._known[key] = self._make(*key)
        return self._known[key]

    def _make(self, processes: tuple[int, ...], placement: int, side: int) -> MemberSet:
        if self._are_alike:
            cast, topics = self._cast(placement, side)
            group, in_order = cast.subset(np.array(processes, dtype=np.intp))
        else:
            named, in_order = self._named(processes, placement, side)
            group, topics = named.group, named.topics
        numbers = np.full(len(self._scenario.processes) + 1, NOBODY, dtype=np.intp)
        numbers[in_order] = np.arange(len(processes))
        return MemberSet(group, np.append(in_order, NOBODY), numbers, *self._where(topics, side))

    def _cast(self, placement: int, side: int) -> tuple[_Cast, tuple[str, ...]]:
        """Return all processes under the ids of a placement, and their topics."""
        if (placement, side) not in self._casts:
            named, in_order = self._named(range(len(self._scenario.processes)), placement, side)
            numbers = np.argsort(in_order)
            hashes = string_hashes(named.member_ids)[numbers]
            self._casts[placement, side] = (
                _Cast(named.group, numbers, hashes, np.argsort(named.group.ring)),
                named.topics,
            )
        return self._casts[placement, side]

    def _named(self, processes: Sequence[int], placement: int, side: int) -> tuple[NamedGroup, Indexes]:
        """Return the group of these processes and them in its order."""
        members = tuple(self._member(process, placement) for process in processes)
        request = Request(self._scenario.request.strategy, self._scenario.counts[side], members, self._racks(side))
        named = named_group(request)
        process_of = {member.member_id: process for member, process in zip(members, processes, strict=True)}
        return named, np.array([process_of[name] for name in named.member_ids], dtype=np.intp)

    def _where(self, topics: tuple[str, ...], side: int) -> tuple[Indexes, Booleans]:
        """Return the indexes of all partitions of these topics, and which others are there."""
        if (topics, side) not in self._indexes:
            self._indexes[topics, side] = self._find_indexes(topics, side)
        return self._indexes[topics, side]

    def _find_indexes(self, topics: Sequence[str], side: int) -> tuple[Indexes, Booleans]:
        counts = self._scenario.counts[side]
        indexes = [self._index[topic, number] for topic in topics for number in range(counts[topic])]
        is_present = np.array([number < counts[topic] for topic, number in self._scenario.partitions], dtype=bool)
        is_present[indexes] = False
        return np.array(indexes, dtype=np.intp), is_present

    def _member(self, process: int, placement: int) -> Member:
        scenario, number = self._scenario, self._scenario.processes[process].member
        member = scenario.members[number]
        renames = self._renamed[process]
        name = (self._names.renamed if renames else self._names.placements)[placement][number]
        is_first = process < len(scenario.members) and number == process
        own = name if is_first or renames else self._names.successor_id(placement, process, name)
        return Member(own, scenario.topics_of(process), member.instance_id, member.rack)

    def _racks(self, side: int) -> dict[str, tuple[frozenset[str], ...]]:
        counts = self._scenario.counts[side]
        return {
            topic: (*racks, *[frozenset[str]()] * (counts[topic] - len(racks)))
            for topic, racks in self._scenario.request.racks.items()
        }
