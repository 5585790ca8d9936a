"""From gaining a queue to the first delivery: offset, first pull, version race, and the messages already waiting."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import draw_evenly, draw_tailed
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, by_process, cached_messages, has_backlog
from planner.forecast.rocketmq.membership.process_times import ALWAYS
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.changes import Partition
from planner.forecast.rocketmq.timing import NETWORK_TIMEOUT_S, PULL_TIMEOUT_S, Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """By trial, queue and tenure: ``read`` is when the start offset is read, ``first`` when it delivers.

    ``delays`` are the parts of what lies between gaining and delivering, by cause.
    """

    read: Floats
    first: Floats
    delays: dict[str, Floats]


def first_deliveries(
    scenario: Scenario, tenures: Tenures, rates: Rates, calibration: Calibration, random: np.random.Generator
) -> Starts:
    """Return when every tenure begins to deliver; tenures from before the change deliver all along."""
    shape = tenures.process.shape
    is_new = np.isfinite(tenures.taken)
    read = tenures.taken + draw_evenly(random, calibration.query_s, shape)
    starts = np.array([process.starts_s is not None and process.resumes is None for process in scenario.processes])
    pull = _pull_delays(scenario, tenures, calibration, random)
    first_pull = scenario.behaviour.first_pull_s[np.maximum(tenures.process, 0)]
    race = _version_race(scenario, tenures, calibration, random)
    delays = {
        "first_pull": first_pull,
        "version_race": race,
        "pull": np.where(
            starts[np.maximum(tenures.process, 0)], pull + draw_tailed(random, calibration.cold_pull_s, shape), pull
        ),
        "head_of_line": _head_of_line(scenario, tenures, rates, race + first_pull, random),
    }
    if scenario.request.orderly and not scenario.behaviour.starts_locked.all():
        interval = scenario.request.settings.seconds("rocketmq.client.rebalance.lockInterval")
        waits = ~scenario.behaviour.starts_locked[np.maximum(tenures.process, 0)]
        delays["lock_renewal"] = np.where(waits, random.uniform(0, interval, shape), 0.0)
    is_new &= ~tenures.resumed
    if scenario.request.pops and scenario.resizes:
        is_new &= tenures.taken > 0  # a pop of a whole broker that waits there is answered from its new queues, too
    delays = {cause: np.where(is_new, seconds, 0.0) for cause, seconds in delays.items()}
    if tenures.resumed.any():
        delays["pull"] = np.where(
            tenures.resumed, _resuming(scenario, tenures, rates, calibration, random), delays["pull"]
        )
        read = np.where(tenures.resumed, tenures.taken, read)
    delays["lost_heartbeat"] = _lost_heartbeat(scenario, tenures, calibration, random)
    first = np.where(tenures.taken == ALWAYS, ALWAYS, read + np.sum(list(delays.values()), axis=0))
    return Starts(np.where(tenures.taken == ALWAYS, ALWAYS, read), first, delays)


def _pull_delays(scenario: Scenario, tenures: Tenures, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return how long the first pull of each tenure takes: one delay a process, and a little more for each queue.

    A process's first pulls go out together, so what delays one of them, its machine mostly, delays them all.
    """
    trials = len(tenures.process)
    waits = (scenario.behaviour.first_pull_s > 0)[:, None]
    low, high = np.where(waits, calibration.pull_s, calibration.immediate_pull_s).T
    of_process: Floats = low + (high - low) * draw_tailed(random, (0.0, 1.0), (trials, len(scenario.processes)))
    common: Floats = of_process[np.arange(trials)[:, None, None], np.maximum(tenures.process, 0)]
    return common + draw_evenly(random, calibration.pull_step_s, tenures.process.shape)


