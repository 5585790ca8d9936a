"""What each broker's member table holds at any time, and whom it wakes when it changes.

``ConsumerManager`` and ``ConsumerGroupInfo`` (4.9.8, 5.5.0): a table a broker, an entry a channel. A new channel, an
unregistration and a closed channel wake all members of that table; the scan for silent ones wakes nobody.
"""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.changing import FREEZE, SILENT
from planner.simulation.dynamics.rocketmq.changes import CUT
from planner.simulation.dynamics.rocketmq.lives import ALWAYS, NEVER, LifeTimes
from planner.simulation.dynamics.rocketmq.timing import (
    BATCHED_NOTIFICATION_S,
    CHANNEL_SCAN_S,
    LONG_POLL_S,
    Calibration,
)
from planner.simulation.dynamics.rocketmq.world import Booleans, Floats, Indexes, World
from planner.simulation.dynamics.spreads import spread, tailed


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Seconds since the change, by trial, life and broker: ``entered`` and ``left`` the table.

    ``tells_entering`` and ``tells_leaving`` are false where an entry is added or removed without waking anybody. The
    entry of a life that stood still becomes that of the one that resumes it, unless the broker has removed it by then.
    """

    entered: Floats
    left: Floats
    tells_entering: Booleans
    tells_leaving: Booleans

    def holds(self, life: int, brokers: Indexes, at: Floats) -> Booleans:
        """Return whether that broker's table holds the life at that time; trials come first in both arrays."""
        flat = brokers.reshape(len(brokers), -1)
        entered = np.take_along_axis(self.entered[:, life, :], flat, axis=1).reshape(brokers.shape)
        left = np.take_along_axis(self.left[:, life, :], flat, axis=1).reshape(brokers.shape)
        return (entered <= at) & (at < left)

    @property
    def last_change(self) -> Floats:
        """Return for each trial when the last table changes; 0 where none does."""
        times = np.concatenate([self.entered, self.left], axis=1)
        finite = np.where(np.isfinite(times), times, 0.0)
        last: Floats = np.maximum(finite.max(axis=(1, 2), initial=0.0), 0.0)
        return last


def member_tables(world: World, times: LifeTimes, calibration: Calibration, random: np.random.Generator) -> Tables:
    """Return the tables that follow from starts and ends; brokers that die or start are not in it yet."""
    shape = (world.request.trials, len(world.lives), len(world.brokers))
    entered, left = np.full(shape, ALWAYS), np.full(shape, NEVER)
    tables = Tables(entered, left, np.ones(shape, dtype=bool), np.ones(shape, dtype=bool))
    for index, life in enumerate(world.lives):
        if life.resumes is not None:
            _wake(world, times, tables, index, calibration, random)
        elif life.starts_s is not None:
            steps = _one_after_the_other(calibration.register_step_s, shape, random)
            entered[:, index] = times.heartbeat[:, index, None] + steps
        if life.how in (SILENT, FREEZE, CUT):
            left[:, index], tables.tells_leaving[:, index] = _expiry(world, times.ended[:, index], random)
        elif life.how is not None:
            left[:, index] = _noticed(times, index, calibration, shape, random)
    if world.down is not None:
        left[:, :, world.down] = np.minimum(left[:, :, world.down], 0.0)
        tables.tells_leaving[:, :, world.down] = False
    return tables


def _wake(
    world: World, times: LifeTimes, tables: Tables, index: int, calibration: Calibration, random: np.random.Generator
) -> None:
    """Fill in the entries of a process that stood still: it keeps those that no broker has removed by then."""
    old = world.lives[index].resumes
    woken, expires = times.heartbeat[:, index, None], tables.left[:, old]
    removed = expires < woken
    again = woken + _until_heartbeat(world, index, calibration, random)
    again = again + _one_after_the_other(calibration.query_s, tables.left.shape, random)
    tables.entered[:, index], tables.tells_entering[:, index] = np.where(removed, again, woken), removed
    tables.tells_leaving[:, old] &= removed
    tables.left[:, old] = np.minimum(expires, woken)


def _until_heartbeat(world: World, index: int, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return how long after waking a process sends a heartbeat: at once if one was due, or as it connects (5.2+).

    The timers of one that was only cut off went on.
    """
    request, slept = world.request, world.lives[index].starts_s or 0.0
    if world.lives[world.lives[index].resumes or 0].how == CUT:
        slept = 0.0
    at_once = spread(random, calibration.woken_timer_s, (request.trials, 1))
    interval = request.settings.seconds("heartbeatBrokerInterval")
    if request.generation.registers_on_connect and request.settings.is_on("enableHeartbeatChannelEventListener"):
        return at_once
    return at_once if slept >= interval else at_once + random.uniform(0, interval - slept, at_once.shape)


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


def _expiry(world: World, died: Floats, random: np.random.Generator) -> tuple[Floats, Booleans]:
    """Return when each broker removes a silent member, and whether it tells: the scan does not, the idle close does."""
    settings = world.request.settings
    shape = (len(died), len(world.brokers))
    heartbeat_age = random.uniform(0, settings.seconds("heartbeatBrokerInterval"), (len(died), 1))
    wait_for_scan = random.uniform(0, CHANNEL_SCAN_S, shape)
    scanned = settings.seconds("channelExpiredTimeout") - heartbeat_age + wait_for_scan
    idle = settings.value("serverChannelMaxIdleTimeSeconds") - random.uniform(0, LONG_POLL_S, shape)
    return died[:, None] + np.maximum(np.minimum(scanned, idle), 0.0), idle < scanned


def notifications(world: World, tables: Tables, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return when each life is woken, sorted: trials, lives, wake-ups (NEVER where there are fewer)."""
    trials, lives, _ = tables.entered.shape
    if not world.request.settings.is_on("notifyConsumerIdsChangedEnable"):
        return np.full((trials, lives, 0), NEVER)
    entered, left = (
        np.where(tables.tells_entering, tables.entered, NEVER),
        np.where(tables.tells_leaving, tables.left, NEVER),
    )
    told = np.concatenate([entered, left], axis=1)
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
    return np.where(stands, at[:, None], NEVER)
