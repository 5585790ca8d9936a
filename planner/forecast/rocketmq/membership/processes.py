"""Which processes of a group there are, before and after its change: one function for each kind of change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.forecast.common.changes import FREEZE, GRACEFUL
from planner.forecast.common.request_fields import Version
from planner.forecast.common.rolling_update import Rolling
from planner.forecast.rocketmq.request.changes import (
    CUT,
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Change,
    Client,
    Freeze,
    Join,
    Leave,
    OfMembers,
    Partition,
    QueueCount,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    Upgrade,
)

BEFORE, AFTER = 0, 1
"""The two states of routes, strategies and subscriptions: every process has either the one or the other."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the group.

    ``client`` is its place in the scenario's clients, ``version`` its release; ``starts_s`` is ``None`` for one that
    runs before the change; ``follows`` is the process of the same client that must have ended first, ``resumes`` the
    one that stood still or was cut off and goes on as this one; ``strategy``, ``group`` and ``subscription`` are BEFORE
    or AFTER. A graceful end that takes more than ``grace_s`` ends in a kill.
    """

    client: int
    threads: int
    version: Version
    starts_s: float | None = None
    ends_s: float | None = None
    how: str | None = None
    strategy: int = BEFORE
    follows: int | None = None
    resumes: int | None = None
    grace_s: float = math.inf
    group: int = BEFORE
    subscription: int = BEFORE


def find_processes(clients: Sequence[Client], version: Version, change: Change) -> tuple[Process, ...]:
    """Return every process of the change, those that run before it first, in the clients' order."""
    running = tuple(Process(index, client.threads, version) for index, client in enumerate(clients))
    if isinstance(change, Join):
        starts = tuple(order * change.stagger_s for order in range(len(change.clients)))
        return (*running, *_started(change.clients, version, len(clients), starts))
    if isinstance(change, RollingUpdate):
        starts = change.rolling.clients_start_s
        return (*_stopped(running, change.rolling), *_started(change.clients, version, len(clients), starts))
    if isinstance(change, BlueGreen):
        started = _started(change.clients, version, len(clients), [change.start_s] * len(change.clients))
        stopped = (replace(process, ends_s=change.stop_s, how=GRACEFUL) for process in running)
        return (*stopped, *(replace(process, group=AFTER) for process in started))
    if isinstance(change, BrokerDown | BrokerUp | QueueCount):
        return running
    index_of = {client.id: index for index, client in enumerate(clients)}
    return _of_members(running, [index_of[name] for name in change.clients], change)


def _of_members(running: Sequence[Process], members: Sequence[int], change: OfMembers) -> tuple[Process, ...]:
    """Return the processes where those in these places change."""
    match change:
        case Leave():
            return _ended(running, members, change.how, change.stagger_s)
        case Restart():
            return _restarted(running, members, change)
        case Freeze():
            return _interrupt(running, members, FREEZE, change.for_s)
        case Partition():  # who is cut off from some brokers only goes on with the others
            return tuple(running) if change.brokers else _interrupt(running, members, CUT, change.for_s)
        case StrategyChange() | SubscriptionChange() | Upgrade():
            return _switched(running, members, change)


def _ended(running: Sequence[Process], members: Sequence[int], how: str, stagger_s: float) -> tuple[Process, ...]:
    """Return the processes where those in these places end in turn."""
    ends = {member: order * stagger_s for order, member in enumerate(members)}
    return tuple(
        replace(process, ends_s=ends[member], how=how) if member in ends else process
        for member, process in enumerate(running)
    )


def _restarted(running: Sequence[Process], members: Sequence[int], change: Restart) -> tuple[Process, ...]:
    ended = _ended(running, members, change.how, change.stagger_s)
    return (
        *ended,
        *(replace(running[member], starts_s=(ended[member].ends_s or 0.0) + change.interval_s) for member in members),
    )


def _interrupt(running: Sequence[Process], members: Sequence[int], how: str, for_s: float) -> tuple[Process, ...]:
    """Return the processes where those in these places do nothing for a while and then go on."""
    resumed = (replace(running[member], starts_s=for_s, resumes=member) for member in members)
    return (*_ended(running, members, how, 0.0), *resumed)


def _stopped(running: Sequence[Process], rolling: Rolling) -> list[Process]:
    """Return the processes where each ends at one of the rolling update's times; which one at which is drawn later."""
    ends = zip(running, rolling.pods_stop_s, strict=True)
    return [replace(process, ends_s=at, how=GRACEFUL, grace_s=rolling.grace_s) for process, at in ends]


def _started(clients: Sequence[Client], version: Version, first: int, starts_s: Sequence[float]) -> list[Process]:
    """Return a process for each new client, the first of which has this place."""
    starts = zip(clients, starts_s, strict=True)
    return [Process(first + order, client.threads, version, starts_s=at) for order, (client, at) in enumerate(starts)]


def _switched(
    running: Sequence[Process], members: Sequence[int], change: StrategyChange | SubscriptionChange | Upgrade
) -> tuple[Process, ...]:
    """Return the processes where those in these places end in turn and start at once as something else."""
    other: dict[str, Any] = {"version": change.to} if isinstance(change, Upgrade) else {"strategy": AFTER}
    if isinstance(change, SubscriptionChange):
        other = {"subscription": AFTER}
    ended = _ended(running, members, GRACEFUL, change.interval_s)
    started = (replace(running[member], starts_s=ended[member].ends_s, follows=member, **other) for member in members)
    return (*ended, *started)
