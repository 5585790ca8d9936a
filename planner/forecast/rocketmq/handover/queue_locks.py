"""Orderly queues: when the new owner gets the broker's lock (``RebalanceLockManager``, ``RebalanceImpl#lock``)."""

from dataclasses import dataclass, replace

import numpy as np

from planner.forecast.common.bisection import first_after, first_from
from planner.forecast.common.delay_ranges import draw_evenly
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog
from planner.forecast.rocketmq.membership.process_times import NEVER, ProcessTimes
from planner.forecast.rocketmq.membership.rebalances import Rebalances
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, Scenario
from planner.forecast.rocketmq.timing import ORDERLY_RETRY_AFTER_LOCK_S, Calibration


@dataclass(frozen=True, slots=True, eq=False)
class _Schedule:
    """Seconds of rebalances, one row for each of ``processes`` in each trial: ``at``, NEVER at the end, and the
    ``last``."""

    processes: int
    at: Floats
    last: Floats


def _schedule(rebalances: Rebalances) -> _Schedule:
    """Return the rebalances, row by row."""
    trials, processes, count = rebalances.at.shape
    at = np.pad(rebalances.at.reshape(trials * processes, count), ((0, 0), (0, 1)), constant_values=NEVER)
    last = np.where(np.isfinite(at), at, -np.inf).max(axis=1)
    return _Schedule(processes, at, last)


def apply_queue_locks(
    scenario: Scenario,
    times: ProcessTimes,
    tenures: Tenures,
    rebalances: Rebalances,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Tenures:
    """Return the tenures as the locks allow them.

    A queue is locked by client id: the same client, started again, has its lock at once. A lock that nobody releases
    lasts ``rocketmq.broker.rebalance.lockMaxLiveTime`` from its last renewal.
    """
    schedule = _schedule(rebalances)
    unlocked = _unlock_times(scenario, times, tenures, schedule, rates, calibration, random)
    client = np.array([process.client for process in scenario.processes])
    taken = tenures.taken.copy()
    for number in range(1, taken.shape[2]):
        trial, queue = np.nonzero(tenures.process[:, :, number] != NOBODY)
        holder, since = tenures.process[trial, queue, number], taken[trial, queue, number]
        earlier, mine = tenures.process[trial, queue, :number], holder[:, None]
        locked = (taken[trial, queue, :number] < tenures.dropped[trial, queue, :number]) & (
            client[earlier] != client[mine]
        )
        locked &= scenario.groups[earlier] == scenario.groups[mine]
        free = np.where(locked, unlocked[trial, queue, :number], -np.inf).max(axis=1)
        attempts = _attempts(scenario, schedule, (trial, holder), since, free)
        taken[trial, queue, number] = np.where(free <= since, since, attempts)
    taken = np.where(tenures.process == NOBODY, NEVER, taken)
    is_owned = taken < tenures.dropped
    return replace(tenures, taken=np.where(is_owned, taken, NEVER), process=np.where(is_owned, tenures.process, NOBODY))


def _unlock_times(
    scenario: Scenario,
    times: ProcessTimes,
    tenures: Tenures,
    schedule: _Schedule,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return when each tenure's lock is free."""
    behaviour, settings = scenario.behaviour, scenario.request.settings
    shape, owner = tenures.process.shape, np.maximum(tenures.process, 0)
    patience = behaviour.listener_wait_s[owner]
    busy = np.minimum(rates.consumed[tenures.queues] * rates.service_s, 1.0)[None, :, None]
    runs = random.random(shape) < busy
    remaining = np.where(runs, random.uniform(0, rates.service_s, shape), 0.0)
    waits_longer = remaining > patience
    released = tenures.dropped + np.minimum(remaining, patience)
    released = released + draw_evenly(random, calibration.listener_lock_s, shape)
    if behaviour.unlocks_late.any():
        backlog = has_backlog(scenario, rates.service_s)[tenures.queues][None, :, None]
        has_cached = backlog | (runs & (random.random(shape) < busy))
        late = released + settings.seconds("rocketmq.client.unlockDelayTimeMills")
        released = np.where(has_cached & behaviour.unlocks_late[owner], late, released)
    # The owner's next round tries again, once the call is over or nearly so.
    trial = np.arange(shape[0])[:, None, None]
    retried = _next_rebalances(
        scenario, schedule, (trial, owner), tenures.dropped, tenures.dropped + remaining - patience
    )
    released = np.where(waits_longer, np.maximum(tenures.dropped + remaining, retried), released)
    expiry = settings.seconds("rocketmq.broker.rebalance.lockMaxLiveTime")
    # A client renews all its locks in one request, so they are of one age.
    ages = random.uniform(0, settings.seconds("rocketmq.client.rebalance.lockInterval"), times.saved.shape)
    renewed, saved = times.of_holders(ages, tenures.process), times.of_holders(times.saved, tenures.process)
    at_end = np.where(
        times.of_holders(times.graceful, tenures.process), saved, tenures.dropped + np.maximum(expiry - renewed, 0.0)
    )
    free: Floats = np.where(tenures.dies, at_end, released)
    return free


def _attempts(
    scenario: Scenario, schedule: _Schedule, of: tuple[Indexes, Indexes], taken: Floats, free: Floats
) -> Floats:
    """Return the holder's first attempt after the lock is free: its rebalances, its ticks, and since 5.0 its retries.

    NEVER where the lock is never free, or nothing was gained.
    """
    behaviour, (_, owner) = scenario.behaviour, of
    next_at = np.where(np.isfinite(free), _next_rebalances(scenario, schedule, of, taken, free), NEVER)
    pace = np.maximum(behaviour.gap_s, ORDERLY_RETRY_AFTER_LOCK_S)[owner]
    waits = np.isfinite(next_at)
    since = np.where(waits, taken, 0.0)
    retries = np.ceil(np.maximum(np.where(waits, free, 0.0) - since, 0) / pace)
    retried_at = np.where(behaviour.retries_lock[owner], since + retries * pace, NEVER)
    return np.where(waits, np.minimum(next_at, retried_at), NEVER)


def _next_rebalances(
    scenario: Scenario, schedule: _Schedule, of: tuple[Indexes, Indexes], since: Floats, earliest: Floats
) -> Floats:
    """Return each holder's first rebalance after ``since`` that is not before ``earliest``; after the last one its
    ticks.

    ``of``: trial and holder of each time; NEVER where ``since`` is.
    """
    wait = scenario.request.settings.seconds("rocketmq.client.rebalance.waitInterval")
    earliest = np.maximum(earliest, since)
    trial, holder = of
    row = trial * schedule.processes + holder
    index = np.maximum(first_after(schedule.at, row, since), first_from(schedule.at, row, earliest))
    next_at = schedule.at[row, np.minimum(index, schedule.at.shape[1] - 1)]
    last = np.where(np.isfinite(since), np.maximum(schedule.last[row], since), 0.0)
    late = np.where(np.isfinite(earliest), earliest, 0.0)
    ticks = last + np.maximum(np.ceil((late - last) / wait), 1.0) * wait
    return np.where(np.isfinite(since), np.minimum(next_at, ticks), NEVER)
