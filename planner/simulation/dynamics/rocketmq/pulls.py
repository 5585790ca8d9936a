"""From gaining a queue to the first delivery: offset, first pull, version race, and the messages already waiting."""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.rocketmq.changes import Partition
from planner.simulation.dynamics.rocketmq.holds import NOBODY, Holds
from planner.simulation.dynamics.rocketmq.lives import ALWAYS
from planner.simulation.dynamics.rocketmq.rates import Rates, cached_messages, has_backlog
from planner.simulation.dynamics.rocketmq.timing import PULL_TIMEOUT_S, Calibration
from planner.simulation.dynamics.rocketmq.world import Floats, Indexes, World
from planner.simulation.dynamics.spreads import spread, tailed


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """By trial, queue and hold: ``read`` is when the start offset is read, ``first`` when it delivers.

    ``delays`` are the parts of what lies between gaining and delivering, by cause.
    """

    read: Floats
    first: Floats
    delays: dict[str, Floats]


def first_deliveries(
    world: World, holds: Holds, rates: Rates, calibration: Calibration, random: np.random.Generator
) -> Starts:
    """Return when every hold begins to deliver; holds from before the change deliver all along."""
    shape = holds.life.shape
    is_new = np.isfinite(holds.gained)
    read = holds.gained + spread(random, calibration.query_s, shape)
    starts = np.array([life.starts_s is not None and life.resumes is None for life in world.lives])
    pull = _pull_delays(world, holds, calibration, random)
    first_pull = world.traits.first_pull_s[np.maximum(holds.life, 0)]
    race = _version_race(world, holds, calibration, random)
    delays = {
        "first_pull": first_pull,
        "version_race": race,
        "pull": np.where(
            starts[np.maximum(holds.life, 0)], pull + tailed(random, calibration.cold_pull_s, shape), pull
        ),
        "head_of_line": _head_of_line(world, holds, rates, race + first_pull, random),
    }
    if world.request.orderly and not world.traits.starts_locked.all():
        interval = world.request.settings.seconds("rocketmq.client.rebalance.lockInterval")
        waits = ~world.traits.starts_locked[np.maximum(holds.life, 0)]
        delays["lock_renewal"] = np.where(waits, random.uniform(0, interval, shape), 0.0)
    delays = {cause: np.where(is_new & ~holds.resumed, seconds, 0.0) for cause, seconds in delays.items()}
    if holds.resumed.any():
        delays["pull"] = np.where(holds.resumed, _resuming(world, holds, rates, calibration, random), delays["pull"])
        read = np.where(holds.resumed, holds.gained, read)
    first = np.where(holds.gained == ALWAYS, ALWAYS, read + np.sum(list(delays.values()), axis=0))
    return Starts(np.where(holds.gained == ALWAYS, ALWAYS, read), first, delays)


