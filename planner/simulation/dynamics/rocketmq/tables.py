"""What each broker's member table holds at any time, and whom it wakes when it changes.

``ConsumerManager`` and ``ConsumerGroupInfo`` (4.9.8, 5.5.0): a table a broker, an entry a channel. A new channel, an
unregistration and a closed channel wake all members of that table; the scan for silent ones wakes nobody.
"""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.rocketmq.changes import CRASH, FREEZE, GRACEFUL, SILENT
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
    tells_entering, tells = np.ones(shape, dtype=bool), np.ones(shape, dtype=bool)
    silent_since = np.zeros((shape[0], shape[1], 1))
    for index, life in enumerate(world.lives):
        if life.resumes is not None:
            woken, expired = times.heartbeat[:, index, None], left[:, life.resumes]
            again = _registered_again(world, woken, silent_since[:, life.resumes], calibration, shape, random)
            tells_entering[:, index] = expired < woken
            entered[:, index] = np.where(expired < woken, again, woken)
            left[:, life.resumes], tells[:, life.resumes] = (
                np.minimum(expired, woken),
                tells[:, life.resumes] & (expired < woken),
            )
        elif life.starts_s is not None:
            steps = _one_after_the_other(calibration.register_step_s, shape, random)
            entered[:, index] = times.heartbeat[:, index, None] + steps
        if life.how == GRACEFUL:
            steps = _one_after_the_other(calibration.unregister_step_s, shape, random)
            left[:, index] = times.saved[:, index, None] + steps
        elif life.how == CRASH:
            noticed = spread(random, calibration.reset_noticed_s, (shape[0], 1))
            noticed = noticed + spread(random, calibration.reset_step_s, (shape[0], shape[2]))
            left[:, index] = times.ended[:, index, None] + noticed
        elif life.how in (SILENT, FREEZE):
            silent_since[:, index] = _last_heartbeats(world, times.ended[:, index], random)
            left[:, index], tells[:, index] = _expiry(world, times.ended[:, index], silent_since[:, index], random)
    if world.down is not None:
        left[:, :, world.down], tells[:, :, world.down] = np.minimum(left[:, :, world.down], 0.0), False
    return Tables(entered, left, tells_entering, tells)


def _one_after_the_other(step: tuple[float, float], shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return when each broker's turn comes, brokers in any order: a client serves its hash map of brokers in turn."""
    trials, _, brokers = shape
    turns = np.cumsum(tailed(random, step, (trials, brokers)), axis=1)
    order = random.random((trials, brokers)).argsort(axis=1)
    return np.take_along_axis(turns, order, axis=1)


def _last_heartbeats(world: World, silent: Floats, random: np.random.Generator) -> Floats:
    """Return when members that fall silent sent their last heartbeat, one column for all brokers."""
    return silent[:, None] - random.uniform(
        0, world.request.settings.seconds("heartbeatBrokerInterval"), (len(silent), 1)
    )


def _expiry(world: World, silent: Floats, heartbeat: Floats, random: np.random.Generator) -> tuple[Floats, Booleans]:
    """Return when each broker removes a silent member, and whether it tells: the scan does not, the idle close does."""
    settings = world.request.settings
    shape = (len(silent), len(world.brokers))
    scanned = heartbeat + settings.seconds("channelExpiredTimeout") + random.uniform(0, CHANNEL_SCAN_S, shape)
    idle = settings.value("serverChannelMaxIdleTimeSeconds") - random.uniform(0, LONG_POLL_S, shape)
    idle = silent[:, None] + idle
    return np.maximum(np.minimum(scanned, idle), silent[:, None]), idle < scanned


def _registered_again(
    world: World,
    woken: Floats,
    heartbeat: Floats,
    calibration: Calibration,
    shape: tuple[int, ...],
    random: np.random.Generator,
) -> Floats:
    """Return when each broker that removed a frozen member has it again: with a heartbeat that was due, at once.

    One that was not due comes at its time; since 5.2 the new connection brings it.
    """
    interval = world.request.settings.seconds("heartbeatBrokerInterval")
    if (
        not world.request.settings.is_on("enableHeartbeatChannelEventListener")
        or not world.request.generation.registers_on_connect
    ):
        woken = np.maximum(woken, heartbeat + interval)
    awake = woken + spread(random, calibration.woken_timer_s, woken.shape)
    return awake + _one_after_the_other(calibration.unregister_step_s, shape, random)


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
    wakes = [_woken(tables, told[:, which, broker], broker) for which, broker in happen]
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
