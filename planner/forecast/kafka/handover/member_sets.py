"""The members of a round as the assignors number them: a simulation meets the same few again in every state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.allocation.kafka.group import NO_GENERATION, Claims, Group, no_claims
from planner.allocation.kafka.java_hash import hashed_order, string_hashes
from planner.allocation.kafka.request import Member, NamedGroup, Request, named_group
from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Indexes, World
from planner.forecast.kafka.membership.unknown_ids import Names

_GENERATION = 1
"""That of every claim: the members of a round were all in the one before it."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Lives in the order of their ids, without claims.

    ``lives``: by the member's number, at the end NOBODY. ``numbers``: the other way round, by life, at the end NOBODY.
    ``places``: where each of the group's partitions is in the world. ``is_foreign``: partitions that are there and
    that nobody subscribes to.
    """

    group: Group
    lives: Indexes
    numbers: Indexes
    places: Indexes
    is_foreign: Booleans

    def claiming(self, owners: Indexes) -> Group:
        """Return the group in which those inside claim what they own in the world."""
        claimed_by = self.numbers[owners]
        foreign = claimed_by[self.is_foreign & (claimed_by != NOBODY)]
        claims = claimed_by[self.places]
        held = np.flatnonzero(claims != NOBODY)
        generations = np.full(self.group.member_count, NO_GENERATION, dtype=np.intp)
        generations[claims[held]] = _GENERATION
        generations[foreign] = _GENERATION
        told = Claims(claims[held], held, generations, frozenset(foreign.tolist()), claims)
        return replace(self.group, claims=told)


@dataclass(frozen=True, slots=True)
class _Cast:
    """All lives in one group, under the ids of a placement, of which a round's members are a part.

    By life: ``numbers`` and ``hashes`` of the ids; by number: ``places_in_ring``.
    """

    group: Group
    numbers: Indexes
    hashes: NDArray[np.uint32]
    places_in_ring: Indexes

    def part(self, lives: Indexes) -> tuple[Group, Indexes]:
        """Return the group of these lives, which all subscribe to the same and have no rack, and them by number."""
        order = np.argsort(self.numbers[lives])
        in_order = lives[order]
        numbers = np.empty_like(order)
        numbers[order] = members = np.arange(len(lives))
        group = replace(
            self.group,
            member_count=len(lives),
            subscribers=(members,) * len(self.group.subscribers),
            ring=np.argsort(self.places_in_ring[self.numbers[in_order]]),
            walk=numbers[hashed_order(self.hashes[lives])],
            claims=no_claims(len(lives)),
        )
        return group, in_order


class Rosters:
    """The rosters of one world, each made once."""

    def __init__(self, world: World, names: Names) -> None:
        self._world, self._names, self._renamed = world, names, world.renamed.tolist()
        self._place = {partition: index for index, partition in enumerate(world.partitions)}
        self._are_alike = len({member.topics for member in world.members}) == 1 and not world.request.racks
        self._casts: dict[tuple[int, int], tuple[_Cast, tuple[str, ...]]] = {}
        self._places: dict[tuple[tuple[str, ...], int], tuple[Indexes, Booleans]] = {}
        self._found: dict[tuple[tuple[int, ...], int, int], Roster] = {}

    def find(self, lives: Sequence[int], placement: int, side: int) -> Roster:
        """Return the roster of these lives, under the ids of a placement, with the partitions of a side."""
        key = (tuple(lives), placement, side)
        if key not in self._found:
            self._found[key] = self._make(*key)
        return self._found[key]

    def _make(self, lives: tuple[int, ...], placement: int, side: int) -> Roster:
        if self._are_alike:
            cast, topics = self._cast(placement, side)
            group, in_order = cast.part(np.array(lives, dtype=np.intp))
        else:
            named, in_order = self._named(lives, placement, side)
            group, topics = named.group, named.topics
        numbers = np.full(len(self._world.lives) + 1, NOBODY, dtype=np.intp)
        numbers[in_order] = np.arange(len(lives))
        return Roster(group, np.append(in_order, NOBODY), numbers, *self._where(topics, side))

    def _cast(self, placement: int, side: int) -> tuple[_Cast, tuple[str, ...]]:
        """Return all lives under the ids of a placement, and their topics."""
        if (placement, side) not in self._casts:
            named, in_order = self._named(range(len(self._world.lives)), placement, side)
            numbers = np.argsort(in_order)
            hashes = string_hashes(named.member_ids)[numbers]
            self._casts[placement, side] = (
                _Cast(named.group, numbers, hashes, np.argsort(named.group.ring)),
                named.topics,
            )
        return self._casts[placement, side]

    def _named(self, lives: Sequence[int], placement: int, side: int) -> tuple[NamedGroup, Indexes]:
        """Return the group of these lives and them in its order."""
        members = tuple(self._member(life, placement) for life in lives)
        request = Request(self._world.request.strategy, self._world.counts[side], members, self._racks(side))
        named = named_group(request)
        life_of = {member.member_id: life for member, life in zip(members, lives, strict=True)}
        return named, np.array([life_of[name] for name in named.member_ids], dtype=np.intp)

    def _where(self, topics: tuple[str, ...], side: int) -> tuple[Indexes, Booleans]:
        """Return the places of all partitions of these topics, and which others are there."""
        if (topics, side) not in self._places:
            self._places[topics, side] = self._find_places(topics, side)
        return self._places[topics, side]

    def _find_places(self, topics: Sequence[str], side: int) -> tuple[Indexes, Booleans]:
        counts = self._world.counts[side]
        places = [self._place[topic, number] for topic in topics for number in range(counts[topic])]
        is_there = np.array([number < counts[topic] for topic, number in self._world.partitions], dtype=bool)
        is_there[places] = False
        return np.array(places, dtype=np.intp), is_there

    def _member(self, life: int, placement: int) -> Member:
        world, number = self._world, self._world.lives[life].member
        member = world.members[number]
        renames = self._renamed[life]
        name = (self._names.renamed if renames else self._names.placements)[placement][number]
        is_first = life < len(world.members) and number == life
        own = name if is_first or renames else f"{name}\x00{life:04}"
        return Member(own, member.instance_id, member.rack, member.topics, (), NO_GENERATION)

    def _racks(self, side: int) -> dict[str, tuple[frozenset[str], ...]]:
        counts = self._world.counts[side]
        return {
            topic: (*racks, *[frozenset[str]()] * (counts[topic] - len(racks)))
            for topic, racks in self._world.request.racks.items()
        }
