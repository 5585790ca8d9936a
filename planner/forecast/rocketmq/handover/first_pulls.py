"""From gaining a queue to the first delivery: offset, first pull, version race, and the messages already waiting."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import spread, tailed
from planner.forecast.rocketmq.handover.tenures import NOBODY, Holds
from planner.forecast.rocketmq.membership.consume_rates import Rates, by_life, cached_messages, has_backlog
from planner.forecast.rocketmq.membership.process_times import ALWAYS
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, World
from planner.forecast.rocketmq.request.changes import Partition
from planner.forecast.rocketmq.timing import NETWORK_TIMEOUT_S, PULL_TIMEOUT_S, Calibration


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
    is_new &= ~holds.resumed
    if world.request.pops and world.resizes:
        is_new &= holds.gained > 0  # a pop of a whole broker that waits there is answered from its new queues, too
    delays = {cause: np.where(is_new, seconds, 0.0) for cause, seconds in delays.items()}
    if holds.resumed.any():
        delays["pull"] = np.where(holds.resumed, _resuming(world, holds, rates, calibration, random), delays["pull"])
        read = np.where(holds.resumed, holds.gained, read)
    delays["lost_heartbeat"] = _lost_heartbeat(world, holds, calibration, random)
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

    One that was cut off had its pulls refused all along: each tries for a connection as long as that may take, and
    pauses after a refusal. What it had cached it works off without any pull. Who polls has a thread for each queue that
    waits for its pull's answer (``PullTaskImpl#run``): it wakes as soon as the one that reads answers, and gives up.
    After a cut those of one broker wait for one connection, and fail and pause together.
    """
    shape, settings = holds.life.shape, world.request.settings
    life = np.maximum(holds.life, 0)
    slept = np.array([one.starts_s or 0.0 for one in world.lives])[life]
    often = calibration.woken_polled_pull_lost if world.request.polls else calibration.woken_pull_lost
    lost = random.random((shape[0], len(world.lives))) < often
    lost = lost[np.arange(shape[0])[:, None, None], life] & (slept >= PULL_TIMEOUT_S)
    lost &= ~has_backlog(world, rates.service_s)[holds.queues][None, :, None]
    each = tailed(random, calibration.woken_pull_s, (2, shape[0], len(world.lives)))
    awake: Floats = each[0, np.arange(shape[0])[:, None, None], life]
    again: Floats = each[1, np.arange(shape[0])[:, None, None], life]
    retry = settings.seconds("pullTimeDelayMillsWhenException")
    if isinstance(world.request.change, Partition):
        if world.request.polls:
            place, part = _by_broker(world, holds, random.random((2, shape[0], len(world.lives), len(world.brokers))))
        else:
            place, part = random.random((2, *shape))
        return awake + np.where(place * (retry + NETWORK_TIMEOUT_S) < retry, part * retry, 0.0)
    return awake + np.where(lost, retry + again, 0.0)


def _by_broker(world: World, holds: Holds, values: Floats) -> Floats:
    """Return for each hold what is known of its trial, holder and broker, the last axes of these values."""
    brokers = np.array([world.brokers.index(world.queues[queue].broker) for queue in holds.queues], dtype=np.intp)
    trials = np.arange(len(holds.life))[:, None, None]
    found: Floats = values[..., trials, np.maximum(holds.life, 0), brokers[None, :, None]]
    return found


