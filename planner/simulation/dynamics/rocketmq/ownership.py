"""Who owns what when everybody sees the same: before the change, after it, and under any one view."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.group import allocate_group
from planner.allocation.ordering import java_sorted
from planner.allocation.strategy import Holdings
from planner.errors import BadInputError
from planner.simulation.dynamics.rocketmq.names import Names
from planner.simulation.dynamics.rocketmq.processes import AFTER
from planner.simulation.dynamics.rocketmq.world import Booleans, Indexes, Topic, World

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
    after = np.stack(
        [
            client[first_life(state_matrix(world, names, AFTER, world.final, placement))]
            for placement in range(len(names.placements))
        ]
    )
    return Owners(client[first_life(before)], after[names.of_trial], after[0])


def state_matrix(world: World, names: Names, route: int, members: tuple[int, ...], placement: int = 0) -> Booleans:
    """Return by life and queue who owns what when everybody sees these members, each under its own strategy."""
    owned = np.zeros((len(world.lives), len(world.queues)), dtype=bool)
    present = np.array(members, dtype=np.intp)
    for strategy in {world.lives[member].strategy for member in members}:
        mine = [member for member in members if world.lives[member].strategy == strategy]
        for topic in world.topics:
            found = ownership_matrix(world, topic, route, strategy, present, names.placements[placement])
            owned[mine] |= found[mine]
    return owned


def ownership_matrix(
    world: World, topic: Topic, route: int, strategy: int, members: Indexes, ids: tuple[str, ...]
) -> Booleans:
    """Return by life and queue who owns what when everybody allocates over these members under one strategy."""
    owned = np.zeros((len(world.lives), len(world.queues)), dtype=bool)
    clients = _java_ordered([world.lives[member].client for member in members.tolist()], ids)
    holdings = _holdings(world, topic, route, strategy, [ids[client] for client in clients])
    first = {life.client: -place for place, life in enumerate(reversed(world.lives), 1 - len(world.lives))}
    holders = np.array([first[client] for client in clients], dtype=np.intp)
    owned[holders[holdings.holders], topic.queues[route][holdings.picks]] = True
    if len(first) < len(world.lives):
        for index, life in enumerate(world.lives):
            owned[index] = owned[first[life.client]]
    return owned


def _java_ordered(clients: Sequence[int], ids: tuple[str, ...]) -> list[int]:
    """Return the clients as their ids sort in Java."""
    by_id = {ids[client]: client for client in clients}
    return [by_id[name] for name in java_sorted(ids[client] for client in clients)]


def _holdings(world: World, topic: Topic, route: int, strategy: int, listed: Sequence[str]) -> Holdings:
    """Return who holds what among sorted ids; where only places count, the answer for so many serves all of them."""
    rule = world.strategies[strategy]
    key = (strategy, topic.name, route, len(listed))
    only_places_count = rule.is_positional and len(set(listed)) == len(listed)
    if only_places_count and key in world.known:
        return world.known[key]
    queues = [world.queues[pick] for pick in topic.queues[route].tolist()]
    found = allocate_group(rule, queues, listed, world.request.group).holdings
    if only_places_count:
        world.known[key] = found
    return found


def first_life(owned: Booleans) -> Indexes:
    """Return the first life that owns each queue, NOBODY where none does."""
    return np.where(owned.any(axis=0), owned.argmax(axis=0), NOBODY)


def refuse_doubled(world: World, before: Booleans) -> None:
    """Refuse a group whose queues have several owners already: its duplicates would have no end."""
    doubled = np.flatnonzero(before.sum(axis=0) > 1)
    if len(doubled):
        raise BadInputError(
            f"strategy: gives {world.queues[doubled[0]]} to several clients before the change already, "
            f"so every message comes more than once; expected a strategy with one owner a queue"
        )
