"""Strategies with parameters, some of which go by the ids of members: those of new pods are known once they run."""

from collections.abc import Iterable, Mapping
from typing import Any

from planner.allocation.registry import NEARBY, find_strategy
from planner.allocation.strategy import NOBODY, Strategy
from planner.errors import BadInputError
from planner.model.machine_rooms import room_of
from planner.model.queues import message_queues
from planner.model.snapshot import GroupSnapshot
from planner.rollout.migrations.migration import MigrationContext
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import AwaitSettled

MADE_UP = "a new member"
_BY_ID = ("SPECIFIED_MACHINE", "STATIC", "VIP")
"""Of these it depends on the ids whether a queue has an owner."""


def goes_by_rooms(strategy: str) -> bool:
    """Return whether each member's room must be known: ``MACHINE_ROOM_NEARBY``, however its inner one is spelt."""
    return strategy.partition("-")[0] == NEARBY


def await_settled(context: MigrationContext, members: int, room: str | None = None) -> AwaitSettled:
    """Return the wait until so many members own what the group's strategy gives them; new ones are in ``room``.

    Without a room they are where all present members are. Raises ``RefusedError`` where these are in several, and
    ``BadInputError`` for a room where none counts.
    """
    if goes_by_rooms(context.strategy):
        room = room or find_machine_room(context)
    elif room is not None:
        raise BadInputError(
            f"found machine room {room} for group {context.snapshot.group}, expected none: it allocates by "
            f"{context.strategy}, which knows no machine rooms of members"
        )
    options = context.snapshot.strategy_options or None
    return AwaitSettled(members, context.strategy, context.settings.settled_limit_s, options=options, new_room=room)


def find_machine_room(context: MigrationContext) -> str:
    """Return the one room that all present members are in. Raises ``RefusedError`` where these are several."""
    table = context.snapshot.strategy_options["machine_rooms"]["clients"]
    rooms = sorted({room for client in context.snapshot.clients if (room := room_of(table, client))})
    if len(rooms) > 1:
        raise refused(
            Refusal.UNKNOWN_STRATEGY,
            f"the members of group {context.snapshot.group} are in machine rooms {', '.join(rooms)}, and which one a "
            "new pod is in is not known before it runs, so no check could say when the group has settled: do it by "
            "hand",
        )
    return str(rooms[0])


def strategy_for(to: str, options: Mapping[str, Any], room: str | None, members: Iterable[str]) -> Strategy:
    """Return the strategy with its parameters for these members: one that has no room yet is in ``room``.

    Raises ``UnknownNameError`` for a strategy not known here, ``BadInputError`` for parameters that are missing or
    wrong, and for a room where none counts.
    """
    if (room is not None) != goes_by_rooms(to):
        named = "the one that all new members are in (--room)"
        given, expected = (f"machine room {room}", "none") if room else ("no machine room", named)
        raise BadInputError(f"found {given} for strategy {to}, expected {expected}")
    find_strategy(to, options)
    return find_strategy(to, AwaitSettled(1, to, 1, options=dict(options), new_room=room).options_for(members))


def check_answers(to: str, strategy: Strategy, snapshot: GroupSnapshot) -> None:
    """Raise ``RefusedError`` where nothing shows when the group has settled, or queues would have no owner at all.

    ``strategy`` has a room for ``MADE_UP``, where rooms count.
    """
    group = snapshot.group
    if to == "CONFIG":
        raise refused(
            Refusal.UNKNOWN_STRATEGY,
            f"{to} lists the queues of each member by its id, and those of new pods are not known before they run, so "
            f"no check could say when group {group} has settled: scale it to 0, change template and policy, and scale "
            "it up again",
        )
    if to in _BY_ID:
        return
    queues = message_queues(state.queue for state in snapshot.data_queues)
    left = [queue for queue, owner in zip(queues, strategy.owners(queues, [MADE_UP]), strict=True) if owner == NOBODY]
    if left:
        raise refused(
            Refusal.UNKNOWN_STRATEGY,
            f"under {to} with these parameters {len(left)} of {len(queues)} queues of group {group} would have no "
            f"owner, {left[0]} for one, so it would never settle: give parameters that reach all its brokers",
        )
