"""What each broker's member table holds at any time, and whom it wakes when it changes.

``ConsumerManager`` and ``ConsumerGroupInfo`` (4.9.8, 5.5.0): a table a broker, an entry a channel. A new channel, an
unregistration and a closed channel wake all members of that table; the scan for silent ones wakes nobody.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.forecast.common.bisection import first_after
from planner.forecast.common.changes import FREEZE, SILENT
from planner.forecast.common.delay_ranges import spread, tailed
from planner.forecast.rocketmq.membership.ownership import state_matrix
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, LifeTimes
from planner.forecast.rocketmq.membership.processes import BEFORE
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.rocketmq.membership.unknown_ids import Names
from planner.forecast.rocketmq.request.changes import CUT
from planner.forecast.rocketmq.timing import (
    ANSWERED_S,
    BATCHED_NOTIFICATION_S,
    CHANNEL_SCAN_S,
    LONG_POLL_S,
    NETWORK_TIMEOUT_S,
    Calibration,
)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Seconds since the change, by trial, life and broker: ``entered`` and ``left`` the table.

    ``again``: enters once more, after it was cut off from that broker for a while (else NEVER).
    ``tells_entering`` and ``tells_leaving`` are false where an entry is added or removed without waking anybody. The
    entry of a life that stood still becomes that of the one that resumes it, unless the broker has removed it by then.
    """

    entered: Floats
    left: Floats
    tells_entering: Booleans
    tells_leaving: Booleans
    again: Floats

    def sums(
        self, weights: NDArray[np.uint64], trials: Indexes, brokers: Indexes, at: Floats
    ) -> tuple[NDArray[np.uint64], Indexes]:
        """Return the weight and the count of the lives that the tables of these brokers hold then in these trials.

        ``weights``: one a life, 0 for those that do not count; sums go round at 2^64. The other three are as long.
        """
        counted = np.flatnonzero(weights)
        entered, left, again = (part[:, counted] for part in (self.entered, self.left, self.again))
        stays = again <= left
        left, again = np.where(stays, NEVER, left), np.where(stays, NEVER, again)
        is_there = entered < left
        times = np.concatenate([np.where(is_there, entered, NEVER), np.where(is_there, left, NEVER), again], axis=1)
        of_event = np.concatenate([weights[counted], -weights[counted], weights[counted]])
        steps = np.repeat(np.array([1, -1, 1]), len(counted))
        order = np.moveaxis(times, 1, 2).argsort(axis=2)
        rows = np.take_along_axis(np.moveaxis(times, 1, 2), order, axis=2)
        row = trials * rows.shape[1] + brokers
        place = row * (rows.shape[2] + 1) + first_after(
            rows.reshape(rows.shape[0] * rows.shape[1], rows.shape[2]), row, at
        )

        def summed(values: NDArray[Any]) -> NDArray[Any]:
            found = np.zeros((*rows.shape[:2], rows.shape[2] + 1), dtype=values.dtype)
            np.cumsum(values[order], axis=2, out=found[:, :, 1:])
            told: NDArray[Any] = found.ravel().take(place)
            return told

        return summed(of_event), summed(steps)

    def listed(self, trials: Indexes, brokers: Indexes, at: Floats) -> Booleans:
        """Return which lives the tables of these brokers hold at these times of these trials, by time and life."""
        entered, left, again = (part[trials, :, brokers] for part in (self.entered, self.left, self.again))
        found: Booleans = (entered <= at[:, None]) & (at[:, None] < left) | (again <= at[:, None])
        return found

    @property
    def last_change(self) -> Floats:
        """Return for each trial when the last table changes; 0 where none does."""
        times = np.concatenate([self.entered, self.left, self.again], axis=1)
        finite = np.where(np.isfinite(times), times, 0.0)
        last: Floats = np.maximum(finite.max(axis=(1, 2), initial=0.0), 0.0)
        return last


def member_tables(world: World, times: LifeTimes, calibration: Calibration, random: np.random.Generator) -> Tables:
    """Return the tables that follow from starts and ends; brokers that die or start are not in it yet."""
    shape = (world.request.trials, len(world.lives), len(world.brokers))
    entered, left = np.full(shape, ALWAYS), np.full(shape, NEVER)
    tables = Tables(entered, left, np.ones(shape, dtype=bool), np.ones(shape, dtype=bool), np.full(shape, NEVER))
    for index, life in enumerate(world.lives):
        if life.resumes is not None:
            _wake(world, times, tables, index, calibration, random)
        elif life.starts_s is not None:
            steps = _one_after_the_other(calibration.register_step_s, shape, random)
            entered[:, index] = times.heartbeat[:, index, None] + steps
        if life.how in (SILENT, FREEZE, CUT):
            left[:, index], tables.tells_leaving[:, index] = _expiry(world, index, times.ended[:, index], random)
        elif life.how is not None:
            left[:, index] = _noticed(times, index, calibration, shape, random)
    for index in np.flatnonzero(world.severed.any(axis=1)).tolist():
        _sever(world, times, tables, index, calibration, random)
    if world.down is not None:
        left[:, :, world.down] = np.minimum(left[:, :, world.down], 0.0)
        tables.tells_leaving[:, :, world.down] = False
    return tables


