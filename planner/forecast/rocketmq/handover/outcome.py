"""From holds and deliveries to what anybody can observe: pause, stall, burst, settle."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.backlog_drain import drained
from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.offsets import Deliveries
from planner.forecast.rocketmq.handover.tenures import NOBODY, Holds
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog
from planner.forecast.rocketmq.membership.ownership import Owners
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.rocketmq.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """By trial and queue, seconds and messages as the contract defines them.

    By trial: ``settle_s``; ``drained_s``, when no backlog is left (NaN: never); ``unread_s``, the longest time in which
    nobody delivers some queue, whoever did before and does after.
    """

    pause_s: Floats
    duplicates: Floats
    burst: Floats
    settle_s: Floats
    drained_s: Floats
    unread_s: Floats


def observe(
    world: World,
    owners: Owners,
    holds: Holds,
    starts: Starts,
    found: Deliveries,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Observed:
    """Return what an observer of all deliveries would see in each trial."""
    trials = world.request.trials
    shape = (trials, len(world.queues))
    client = np.array([*(life.client for life in world.lives), NOBODY])[holds.life]
    after = owners.after[:, holds.queues]
    before = np.broadcast_to(owners.before[holds.queues], after.shape)
    moves = owners.moves[:, holds.queues]
    is_old, is_new = client == before[:, :, None], client == after[:, :, None]
    if world.goes_back_and_forth:
        is_old &= starts.first < _first_by(is_new, starts, found)[:, :, None]
    between = between_owners(is_old, is_new, holds, starts, found)
    gaps = longest_gap(holds, starts, found)
    pause = np.where(moves, between, np.where(before == after, gaps, np.nan))
    pauses = np.where(owners.before == owners.after, 0.0, np.full(shape, np.nan))
    pauses[:, holds.queues] = pause
    if world.request.polls:
        stalls = _waits_in_line(world, owners, holds, starts, found, rates)
    else:
        stalls = _stalls(world, owners, holds, calibration, random)
    pauses = np.where(owners.before == owners.after, np.maximum(pauses, stalls), pauses)
    pauses[:, owners.before == NOBODY] = np.nan
    duplicates, burst = np.zeros(shape), np.zeros(shape)
    duplicates[:, holds.queues] = found.duplicates
    final_first, final_start = _final_hold(client, after, holds, starts, found)
    waits = np.isfinite(final_first)
    settled = np.where(waits, np.maximum(final_first, 0.0), 0.0)
    due = np.maximum(world.rates[holds.queues] * settled - np.where(waits, final_start, 0.0), 0.0)
    burst[:, holds.queues] = np.where(moves & waits, np.round(due), 0.0)
    begins, waiting = np.zeros(shape), np.broadcast_to(world.lags, shape).copy()
    begins[:, holds.queues] = settled
    waiting[:, holds.queues] = np.where(waits, due, waiting[:, holds.queues])
    gone = drained(world, owners.after, begins, waiting, rates)
    return Observed(pauses, duplicates, burst, settled.max(axis=1, initial=0.0), gone, gaps.max(axis=1, initial=0.0))


def between_owners(is_old: Booleans, is_new: Booleans, holds: Holds, starts: Starts, found: Deliveries) -> Floats:
    """Return first delivery of the new owners less last one of the old ones, 0 where they overlap.

    ``is_old`` and ``is_new`` say by trial, queue and hold whose it is.
    """
    first = _first_by(is_new, starts, found)
    last = np.where(found.delivers & is_old, holds.dropped, -np.inf).max(axis=2, initial=-np.inf)
    known = np.isfinite(first) & ~np.isneginf(last)
    return np.where(known, np.maximum(np.where(known, first, 0.0) - np.where(known, last, 0.0), 0.0), np.nan)


def _first_by(whose: Booleans, starts: Starts, found: Deliveries) -> Floats:
    """Return by trial and queue when these holds deliver first, infinite where they never do."""
    first: Floats = np.where(found.delivers & whose, starts.first, np.inf).min(axis=2, initial=np.inf)
    return first


def longest_gap(holds: Holds, starts: Starts, found: Deliveries) -> Floats:
    """Return the longest time in which nobody delivers, between the first hold and the last one."""
    trials, queues, count = holds.life.shape
    reached = np.where(found.delivers[:, :, 0], holds.dropped[:, :, 0], np.inf) if count else np.zeros((trials, queues))
    longest = np.zeros((trials, queues))
    for number in range(1, count):
        delivers = found.delivers[:, :, number]
        waited = delivers & np.isfinite(reached)
        gap = np.where(waited, starts.first[:, :, number], 0.0) - np.where(waited, reached, 0.0)
        longest = np.maximum(longest, gap)
        reached = np.where(delivers, np.maximum(reached, holds.dropped[:, :, number]), reached)
    return longest


def _final_hold(
    client: Indexes, after: Indexes, holds: Holds, starts: Starts, found: Deliveries
) -> tuple[Floats, Floats]:
    """Return when the final owner delivers for good, and from which offset; -inf where it did all along."""
    is_final = found.delivers & np.isposinf(holds.dropped) & (client == after[:, :, None])
    first = np.where(is_final, starts.first, -np.inf).max(axis=2, initial=-np.inf)
    start = np.where(is_final, found.start, -np.inf).max(axis=2, initial=-np.inf)
    return first, start


def _stalls(
    world: World, owners: Owners, holds: Holds, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long queues that stay stall: a pull that meets a version the broker does not know waits its retry.

    SUBSCRIPTION_NOT_LATEST hits any pull of the topic between a change of the member's queues and its heartbeat.
    """
    changes = np.zeros((world.request.trials, len(world.queues)))
    first_life = {life.client: index for index, life in reversed(list(enumerate(world.lives)))}
    for number, topic in enumerate(world.topics):
        picks = np.union1d(*topic.queues)
        lives = np.array([first_life.get(client, 0) for client in owners.before[picks].tolist()], dtype=np.intp)
        changes[:, picks] = holds.changes[:, lives, number]
    window = random.uniform(*calibration.stale_version_window_s, (world.request.trials, 1))
    odds = 1 - np.exp(-window * changes * world.rates)
    retry = world.request.settings.seconds("pullTimeDelayMillsWhenException")
    return np.where(random.random(changes.shape) < odds, retry, 0.0)


def _waits_in_line(
    world: World, owners: Owners, holds: Holds, starts: Starts, found: Deliveries, rates: Rates
) -> Floats:
    """Return how long queues that stay wait behind what their owner gains: all that it pulls stands in one line.

    ``consumeRequestCache`` of ``DefaultLitePullConsumerImpl``. A queue with a backlog has its own batches in that line.
    Less than two messages' distance is nothing to be seen.
    """
    most = world.request.settings.value("pullThresholdForQueue")
    delivers = found.delivers & np.isfinite(starts.first)
    due = world.rates[holds.queues][None, :, None] * np.where(delivers, starts.first, 0.0) - found.start
    line = np.zeros((world.request.trials, len(world.lives)))
    trial = np.broadcast_to(np.arange(len(line))[:, None, None], delivers.shape)
    np.add.at(line, (trial[delivers], holds.life[delivers]), np.clip(due[delivers], 0.0, most))
    first_life = {life.client: index for index, life in reversed(list(enumerate(world.lives)))}
    owner = np.array([first_life.get(client, NOBODY) for client in owners.before.tolist()], dtype=np.intp)
    waits = np.where(owner == NOBODY, 0.0, (line / rates.per_life)[:, np.maximum(owner, 0)])
    return np.where((waits * world.rates < 2) | has_backlog(world, rates.service_s), 0.0, waits)
