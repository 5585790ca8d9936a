"""``as_awaited``: a group's ownership, compared with the strategy and the parameters that the plan's own step states.

Brokers and members report a strategy's name and not its parameters, and a policy those from before. So where a plan
brings other parameters, or members of unknown machine rooms, its steps say them, and ownership is compared with
these for the members that really came.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from planner.allocation.group import allocate_group
from planner.allocation.registry import KINDS, NEARBY, find_strategy
from planner.allocation.rocketmq import MachineRoomNearby
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.execution.observation import GroupObservation
from planner.execution.plan_targets import group_of
from planner.execution.ports import StoredPlan
from planner.model.machine_rooms import room_of
from planner.model.queues import MessageQueue, Queue, message_queues
from planner.rollout.steps import AwaitSettled
from planner.snapshot.strategy import STRATEGY_OF_CLASS

_CLIENTS_OWN: Final = frozenset(STRATEGY_OF_CLASS.values())
"""Strategies that the client brings along: members report these by name."""

_MOST_CHOICES: Final = 4_096
"""In how many ways new members may be in rooms, at most, so that all are compared with what they own."""


def as_awaited(stored: StoredPlan, group: GroupObservation) -> GroupObservation:
    """Return the observation by the strategy of the last step begun that awaits this group.

    It stays as it is where that step states no parameters, or where members say that they run another strategy.
    ``misplaced`` is ``None`` where the strategy cannot answer for these members.
    """
    step = _last_awaited(stored, group.name)
    if (
        step is None
        or step.options is None
        or not group.members
        or not _may_run(step.strategy, group.reported_strategies)
    ):
        return group
    return replace(group, strategy=step.strategy, misplaced=_count_misplaced(step, group))


def _last_awaited(stored: StoredPlan, group: str) -> AwaitSettled | None:
    begun = [stored.plan.steps[progress.index] for progress in stored.status.steps]
    awaited = [
        progress
        for progress in begun
        if isinstance(progress, AwaitSettled) and group_of(stored.plan, progress) == group
    ]
    return awaited[-1] if awaited else None


def _may_run(strategy: str, names: tuple[str, ...]) -> bool:
    """Return whether the reported names go with the strategy: a user's own class may be any that is not a client's."""
    base = NEARBY if strategy.startswith(NEARBY) else strategy
    return all(name == base or (name not in KINDS and base not in _CLIENTS_OWN) for name in names)


def _count_misplaced(step: AwaitSettled, group: GroupObservation) -> int | None:
    members = group.members or ()
    queues = message_queues(group.queues or ())
    if group.owners is None or len(queues) != len(group.queues or ()):
        return None
    try:
        strategies = _strategies(find_strategy(step.strategy, step.options_for(members)), group)
        # One after the other: all answers at once would be thousands of times the group.
        answers = (_by_queue(allocate_group(strategy, queues, members, group.name).answer()) for strategy in strategies)
        return min(
            (sum(set(owners) != expected[queue] for queue, owners in group.owners) for expected in answers),
            default=None,
        )
    except BadInputError:
        return None


def _strategies(strategy: Strategy, group: GroupObservation) -> Iterator[Strategy]:
    """Yield the strategy, once for every way in which members without a known machine room can be in the known rooms.

    The plan was made for a share of each room, and which one a pod came up in only its node knows: ownership shows it.
    Where these ways are too many, a member is taken to be in a room that it owns queues of.
    """
    if not isinstance(strategy, MachineRoomNearby):
        yield strategy
        return
    table = strategy.client_rooms
    homeless = [member for member in group.members or () if room_of(table, member) is None]
    every = sorted({*strategy.broker_rooms.values(), *table.values()})
    choices = [every for _ in homeless]
    if len(every) ** len(homeless) > _MOST_CHOICES:
        owned = _owned_rooms(strategy, group)
        choices = [sorted(owned[member]) or every for member in homeless]
    if prod(map(len, choices)) <= _MOST_CHOICES:
        for rooms in product(*choices):
            yield replace(strategy, client_rooms={**table, **dict(zip(homeless, rooms, strict=True))})


def _owned_rooms(strategy: MachineRoomNearby, group: GroupObservation) -> Mapping[str, set[str]]:
    """Return the rooms that each member owns queues of."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for queue, owners in group.owners or ():
        room = room_of(strategy.broker_rooms, queue.broker) if queue.broker else None
        for member in owners:
            rooms[member] |= {room} if room else set()
    return rooms


def _by_queue(owned: Mapping[str, list[MessageQueue]]) -> dict[Queue, set[str]]:
    owners: dict[Queue, set[str]] = defaultdict(set)
    for member, queues in owned.items():
        for queue in queues:
            owners[queue].add(member)
    return owners
