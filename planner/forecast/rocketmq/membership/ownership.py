"""Who owns what when everybody sees the same: before the change, after it, and under any one view."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.group import allocate_group
from planner.allocation.ordering import java_sorted
from planner.allocation.strategy import Holdings
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Booleans, Indexes, Topic, World
from planner.forecast.rocketmq.membership.unknown_ids import Names

NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """Clients that own each queue before, and after in each trial; NOBODY where none does.

    ``shown``: those after the change where unknown ids sort last, as the answer shows it.
    """

    before: Indexes
    after: Indexes
    shown: Indexes

    @property
    def moves(self) -> Booleans:
        """Return by trial and queue whether it goes from one owner to another."""
        moves: Booleans = (self.before != self.after) & (self.before != NOBODY) & (self.after != NOBODY)
        return moves


def find_owners(world: World, names: Names, before: Booleans) -> Owners:
    """Return the owning clients of all queues, before, and after in every trial's placement of unknown ids."""
    client = np.array([*(life.client for life in world.lives), NOBODY])
    placements = np.arange(len(names.placements))
    after = client[first_life(_state_matrices(world, names, AFTER, world.final, placements))]
    return Owners(client[first_life(before)], after[names.of_trial], after[0])


def state_matrix(world: World, names: Names, route: int, members: tuple[int, ...], placement: int = 0) -> Booleans:
    """Return by life and queue who owns what when everybody sees these members, each under its own strategy."""
    found: Booleans = _state_matrices(world, names, route, members, np.array([placement]))[0]
    return found


def _state_matrices(world: World, names: Names, route: int, members: tuple[int, ...], placements: Indexes) -> Booleans:
    """Return the state matrix under each of these placements."""
    owned = np.zeros((len(placements), len(world.lives), len(world.queues)), dtype=bool)
    listed = np.zeros((len(placements), len(world.lives)), dtype=bool)
    listed[:, list(members)] = True
    everywhere = np.full(len(placements), route, dtype=np.intp)
    for strategy in {world.lives[member].strategy for member in members}:
        mine = [member for member in members if world.lives[member].strategy == strategy]
        side = np.full(len(placements), strategy, dtype=np.intp)
        for topic in world.topics:
            found = ownership_matrices(world, names, topic, Seen(everywhere, side, placements, listed))
            owned[:, mine] |= found[:, mine]
    return owned


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What views show, one in each row: the route, the strategy, the placement of unknown ids, which lives are listed.

    The first three are indexes, by view; ``listed`` is by view and life.
    """

    route: Indexes
    strategy: Indexes
    placement: Indexes
    listed: Booleans


def ownership_matrices(world: World, names: Names, topic: Topic, seen: Seen) -> Booleans:
    """Return by view, life and queue who owns what when everybody allocates over the members that the view lists."""
    owned = np.zeros((*seen.listed.shape, len(world.queues)), dtype=bool)
    first = _first_lives(world)
    order, is_doubled = _sorted_members(world, names, seen)
    counts = seen.listed.sum(axis=1)
    kinds, kind = np.unique(
        np.column_stack([seen.route, seen.strategy, counts, is_doubled]), axis=0, return_inverse=True
    )
    for number, (route, strategy, count, doubled) in enumerate(kinds.tolist()):
        rows = np.flatnonzero(kind.ravel() == number)
        queues = topic.queues[route]
        # Where only places count, all rows of a kind share one answer.
        is_shared = world.strategies[strategy].is_positional and not doubled
        for some in (rows,) if is_shared else rows[:, None]:
            members = first[order[some, :count]]
            ids = names.placements[seen.placement[some[0]]]
            listed = [ids[world.lives[member].client] for member in members[0].tolist()]
            holdings = _holdings(world, topic, route, strategy, listed)
            owned[some[:, None], members[:, holdings.holders], queues[holdings.picks]] = True
    return owned[:, first]


def _sorted_members(world: World, names: Names, seen: Seen) -> tuple[Indexes, Booleans]:
    """Return by view the listed lives as their ids sort in Java, all others after them; and whether ids are doubled."""
    used, row = np.unique(seen.placement, return_inverse=True)
    ranks = np.array([_ranks(world, names.placements[placement]) for placement in used.tolist()], dtype=np.intp)
    keys = np.where(seen.listed, ranks.reshape(len(used), len(world.lives))[row.ravel()], len(world.clients))
    order = np.argsort(keys, axis=1, kind="stable")
    keys = np.take_along_axis(keys, order, axis=1)
    is_doubled: Booleans = ((keys[:, 1:] == keys[:, :-1]) & (keys[:, 1:] < len(world.clients))).any(axis=1)
    return order, is_doubled


def _ranks(world: World, ids: tuple[str, ...]) -> list[int]:
    """Return the place of each life's id among all ids in Java's order."""
    rank = {name: place for place, name in enumerate(java_sorted(set(ids)))}
    return [rank[ids[life.client]] for life in world.lives]


def _first_lives(world: World) -> Indexes:
    """Return for each life the first one of the same client: that one stands for all of them."""
    first: dict[int, int] = {}
    return np.array([first.setdefault(life.client, index) for index, life in enumerate(world.lives)], dtype=np.intp)


def _holdings(world: World, topic: Topic, route: int, strategy: int, listed: Sequence[str]) -> Holdings:
    """Return who holds what among sorted ids; where only places count, the answer for so many serves all of them."""
    rule = world.strategies[strategy]
    key = (strategy, topic.name, route, len(listed))
    only_places_count = rule.is_positional and len(set(listed)) == len(listed)
    if only_places_count and key in world.known:
        return world.known[key]
    queues = [world.queues[pick] for pick in topic.queues[route].tolist()]
    found = allocate_group(rule, queues, listed, world.request.group, is_sorted=True).holdings
    if only_places_count:
        world.known[key] = found
    return found


def first_life(owned: Booleans) -> Indexes:
    """Return the first life that owns each queue, NOBODY where none does; lives are the last axis but one."""
    return np.where(owned.any(axis=-2), owned.argmax(axis=-2), NOBODY)


def refuse_doubled(world: World, before: Booleans) -> None:
    """Refuse a group whose queues have several owners already: its duplicates would have no end."""
    doubled = np.flatnonzero(before.sum(axis=0) > 1)
    if len(doubled):
        raise BadInputError(
            f"strategy: gives {world.queues[doubled[0]]} to several clients before the change already, "
            f"so every message comes more than once; expected a strategy with one owner a queue"
        )