def _resuming(
    scenario: Scenario, tenures: Tenures, rates: Rates, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long after waking a process delivers again: at once, or when it repeats a pull that it gave up.

    One that was cut off had its pulls refused all along: each tries for a connection as long as that may take, and
    pauses after a refusal. What it had cached it works off without any pull. A client that polls has a thread for each
    queue that waits for its pull's answer (``PullTaskImpl#run``): it resumes as soon as the one that reads answers, and
    gives up. After a cut those of one broker wait for one connection, and fail and pause together.
    """
    shape, settings = tenures.process.shape, scenario.request.settings
    process = np.maximum(tenures.process, 0)
    suspended = np.array([each_process.starts_s or 0.0 for each_process in scenario.processes])[process]
    often = calibration.resumed_polled_pull_lost if scenario.request.polls else calibration.resumed_pull_lost
    lost = random.random((shape[0], len(scenario.processes))) < often
    lost = lost[np.arange(shape[0])[:, None, None], process] & (suspended >= PULL_TIMEOUT_S)
    lost &= ~has_backlog(scenario, rates.service_s)[tenures.queues][None, :, None]
    each = draw_tailed(random, calibration.resumed_pull_s, (2, shape[0], len(scenario.processes)))
    resumed: Floats = each[0, np.arange(shape[0])[:, None, None], process]
    retried_pull_s: Floats = each[1, np.arange(shape[0])[:, None, None], process]
    retry = settings.seconds("pullTimeDelayMillsWhenException")
    if isinstance(scenario.request.change, Partition):
        if scenario.request.polls:
            position, share = _by_broker(
                scenario, tenures, random.random((2, shape[0], len(scenario.processes), len(scenario.brokers)))
            )
        else:
            position, share = random.random((2, *shape))
        return resumed + np.where(position * (retry + NETWORK_TIMEOUT_S) < retry, share * retry, 0.0)
    return resumed + np.where(lost, retry + retried_pull_s, 0.0)


def _by_broker(scenario: Scenario, tenures: Tenures, values: Floats) -> Floats:
    """Return for each tenure what is known of its trial, holder and broker, the last axes of these values."""
    brokers = np.array(
        [scenario.brokers.index(scenario.queues[queue].broker) for queue in tenures.queues], dtype=np.intp
    )
    trials = np.arange(len(tenures.process))[:, None, None]
    result: Floats = values[..., trials, np.maximum(tenures.process, 0), brokers[None, :, None]]
    return result


def _version_race(
    scenario: Scenario, tenures: Tenures, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return the retry delay of first pulls that quote a version the broker does not know yet (4.9).

    A round's pulls to one broker meet the same heartbeat, so they win or lose together.
    """
    if not scenario.behaviour.races.any():
        return np.zeros(tenures.process.shape)
    drawn = random.random((tenures.process.shape[0], len(scenario.processes), len(scenario.brokers)))
    fails = np.where(scenario.behaviour.races[:, None], drawn, np.inf)
    lost = _by_broker(scenario, tenures, fails) < calibration.version_race_lost
    return np.where(lost, scenario.request.settings.seconds("pullTimeDelayMillsWhenException"), 0.0)


def _lost_heartbeat(
    scenario: Scenario, tenures: Tenures, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return for how long pulls of what a process takes at its first rebalance are refused, as brokers do not know of
    it.

    The heartbeat that reports it is dropped while another one is on its way, and the next one comes with the timer or
    the next rebalance that changes anything (``MQClientInstance#sendHeartbeatToAllBrokerWithLock``, issue 3434). With
    5.2+ a process's first rebalance and its timer's first turn come in the same milliseconds.
    """
    starts = np.array([process.starts_s is not None and process.resumes is None for process in scenario.processes])
    starts &= scenario.behaviour.gap_s > 0
    if scenario.request.polls or not starts.any():
        return np.zeros(tenures.process.shape)
    trials, settings = len(tenures.process), scenario.request.settings
    # Spread over the trials: so few of them would be one in ten of one forecast, and none of the next one.
    positions = random.permuted(np.tile(np.arange(trials), (len(starts), 1)), axis=1).T + random.random(
        (1, len(starts))
    )
    lost = (positions < calibration.heartbeat_lost * trials) & starts
    process = np.maximum(tenures.process, 0)
    key = np.arange(trials)[:, None, None] * len(starts) + process
    taken = np.where(np.isfinite(tenures.taken) & (tenures.process != NOBODY), tenures.taken, np.inf)
    first = _least(taken, key, lost.shape)
    is_first = np.isfinite(taken) & (taken == first.ravel()[key])
    changes = np.where(is_first, np.inf, taken), np.where(tenures.dies, np.inf, tenures.dropped)
    accepted_at = np.minimum(*(_least(later, key, lost.shape) for later in changes))
    accepted_at = np.minimum(accepted_at, first + settings.seconds("heartbeatBrokerInterval"))
    waits = np.where(lost & np.isfinite(first), accepted_at, 0.0).ravel()[key] - np.where(is_first, taken, 0.0)
    retried = random.random(tenures.process.shape) * settings.seconds("pullTimeDelayMillsWhenException")
    return np.where(is_first & lost.ravel()[key], waits + retried, 0.0)


def _least(values: Floats, key: Indexes, shape: tuple[int, ...]) -> Floats:
    """Return the least value of each key, infinite where there is none."""
    least = np.full(shape, np.inf)
    np.minimum.at(least.reshape(-1), key.ravel(), values.ravel())
    return least


def _head_of_line(
    scenario: Scenario, tenures: Tenures, rates: Rates, until_pull: Floats, random: np.random.Generator
) -> Floats:
    """Return how long the first message waits in the consume pool, one FIFO over all of a process's queues (3.11).

    Ahead are the messages that the process has cached, and the first batches of the queues it gains at the same time:
    what has come since nobody consumed them, ``until_pull`` seconds after gaining them included.
    """
    shape = tenures.process.shape
    if scenario.request.orderly:
        return np.zeros(shape)
    holder = np.maximum(tenures.process, 0)
    queued = _queued(scenario, tenures, rates)
    last_batch = random.uniform(0, scenario.request.settings.value("pullBatchSize"), shape)
    cached = queued + np.where(queued > 0, last_batch, 0.0)
    taken = _taken_together(scenario, tenures)
    come = scenario.rates[tenures.queues][None, :, None] * (_unread_s(tenures) + until_pull + _repeated_s(scenario))
    size = np.minimum(
        scenario.lags[tenures.queues][None, :, None] + come, scenario.request.settings.value("pullBatchSize")
    )
    threads = np.array([process.threads for process in scenario.processes])[holder]
    ahead = np.floor(random.random(shape) * np.maximum(taken - 1, 0) * size / threads) * rates.service_s
    waited: Floats = cached / rates.per_process[holder] + ahead
    return waited


def _repeated_s(scenario: Scenario) -> float:
    """Return how much of its queue's time comes again, in the mean, where offsets are stored now and then only."""
    settings = scenario.request.settings
    commits = scenario.request.polls and settings.is_on("autoCommit")
    return settings.seconds("autoCommitIntervalMillis") / 2 if commits else 0.0


def _queued(scenario: Scenario, tenures: Tenures, rates: Rates) -> Floats:
    """Return how many messages wait in the holder's pool as it gains a queue: those of queues that it still owns then.

    Those of a queue that it drops in the same rebalance leave the pool at once (``ConsumeRequest#run``: ``isDropped``).
    """
    taken = tenures.taken[np.isfinite(tenures.taken)]
    cached = cached_messages(scenario, rates, float(np.median(taken)) if len(taken) else 0.0)
    stays = np.ones(len(cached), dtype=bool)
    stays[tenures.queues] = False
    holder = np.maximum(tenures.process, 0)
    queued = by_process(scenario, rates, np.where(stays, cached, 0.0))[holder]
    for column, queue in enumerate(tenures.queues.tolist()):
        if cached[queue]:
            owner = rates.owners[queue]
            is_owners = (tenures.process[:, column] == owner) & (tenures.taken[:, column] == ALWAYS)
            until = np.where(is_owners, tenures.dropped[:, column], -np.inf).max(axis=1)
            queued += cached[queue] * ((holder == owner) & (until[:, None, None] > tenures.taken))
    most = scenario.request.settings.value("pullThresholdForAll")
    return np.minimum(queued, most) if scenario.request.polls else queued


def _unread_s(tenures: Tenures) -> Floats:
    """Return how long nobody owned the queue before each tenure; 0 where somebody did, or nobody ever had."""
    ends = np.maximum.accumulate(np.where(tenures.process == NOBODY, -np.inf, tenures.dropped), axis=2)
    before = np.concatenate([np.full_like(ends[:, :, :1], np.inf), ends[:, :, :-1]], axis=2)[:, :, : ends.shape[2]]
    known = np.isfinite(before) & np.isfinite(tenures.taken)
    return np.where(known, np.maximum(np.where(known, tenures.taken, 0.0) - np.where(known, before, 0.0), 0.0), 0.0)


def _taken_together(scenario: Scenario, tenures: Tenures) -> Indexes:
    """Return how many queues the holder of each tenure gains in the trial."""
    trials = tenures.process.shape[0]
    is_new = np.isfinite(tenures.taken) & (tenures.process != NOBODY)
    key = np.arange(trials)[:, None, None] * len(scenario.processes) + np.maximum(tenures.process, 0)
    return np.bincount(key[is_new], minlength=trials * len(scenario.processes))[key]