def _pull_delays(world: World, holds: Holds, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return how long the first pull of each hold takes: one delay a process, and a little more for each queue.

    A process's first pulls go out together, so what delays one of them, its machine mostly, delays them all.
    """
    trials = len(holds.life)
    waits = (world.traits.first_pull_s > 0)[:, None]
    low, high = np.where(waits, calibration.pull_s, calibration.immediate_pull_s).T
    of_life: Floats = low + (high - low) * tailed(random, (0.0, 1.0), (trials, len(world.lives)))
    common: Floats = of_life[np.arange(trials)[:, None, None], np.maximum(holds.life, 0)]
    return common + spread(random, calibration.pull_step_s, holds.life.shape)


def _resuming(
    world: World, holds: Holds, rates: Rates, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long after waking a process delivers again: at once, or when it repeats a pull that it gave up.

    One that was cut off had its pulls refused all along, and repeats them at any time within the wait after a refusal.

    What it had cached it works off without any pull.
    """
    shape, settings = holds.life.shape, world.request.settings
    life = np.maximum(holds.life, 0)
    slept = np.array([one.starts_s or 0.0 for one in world.lives])[life]
    lost = random.random((shape[0], len(world.lives))) < calibration.woken_pull_lost
    lost = lost[np.arange(shape[0])[:, None, None], life] & (slept >= PULL_TIMEOUT_S)
    lost &= ~has_backlog(world, rates.service_s)[holds.queues][None, :, None]
    awake = spread(random, calibration.woken_timer_s, shape)
    retry = settings.seconds("pullTimeDelayMillsWhenException")
    if isinstance(world.request.change, Partition):
        return awake + random.uniform(0, retry, shape)
    return awake + np.where(lost, retry, 0.0)


def _version_race(world: World, holds: Holds, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return the retry delay of first pulls that quote a version the broker does not know yet (4.9).

    A round's pulls to one broker meet the same heartbeat, so they win or lose together.
    """
    if not world.traits.races.any():
        return np.zeros(holds.life.shape)
    trials = holds.life.shape[0]
    loses = random.random((trials, len(world.lives), len(world.brokers))) < calibration.version_race_lost
    loses &= world.traits.races[:, None]
    brokers = np.array([world.brokers.index(world.queues[queue].broker) for queue in holds.queues], dtype=np.intp)
    lost = loses[np.arange(trials)[:, None, None], np.maximum(holds.life, 0), brokers[None, :, None]]
    return np.where(lost, world.request.settings.seconds("pullTimeDelayMillsWhenException"), 0.0)


def _head_of_line(world: World, holds: Holds, rates: Rates, until_pull: Floats, random: np.random.Generator) -> Floats:
    """Return how long the first message waits in the consume pool, one FIFO over all of a process's queues (3.11).

    Ahead are the messages that the process had cached, and the first batches of the queues it gains at the same time:
    what has come since nobody consumed them, ``until_pull`` seconds after gaining them included.
    """
    shape = holds.life.shape
    if world.request.orderly:
        return np.zeros(shape)
    holder = np.maximum(holds.life, 0)
    taken = holds.gained[np.isfinite(holds.gained)]
    queued = cached_messages(world, rates, float(np.median(taken)) if len(taken) else 0.0)
    last_batch = random.uniform(0, world.request.settings.value("pullBatchSize"), shape)
    cached = queued[holder] + np.where(queued[holder] > 0, last_batch, 0.0)
    gained = _gained_together(world, holds)
    come = world.rates[holds.queues][None, :, None] * (_unread_s(holds) + until_pull)
    size = np.minimum(world.lags[holds.queues][None, :, None] + come, world.request.settings.value("pullBatchSize"))
    threads = np.array([life.threads for life in world.lives])[holder]
    ahead = np.floor(random.random(shape) * np.maximum(gained - 1, 0) * size / threads) * rates.service_s
    waited: Floats = cached / rates.per_life[holder] + ahead
    return waited


def _unread_s(holds: Holds) -> Floats:
    """Return how long nobody held the queue before each hold; 0 where somebody did, or nobody ever had."""
    ends = np.maximum.accumulate(np.where(holds.life == NOBODY, -np.inf, holds.dropped), axis=2)
    before = np.concatenate([np.full_like(ends[:, :, :1], np.inf), ends[:, :, :-1]], axis=2)[:, :, : ends.shape[2]]
    known = np.isfinite(before) & np.isfinite(holds.gained)
    return np.where(known, np.maximum(np.where(known, holds.gained, 0.0) - np.where(known, before, 0.0), 0.0), 0.0)


def _gained_together(world: World, holds: Holds) -> Indexes:
    """Return how many queues the holder of each hold gains in the trial."""
    trials = holds.life.shape[0]
    is_new = np.isfinite(holds.gained) & (holds.life != NOBODY)
    key = np.arange(trials)[:, None, None] * len(world.lives) + np.maximum(holds.life, 0)
    return np.bincount(key[is_new], minlength=trials * len(world.lives))[key]