def _version_race(world: World, holds: Holds, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return the retry delay of first pulls that quote a version the broker does not know yet (4.9).

    A round's pulls to one broker meet the same heartbeat, so they win or lose together.
    """
    if not world.traits.races.any():
        return np.zeros(holds.life.shape)
    drawn = random.random((holds.life.shape[0], len(world.lives), len(world.brokers)))
    loses = np.where(world.traits.races[:, None], drawn, np.inf)
    lost = _by_broker(world, holds, loses) < calibration.version_race_lost
    return np.where(lost, world.request.settings.seconds("pullTimeDelayMillsWhenException"), 0.0)


def _lost_heartbeat(world: World, holds: Holds, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return for how long pulls of what a process takes at its first look are refused, as brokers were not told of it.

    The heartbeat that tells them is dropped while another one is on its way, and the next one comes with the timer or
    the next look that changes anything (``MQClientInstance#sendHeartbeatToAllBrokerWithLock``, issue 3434). With 5.2+ a
    process's first look and its timer's first turn come in the same milliseconds.
    """
    starts = np.array([life.starts_s is not None and life.resumes is None for life in world.lives])
    starts &= world.traits.gap_s > 0
    if world.request.polls or not starts.any():
        return np.zeros(holds.life.shape)
    trials, settings = len(holds.life), world.request.settings
    # Spread over the trials: so few of them would be one in ten of one forecast, and none of the next one.
    places = random.permuted(np.tile(np.arange(trials), (len(starts), 1)), axis=1).T + random.random((1, len(starts)))
    lost = (places < calibration.heartbeat_lost * trials) & starts
    life = np.maximum(holds.life, 0)
    key = np.arange(trials)[:, None, None] * len(starts) + life
    gained = np.where(np.isfinite(holds.gained) & (holds.life != NOBODY), holds.gained, np.inf)
    first = _least(gained, key, lost.shape)
    is_first = gained == first.ravel()[key]
    changes = np.where(is_first, np.inf, gained), np.where(holds.dies, np.inf, holds.dropped)
    told = np.minimum(*(_least(later, key, lost.shape) for later in changes))
    told = np.minimum(told, first + settings.seconds("heartbeatBrokerInterval"))
    waits = np.where(lost & np.isfinite(first), told, 0.0).ravel()[key] - np.where(is_first, gained, 0.0)
    retried = random.random(holds.life.shape) * settings.seconds("pullTimeDelayMillsWhenException")
    return np.where(is_first & lost.ravel()[key], waits + retried, 0.0)


def _least(values: Floats, key: Indexes, shape: tuple[int, ...]) -> Floats:
    """Return the least value of each key, infinite where there is none."""
    found = np.full(shape, np.inf)
    np.minimum.at(found.reshape(-1), key.ravel(), values.ravel())
    return found


def _head_of_line(world: World, holds: Holds, rates: Rates, until_pull: Floats, random: np.random.Generator) -> Floats:
    """Return how long the first message waits in the consume pool, one FIFO over all of a process's queues (3.11).

    Ahead are the messages that the process has cached, and the first batches of the queues it gains at the same time:
    what has come since nobody consumed them, ``until_pull`` seconds after gaining them included.
    """
    shape = holds.life.shape
    if world.request.orderly:
        return np.zeros(shape)
    holder = np.maximum(holds.life, 0)
    queued = _queued(world, holds, rates)
    last_batch = random.uniform(0, world.request.settings.value("pullBatchSize"), shape)
    cached = queued + np.where(queued > 0, last_batch, 0.0)
    gained = _gained_together(world, holds)
    come = world.rates[holds.queues][None, :, None] * (_unread_s(holds) + until_pull + _repeated_s(world))
    size = np.minimum(world.lags[holds.queues][None, :, None] + come, world.request.settings.value("pullBatchSize"))
    threads = np.array([life.threads for life in world.lives])[holder]
    ahead = np.floor(random.random(shape) * np.maximum(gained - 1, 0) * size / threads) * rates.service_s
    waited: Floats = cached / rates.per_life[holder] + ahead
    return waited


def _repeated_s(world: World) -> float:
    """Return how much of its queue's time comes again, in the mean, where offsets are stored now and then only."""
    settings = world.request.settings
    commits = world.request.polls and settings.is_on("autoCommit")
    return settings.seconds("autoCommitIntervalMillis") / 2 if commits else 0.0


def _queued(world: World, holds: Holds, rates: Rates) -> Floats:
    """Return how many messages wait in the holder's pool as it gains a queue: those of queues that it still holds then.

    Those of a queue that it drops in the same look leave the pool at once (``ConsumeRequest#run``: ``isDropped``).
    """
    taken = holds.gained[np.isfinite(holds.gained)]
    cached = cached_messages(world, rates, float(np.median(taken)) if len(taken) else 0.0)
    stays = np.ones(len(cached), dtype=bool)
    stays[holds.queues] = False
    holder = np.maximum(holds.life, 0)
    queued = by_life(world, rates, np.where(stays, cached, 0.0))[holder]
    for column, queue in enumerate(holds.queues.tolist()):
        if cached[queue]:
            owner = rates.owners[queue]
            is_owners = (holds.life[:, column] == owner) & (holds.gained[:, column] == ALWAYS)
            until = np.where(is_owners, holds.dropped[:, column], -np.inf).max(axis=1)
            queued += cached[queue] * ((holder == owner) & (until[:, None, None] > holds.gained))
    most = world.request.settings.value("pullThresholdForAll")
    return np.minimum(queued, most) if world.request.polls else queued


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
