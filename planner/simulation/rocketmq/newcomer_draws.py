"""Counts above the present one under strategies that go by client ids: the outcome over many possible ids.

What the ids of new clients will be is not known, what they look like is (``client_ids``). Each draw is allocated by the
strategy itself, so that load and moved queues of a count become a distribution. Equal snapshots give equal draws, and
more clients begin with the same ones, so that counts are compared on the same luck.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.allocation.extra import SpecifiedMachine, Static, Vip
from planner.allocation.ordering import java_sorted
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import ConsistentHash, MachineRoomNearby
from planner.allocation.strategy import NOBODY, Owners, Strategy
from planner.model.machine_rooms import room_of
from planner.model.queues import MessageQueue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.draws import FORECAST_DRAWS, between, interval
from planner.simulation.outcome import DrawnIds
from planner.simulation.rocketmq.client_ids import DRAWS, Draw, draw_clients, why_names_decide

_Floats = NDArray[np.float64]
_BY_NAME = (Vip, Static, SpecifiedMachine)


@dataclass(frozen=True, slots=True)
class Group:
    """One possible future of the group: all clients sorted, and the strategy that knows each of them."""

    clients: tuple[str, ...]
    strategy: Strategy
    newcomers: tuple[str, ...]

    @property
    def rooms(self) -> dict[str, str]:
        """The machine room of each new client, where rooms count."""
        strategy = self.strategy
        if not isinstance(strategy, MachineRoomNearby):
            return {}
        return {client: room for client in self.newcomers if (room := room_of(strategy.client_rooms, client))}


def why_not_drawn(snapshot: GroupSnapshot, strategy: Strategy) -> str | None:
    """Return why the ids of new clients cannot be drawn for ``strategy``, ``None`` where they can or do not matter."""
    if strategy.is_positional or not snapshot.clients:
        return None
    if homeless := members_without_room(snapshot, strategy):
        return (
            f"{strategy.name} has no room for member {homeless[0]}: state its room in spec.strategyOptions, where "
            "10.1.* stands for all ids that begin so, or the room of members that come in spec.newPods.room"
        )
    if isinstance(strategy, _BY_NAME) and (why := why_names_decide(snapshot)):
        return f"{strategy.name} goes by names: {why}; give new pods names of one series or name them by the pod"
    return None


def members_without_room(snapshot: GroupSnapshot, strategy: Strategy) -> list[str]:
    """Return the present members whose machine room nobody states, where rooms count."""
    if not isinstance(strategy, MachineRoomNearby):
        return []
    return [client for client in snapshot.clients if room_of(strategy.client_rooms, client) is None]


def possible_groups(snapshot: GroupSnapshot, strategy: Strategy, count: int, draws: int = DRAWS) -> tuple[Group, ...]:
    """Return ``draws`` possible groups of ``count`` clients, the present ones among them."""
    newcomers = count - len(snapshot.clients)
    return tuple(
        group_with(snapshot, strategy, drawn, snapshot.clients) for drawn in draw_clients(snapshot, newcomers, draws)
    )


def _rooms(snapshot: GroupSnapshot, strategy: Strategy, drawn: Draw) -> Mapping[str, str]:
    """Return the rooms of drawn clients: by the table of rooms, by the policy, else as the client they are like."""
    if not isinstance(strategy, MachineRoomNearby):
        return {}
    table, stated = strategy.client_rooms, snapshot.new_pods.room
    rooms = {client.id: stated or room_of(table, client.id) or room_of(table, client.like) for client in drawn}
    return {client: room for client, room in rooms.items() if room is not None}


def group_with(snapshot: GroupSnapshot, strategy: Strategy, drawn: Draw, present: Sequence[str] = ()) -> Group:
    """Return the group of these drawn clients, beside those ``present`` clients that stay."""
    rooms = _rooms(snapshot, strategy, drawn)
    if isinstance(strategy, MachineRoomNearby) and rooms:
        strategy = replace(strategy, client_rooms={**strategy.client_rooms, **rooms})
    ids = tuple(client.id for client in drawn)
    return Group(tuple(java_sorted([*present, *ids])), strategy, ids)


@dataclass(frozen=True, eq=False)
class Draws:
    """What the draws of one count come to, an entry each: ``moved`` queues, and what the busiest consumer has.

    ``loads`` are its messages per second, ``shares`` the most queues of one consumer.
    """

    groups: Sequence[Group]
    owners: Sequence[Sequence[Owners]]
    moved: NDArray[np.intp]
    shares: NDArray[np.intp]
    loads: _Floats

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The draws by their busiest load, then by their largest share."""
        return np.lexsort((self.shares, self.loads))

    def at(self, percentile: float) -> int:
        """Return the draw that ``percentile`` of all are no busier than."""
        return int(self.order[max(int(np.ceil(percentile / 100 * len(self.order))), 1) - 1])

    def summary(self, percentile: float, capacity: float | None) -> DrawnIds:
        """Return the draws as intervals; ``capacity`` of one consumer in messages per second."""
        return DrawnIds(
            draws=len(self.groups),
            percentile=percentile,
            moved=interval(self.moved),
            largest_share=interval(self.shares),
            utilisation=None if not capacity else interval(self.loads / capacity),
            rooms=tuple(sorted(self.groups[self.at(percentile)].rooms.items())),
        )