def _sever(
    world: World, times: LifeTimes, tables: Tables, index: int, calibration: Calibration, random: np.random.Generator
) -> None:
    """Fill in the entries of a client that is cut off from some brokers: they drop it, and it registers again."""
    expires, tells = _expiry(world, index, np.zeros(world.request.trials), random)
    back, lost = times.reached[:, index, None], world.severed[index]
    # Pulls try for a connection nearly all along: what comes in between waits for the rest of their attempt.
    late_s = _late_s(world, times, index, world.severed_s, lost, NETWORK_TIMEOUT_S / 2)
    again = back + _until_heartbeat(world, late_s, calibration, random)
    forgotten = _forgotten(times.closed[:, index, None], world.severed_s, expires.shape, random)
    is_expired = expires < back
    is_dropped = lost & (is_expired | (forgotten < again))
    goes = np.where(is_expired, expires, forgotten)
    tables.left[:, index] = np.where(is_dropped, goes, tables.left[:, index])
    tables.tells_leaving[:, index] = np.where(is_dropped & is_expired, tells, tables.tells_leaving[:, index])
    tables.again[:, index] = np.where(is_dropped, again, NEVER)


def _wake(
    world: World, times: LifeTimes, tables: Tables, index: int, calibration: Calibration, random: np.random.Generator
) -> None:
    """Fill in the entries of a process that stood still or was cut off: it keeps those that no broker has removed."""
    old = world.lives[index].resumes or 0
    woken, expires = times.heartbeat[:, index, None], tables.left[:, old]
    # Brokers that gave it up closed its connections: it opens the second one as a process that starts does.
    steps = _one_after_the_other(calibration.register_step_s, tables.left.shape, random)
    back_s = world.lives[index].starts_s or 0.0
    late_s: Floats | float = back_s
    if world.lives[old].how == CUT:
        late_s = _late_s(world, times, old, back_s, np.ones(len(world.brokers), dtype=bool), NETWORK_TIMEOUT_S)
    again = woken + _until_heartbeat(world, late_s, calibration, random)
    again = again + spread(random, calibration.query_s, woken.shape) + steps - steps.min(axis=1, keepdims=True)
    forgotten = _forgotten(times.closed[:, old, None], back_s, again.shape, random)
    removed = expires < woken
    late = ~removed & (forgotten < again)
    goes = np.where(late, forgotten, np.minimum(expires, woken))
    tables.entered[:, index] = np.where(removed | late, again, woken)
    tables.tells_entering[:, index] = removed | late
    tables.tells_leaving[:, old] = tables.tells_leaving[:, old] & removed | late
    tables.left[:, old] = goes


