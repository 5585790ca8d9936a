"""Orderly queues: when the new owner gets the broker's lock (``RebalanceLockManager``, ``RebalanceImpl#lock``)."""

from dataclasses import dataclass, replace

import numpy as np

from planner.forecast.common.bisection import first_after, first_from
from planner.forecast.common.delay_ranges import spread
from planner.forecast.rocketmq.handover.tenures import NOBODY, Holds
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog
from planner.forecast.rocketmq.membership.process_times import NEVER, LifeTimes
from planner.forecast.rocketmq.membership.rebalances import Looks
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, World
from planner.forecast.rocketmq.timing import ORDERLY_RETRY_AFTER_LOCK_S, Calibration


@dataclass(frozen=True, slots=True, eq=False)
class _Schedule:
    """Seconds of looks, one row for each of ``lives`` in each trial: ``at``, NEVER at the end, and the ``last``."""

    lives: int
    at: Floats
    last: Floats


def _schedule(looks: Looks) -> _Schedule:
    """Return the looks, row by row."""
    trials, lives, count = looks.at.shape
    at = np.pad(looks.at.reshape(trials * lives, count), ((0, 0), (0, 1)), constant_values=NEVER)
    last = np.where(np.isfinite(at), at, -np.inf).max(axis=1)
    return _Schedule(lives, at, last)


def locked_holds(
    world: World,
    times: LifeTimes,
    holds: Holds,
    looks: Looks,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Holds:
    """Return the holds as the locks allow them.

    A queue is locked by client id: the same client, started again, has its lock at once. A lock that nobody releases
    lasts ``rocketmq.broker.rebalance.lockMaxLiveTime`` from its last renewal.
    """
    schedule = _schedule(looks)
    unlocked = _unlock_times(world, times, holds, schedule, rates, calibration, random)
    client = np.array([life.client for life in world.lives])
    gained = holds.gained.copy()
    for number in range(1, gained.shape[2]):
        trial, queue = np.nonzero(holds.life[:, :, number] != NOBODY)
        holder, since = holds.life[trial, queue, number], gained[trial, queue, number]
        earlier, mine = holds.life[trial, queue, :number], holder[:, None]
        locked = (gained[trial, queue, :number] < holds.dropped[trial, queue, :number]) & (
            client[earlier] != client[mine]
        )
        locked &= world.groups[earlier] == world.groups[mine]
        free = np.where(locked, unlocked[trial, queue, :number], -np.inf).max(axis=1)
        attempts = _attempts(world, schedule, (trial, holder), since, free)
        gained[trial, queue, number] = np.where(free <= since, since, attempts)
    gained = np.where(holds.life == NOBODY, NEVER, gained)
    is_held = gained < holds.dropped
    return replace(holds, gained=np.where(is_held, gained, NEVER), life=np.where(is_held, holds.life, NOBODY))


def _unlock_times(
    world: World,
    times: LifeTimes,
    holds: Holds,
    schedule: _Schedule,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return when each hold's lock is free."""
    traits, settings = world.traits, world.request.settings
    shape, owner = holds.life.shape, np.maximum(holds.life, 0)
    patience = traits.listener_wait_s[owner]
    busy = np.minimum(rates.consumed[holds.queues] * rates.service_s, 1.0)[None, :, None]
    runs = random.random(shape) < busy
    remaining = np.where(runs, random.uniform(0, rates.service_s, shape), 0.0)
    waits_longer = remaining > patience
    released = holds.dropped + np.minimum(remaining, patience)
    released = released + spread(random, calibration.listener_lock_s, shape)
    if traits.unlocks_late.any():
        backlog = has_backlog(world, rates.service_s)[holds.queues][None, :, None]
        has_cached = backlog | (runs & (random.random(shape) < busy))
        late = released + settings.seconds("rocketmq.client.unlockDelayTimeMills")
        released = np.where(has_cached & traits.unlocks_late[owner], late, released)
    # The owner's next round tries again, once the call is over or nearly so.
    trial = np.arange(shape[0])[:, None, None]
    tried_again = _next_looks(world, schedule, (trial, owner), holds.dropped, holds.dropped + remaining - patience)
    released = np.where(waits_longer, np.maximum(holds.dropped + remaining, tried_again), released)
    expiry = settings.seconds("rocketmq.broker.rebalance.lockMaxLiveTime")
    # A client renews all its locks in one request, so they are of one age.
    ages = random.uniform(0, settings.seconds("rocketmq.client.rebalance.lockInterval"), times.saved.shape)
    renewed, saved = times.of_holders(ages, holds.life), times.of_holders(times.saved, holds.life)
    at_end = np.where(
        times.of_holders(times.graceful, holds.life), saved, holds.dropped + np.maximum(expiry - renewed, 0.0)
    )
    free: Floats = np.where(holds.dies, at_end, released)
    return free


def _attempts(world: World, schedule: _Schedule, of: tuple[Indexes, Indexes], gained: Floats, free: Floats) -> Floats:
    """Return the holder's first attempt after the lock is free: its looks, its ticks, and since 5.0 its retries.

    NEVER where the lock is never free, or nothing was gained.
    """
    traits, (_, owner) = world.traits, of
    found = np.where(np.isfinite(free), _next_looks(world, schedule, of, gained, free), NEVER)
    pace = np.maximum(traits.gap_s, ORDERLY_RETRY_AFTER_LOCK_S)[owner]
    waits = np.isfinite(found)
    since = np.where(waits, gained, 0.0)
    retries = np.ceil(np.maximum(np.where(waits, free, 0.0) - since, 0) / pace)
    again = np.where(traits.retries_lock[owner], since + retries * pace, NEVER)
    return np.where(waits, np.minimum(found, again), NEVER)


def _next_looks(
    world: World, schedule: _Schedule, of: tuple[Indexes, Indexes], since: Floats, wanted: Floats
) -> Floats:
    """Return each holder's first look after ``since`` that is not before ``wanted``; after the last one its ticks.

    ``of``: trial and holder of each time; NEVER where ``since`` is.
    """
    wait = world.request.settings.seconds("rocketmq.client.rebalance.waitInterval")
    wanted = np.maximum(wanted, since)
    trial, holder = of
    course = trial * schedule.lives + holder
    place = np.maximum(first_after(schedule.at, course, since), first_from(schedule.at, course, wanted))
    found = schedule.at[course, np.minimum(place, schedule.at.shape[1] - 1)]
    last = np.where(np.isfinite(since), np.maximum(schedule.last[course], since), 0.0)
    late = np.where(np.isfinite(wanted), wanted, 0.0)
    ticks = last + np.maximum(np.ceil((late - last) / wait), 1.0) * wait
    return np.where(np.isfinite(since), np.minimum(found, ticks), NEVER)
