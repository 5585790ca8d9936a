"""The members of a round as the assignors number them: a simulation meets the same few again in every state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.allocation.kafka.group import NO_GENERATION, Claims, Group
from planner.allocation.kafka.request import Member, Request, named_group
from planner.simulation.dynamics.kafka.names import Names
from planner.simulation.dynamics.kafka.world import NOBODY, Booleans, Indexes, World

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


class Rosters:
    """The rosters of one world, each made once."""

    def __init__(self, world: World, names: Names) -> None:
        self._world, self._names, self._renamed = world, names, world.renamed.tolist()
        self._place = {partition: index for index, partition in enumerate(world.partitions)}
        self._found: dict[tuple[tuple[int, ...], int, int], Roster] = {}

    def find(self, lives: Sequence[int], placement: int, side: int) -> Roster:
        """Return the roster of these lives, under the ids of a placement, with the partitions of a side."""
        key = (tuple(lives), placement, side)
        if key not in self._found:
            self._found[key] = self._make(*key)
        return self._found[key]

    def _make(self, lives: tuple[int, ...], placement: int, side: int) -> Roster:
        counts = self._world.counts[side]
        members = tuple(self._member(life, placement) for life in lives)
        named = named_group(Request(self._world.request.strategy, counts, members, self._racks(side)))
        life_of = {member.member_id: life for member, life in zip(members, lives, strict=True)}
        in_order = np.array([*(life_of[name] for name in named.member_ids), NOBODY], dtype=np.intp)
        numbers = np.full(len(self._world.lives) + 1, NOBODY, dtype=np.intp)
        numbers[in_order[:-1]] = np.arange(len(lives))
        is_there = np.array([number < counts[topic] for topic, number in self._world.partitions], dtype=bool)
        places = [self._place[topic, number] for topic in named.topics for number in range(counts[topic])]
        is_there[places] = False
        return Roster(named.group, in_order, numbers, np.array(places, dtype=np.intp), is_there)

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