def _forgotten(closed: Floats, back_s: float, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return when brokers hear that a client has closed the connections that it had before it was cut off.

    TCP tells them again and again, after waits that are about as long as it has tried already. Brokers remove the
    client then, unless a heartbeat has come by a new connection (``ConsumerManager#doChannelCloseEvent``).
    """
    tried_s = np.where(np.isfinite(closed), back_s - np.where(np.isfinite(closed), closed, 0.0), NEVER)
    return back_s + random.random(shape) * tried_s


def _until_heartbeat(
    world: World, late_s: Floats | float, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long after waking a process sends a heartbeat: at once if one was due, or as it connects (5.2+).

    ``late_s``: how late its timers are; those of one that was only cut off went on, but may be late by then.
    """
    request = world.request
    at_once = spread(random, calibration.woken_timer_s, (request.trials, 1))
    if request.generation.registers_on_connect and request.settings.is_on("enableHeartbeatChannelEventListener"):
        return at_once
    due = random.uniform(0, request.settings.seconds("heartbeatBrokerInterval"), at_once.shape)
    found: Floats = at_once + np.maximum(due - late_s, 0.0)
    return found


def _late_s(world: World, times: LifeTimes, life: int, cut_s: float, lost: Booleans, each_s: float) -> Floats:
    """Return by trial how late the timers of a client are after a cut from these brokers: one thread has them all.

    Up to 5.1 each offset, heartbeat and route waits (``each_s``) for a connection there, once the first heartbeat has
    timed out and closed the old one (``NettyRemotingClient#createChannel``,
    ``RemoteBrokerOffsetStore#persistAll``). Name servers are lost with the last broker. What is due more often than it
    is done falls behind, and is made up for at once when the network is back.
    """
    settings = world.request.settings
    broker_of = np.array([world.brokers.index(queue.broker) for queue in world.queues], dtype=np.intp)
    often = {
        "persistConsumerOffsetInterval": (_owned(world)[life] & lost[broker_of]).sum(),
        "heartbeatBrokerInterval": lost.sum(),
        "pollNameServerInterval": len(world.topics) * lost.all(),
    }
    busy = each_s * sum(count / settings.seconds(name) for name, count in often.items())
    lasted = np.maximum(cut_s - times.closed[:, life, None], 0.0)
    found: Floats = lasted * (1 - 1 / max(busy, 1.0))
    return found


def _noticed(
    times: LifeTimes, index: int, calibration: Calibration, shape: tuple[int, ...], random: np.random.Generator
) -> Floats:
    """Return when each broker is told of an end, or sees the connection of a process that was killed close."""
    graceful, found = times.graceful[:, index, None], np.full((shape[0], shape[2]), NEVER)
    if graceful.any():
        found = times.saved[:, index, None] + _one_after_the_other(calibration.unregister_step_s, shape, random)
    if graceful.all():
        return found
    closed = spread(random, calibration.reset_noticed_s, (shape[0], 1))
    closed = times.stopped[:, index, None] + closed + tailed(random, calibration.reset_step_s, found.shape)
    return np.where(graceful, found, closed)


def _one_after_the_other(step: tuple[float, float], shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return when each broker's turn comes, brokers in any order: a client serves its hash map of brokers in turn."""
    trials, _, brokers = shape
    turns = np.cumsum(tailed(random, step, (trials, brokers)), axis=1)
    order = random.random((trials, brokers)).argsort(axis=1)
    return np.take_along_axis(turns, order, axis=1)


def _expiry(world: World, index: int, died: Floats, random: np.random.Generator) -> tuple[Floats, Booleans]:
    """Return when each broker removes a silent member, and whether it tells: the scan does not, the idle close does."""
    settings = world.request.settings
    shape = (len(died), len(world.brokers))
    heartbeat_age = random.uniform(0, settings.seconds("heartbeatBrokerInterval"), (len(died), 1))
    wait_for_scan = random.uniform(0, CHANNEL_SCAN_S, shape)
    scanned = settings.seconds("channelExpiredTimeout") - heartbeat_age + wait_for_scan
    # Pulls keep a channel busy to the end, and the broker still answers those that it holds: longest where the member
    # has the broker's retry queue, to which nothing comes and which only push consumers subscribe. Where it pulls
    # nothing, the last to come was a heartbeat, or a question for the members.
    quiet = random.uniform(0, settings.seconds("rocketmq.client.rebalance.waitInterval"), shape)
    waits = (random.random(shape) * len(world.initial) < 1) & (not world.request.polls)
    answered = np.where(waits, random.uniform(0, LONG_POLL_S, shape), tailed(random, ANSWERED_S, shape))
    last = np.where(_pulls(world)[index] | waits, answered, -np.minimum(quiet, heartbeat_age))
    idle = settings.value("serverChannelMaxIdleTimeSeconds") + last
    return died[:, None] + np.maximum(np.minimum(scanned, idle), 0.0), idle < scanned


def _pulls(world: World) -> Booleans:
    """Return by life and broker whether messages come, before the change, that the life pulls from there."""
    owned = _owned(world) & (world.rates + world.lags > 0)
    brokers = np.array([world.brokers.index(queue.broker) for queue in world.queues], dtype=np.intp)
    return np.stack([owned[:, brokers == number].any(axis=1) for number in range(len(world.brokers))], axis=1)


def _owned(world: World) -> Booleans:
    """Return by life and queue who owns what before the change."""
    ids = tuple(client.id or "" for client in world.clients)
    names = Names((ids,), np.zeros(world.request.trials, dtype=np.intp), ids)
    return state_matrix(world, names, BEFORE, world.initial)


def notifications(world: World, tables: Tables, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return when each life is woken, sorted: trials, lives, wake-ups (NEVER where there are fewer)."""
    trials, lives, _ = tables.entered.shape
    if not world.request.settings.is_on("notifyConsumerIdsChangedEnable"):
        return np.full((trials, lives, 0), NEVER)
    entered, left = (
        np.where(tables.tells_entering, tables.entered, NEVER),
        np.where(tables.tells_leaving, tables.left, NEVER),
    )
    told = np.concatenate([entered, left, tables.again], axis=1)
    happen = np.argwhere(np.isfinite(told).any(axis=0)).tolist()
    groups = world.groups
    wakes = [
        np.where(groups == groups[which % lives], _woken(tables, told[:, which, broker], broker), NEVER)
        for which, broker in happen
    ]
    if not wakes:
        return np.full((trials, lives, 0), NEVER)
    found = np.stack(wakes, axis=2)
    if not world.request.settings.is_on("realTimeNotifyConsumerChange"):
        phase = random.uniform(0, BATCHED_NOTIFICATION_S, (trials, 1, 1))
        found = phase + np.ceil((found - phase) / BATCHED_NOTIFICATION_S) * BATCHED_NOTIFICATION_S
    found = found + spread(random, calibration.notified_s, found.shape)
    if calibration.notification_lost:
        found = np.where(random.random(found.shape) < calibration.notification_lost, NEVER, found)
    found.sort(axis=2)
    return found


def _woken(tables: Tables, at: Floats, broker: int) -> Floats:
    """Return the time for every life that stands in the table then, NEVER for the others."""
    at = np.where(np.isfinite(at), at, NEVER)
    stands = (tables.entered[:, :, broker] <= at[:, None]) & (at[:, None] < tables.left[:, :, broker])
    stands |= tables.again[:, :, broker] <= at[:, None]
    return np.where(stands, at[:, None], NEVER)