def weigh(
    groups: Sequence[Group], topics: Sequence[Sequence[MessageQueue]], rates: Sequence[_Floats], before: Sequence[str]
) -> Draws:
    """Return what each of the groups means; ``rates`` are those of each topic's queues, ``before`` their owners now.

    ``before`` has all queues one after the other, an empty name where nobody owns one: such queues do not move.
    """
    owned_before = np.array([bool(name) for name in before])
    flat_rates = np.concatenate([*rates, np.empty(0)])
    moved, shares, loads, every = [], [], [], []
    for group in groups:
        owners = [group.strategy.owners(queues, group.clients) for queues in topics]
        flat = np.concatenate([*owners, np.empty(0, dtype=np.intp)])
        index_of = {client: index for index, client in enumerate(group.clients)}
        old = np.array([index_of.get(name, NOBODY - 1) for name in before], dtype=np.intp)
        owned = flat != NOBODY
        moved.append(int((owned_before & (old != flat)).sum()))
        shares.append(int(np.bincount(flat[owned], minlength=1).max()))
        loads.append(float(np.bincount(flat[owned], flat_rates[owned], minlength=1).max()))
        every.append(owners)
    return Draws(groups, every, np.array(moved), np.array(shares), np.array(loads))


def some_groups(snapshot: GroupSnapshot, count: int) -> tuple[Group, ...]:
    """Return a few possible groups of ``count`` clients under the group's own strategy, as forecasts play them."""
    strategy = find_strategy(snapshot.strategy or "", snapshot.strategy_options)
    return possible_groups(snapshot, strategy, count, FORECAST_DRAWS)


def assumptions(snapshot: GroupSnapshot, strategy: Strategy) -> Iterator[str]:
    """Yield in half sentences what the draws take for granted."""
    if isinstance(strategy, MachineRoomNearby) and snapshot.new_pods.room is None:
        homes = sorted(room for client in snapshot.clients if (room := room_of(strategy.client_rooms, client)))
        if len(set(homes)) == 1:
            yield f"which room the new consumers are in: shown for {homes[0]}, where all present ones are"
        else:
            shares = ", ".join(f"{room} ({homes.count(room)} of {len(homes)})" for room in dict.fromkeys(homes))
            yield (
                f"which room the new consumers are in: drawn as present ones are spread, {shares}; spec.newPods.room "
                "states it"
            )
    if isinstance(strategy, ConsistentHash) and "virtual_nodes" not in snapshot.strategy_options:
        yield (
            f"how many virtual nodes each client has: taken to be {strategy.virtual_nodes}, the client's default; "
            "spec.strategyOptions.virtual_nodes states it"
        )


def describe(drawn: DrawnIds, newcomers: int, strategy: str, noun: str = "queue") -> str:
    """Return in half a sentence what is not known, and what comes of it."""
    ids = "the new client id" if newcomers == 1 else f"the {newcomers} new client ids"
    return (
        f"what {ids} will be, and {strategy} goes by them: {between(drawn.moved, noun)} "
        f"{'moves' if drawn.moved.p95 == 1 else 'move'} and the busiest consumer owns "
        f"{between(drawn.largest_share, noun)} with 90 of 100 possible ids; loads are shown for ids of which "
        f"{drawn.percentile:g} of 100 are no worse"
    )
