"""When each process of each trial says hello and goodbye: start, first heartbeat, last delivery, unregistration."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.forecast.common.changes import GRACEFUL
from planner.forecast.common.delay_ranges import DelayRange, draw_evenly, draw_tailed
from planner.forecast.rocketmq.membership.consume_rates import Rates, by_process, cached_messages
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.changes import CUT, RollingUpdate
from planner.forecast.rocketmq.timing import (
    CLOSING_WAIT_S,
    FIRST_HEARTBEAT_S,
    NETWORK_TIMEOUT_S,
    SYN_RETRY_S,
    Calibration,
)

NEVER, ALWAYS = np.inf, -np.inf

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class ProcessTimes:
    """Seconds since the change, one row a trial, one column a process.

    ``constructed``: from here the gap of 5.2+ counts; ``heartbeat``: the first one goes out (ALWAYS for those that run
    before); ``stopped``: nothing is delivered any more; ``graceful``: it says goodbye, and at ``saved`` its offsets are
    stored and its locks released; ``ended``: the signal or the death (NEVER for those that stay); ``finishes_calls``:
    running calls count before the end. A process that resumes another one counts from where that one stood still.
    ``closed``: a client that is cut off gives its connections up (NEVER for the others, and where the cut is over);
    ``reached``: one that is cut off from some brokers only reaches them again (ALWAYS for the others).
    """

    constructed: Floats
    heartbeat: Floats
    ended: Floats
    stopped: Floats
    saved: Floats
    graceful: Booleans
    finishes_calls: Booleans
    closed: Floats
    reached: Floats

    @staticmethod
    def of_holders(values: NDArray[T], holders: Indexes) -> NDArray[T]:
        """Return what is known by trial and process for each holder, an array whose first axis is the trials."""
        flat = np.maximum(holders, 0).reshape(len(holders), -1)
        return np.take_along_axis(values, flat, axis=1).reshape(holders.shape)


def process_times(
    scenario: Scenario, rates: Rates, calibration: Calibration, random: np.random.Generator
) -> ProcessTimes:
    """Return the times of every process in every trial."""
    shape = (scenario.request.trials, len(scenario.processes))
    constructed, heartbeat = np.full(shape, ALWAYS), np.full(shape, ALWAYS)
    ended = _ends(scenario, random)
    stopped, saved = ended.copy(), np.full(shape, NEVER)
    graceful, finishes = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    closed = np.full(shape, NEVER)
    for index, process in enumerate(scenario.processes):
        if process.how == GRACEFUL:
            waited, finishes[:, index] = _shutdown(scenario, rates, index, random)
            graceful[:, index] = waited <= process.grace_s
            finishes[:, index] &= graceful[:, index]
            stopped[:, index] += np.minimum(waited, process.grace_s)
            goodbye = stopped[:, index] + draw_evenly(random, calibration.shutdown_s, shape[0])
            saved[:, index] = np.where(graceful[:, index], goodbye, NEVER)
    for index, process in enumerate(scenario.processes):
        if process.starts_s is not None:
            at = np.full(shape[0], process.starts_s)
            if process.resumes is not None:
                if scenario.processes[process.resumes].how == CUT:
                    closed[:, process.resumes] = _gives_up(scenario, process.starts_s, random)
                    at = at + _reconnecting(process.starts_s, closed[:, process.resumes], random)
                heartbeat[:, index] = at
                continue
            if process.follows is not None:
                waits = random.random(shape[0]) < (0.0 if scenario.request.polls else calibration.closing_waits)
                at = np.maximum(at, saved[:, process.follows] + np.where(waits, CLOSING_WAIT_S, 0.0))
            constructed[:, index] = at + draw_tailed(random, calibration.start_to_construction_s, shape[0])
            takes_s = draw_tailed(random, _until_heartbeat_s(scenario, calibration), shape[0])
            heartbeat[:, index] = constructed[:, index] + takes_s
    reached = _reconnected(scenario, closed, random)
    return ProcessTimes(constructed, heartbeat, ended, stopped, saved, graceful, finishes, closed, reached)


def _reconnected(scenario: Scenario, closed: Floats, random: np.random.Generator) -> Floats:
    """Return when who is cut off from some brokers reaches them again; write into ``closed`` when it gave them up."""
    reached = np.full(closed.shape, ALWAYS)
    for index in np.flatnonzero(scenario.partitioned.any(axis=1)).tolist():
        closed[:, index] = _gives_up(scenario, scenario.partitioned_s, random)
        reached[:, index] = scenario.partitioned_s + _reconnecting(scenario.partitioned_s, closed[:, index], random)
    return reached


def _until_heartbeat_s(scenario: Scenario, calibration: Calibration) -> DelayRange:
    """Return the ends of what lies between the construction of a client and its first heartbeat.

    ``start()`` of a push consumer sends one; the others leave it to a timer, whose first turn comes after a second
    (``MQClientInstance#startScheduledTask``).
    """
    low, high = calibration.polling_heartbeat_s if scenario.request.polls else calibration.construction_to_heartbeat_s
    return (low + FIRST_HEARTBEAT_S, high + FIRST_HEARTBEAT_S) if scenario.request.polls else (low, high)


def _ends(scenario: Scenario, random: np.random.Generator) -> Floats:
    """Return when each process ends; whose turn it is in a rolling update is any order (``ActivePodsWithRanks``)."""
    shape = (scenario.request.trials, len(scenario.processes))
    ends = np.tile(
        [NEVER if process.ends_s is None else process.ends_s for process in scenario.processes], (shape[0], 1)
    )
    if isinstance(scenario.request.change, RollingUpdate):
        old = list(scenario.initial)
        ends[:, old] = random.permuted(ends[:, old], axis=1)
    return ends


def _gives_up(scenario: Scenario, cut_s: float, random: np.random.Generator) -> Floats:
    """Return for each trial when a client that is cut off closes its connections: once a heartbeat has timed out."""
    interval = scenario.request.settings.seconds("heartbeatBrokerInterval")
    closed = random.uniform(0, interval, scenario.request.trials) + NETWORK_TIMEOUT_S
    return np.where(closed < cut_s, closed, NEVER)


def _reconnecting(cut_s: float, closed: Floats, random: np.random.Generator) -> Floats:
    """Return for each trial how long after the network is back a client that was cut off is connected again.

    Once it has closed its connections, it tries for new ones, each for ``NETWORK_TIMEOUT_S``, and the kernel asks again
    a second after it has asked first. Until then TCP sends again what was lost, after waits that are about as long as
    it was lost already.
    """
    tried = random.uniform(0, NETWORK_TIMEOUT_S, len(closed))
    asks = np.where(tried < SYN_RETRY_S, SYN_RETRY_S, NETWORK_TIMEOUT_S) - tried
    return np.where(np.isfinite(closed), asks, random.random(len(closed)) * cut_s)


def _shutdown(scenario: Scenario, rates: Rates, process: int, random: np.random.Generator) -> tuple[Floats, Booleans]:
    """Return for each trial how long calls go on after the signal, and whether the running ones are counted.

    ``DefaultMQPushConsumerImpl#shutdown``: it waits for queued tasks, interrupts, and waits the same time once more, in
    which interrupted calls may finish. With 0 ms, the default, it interrupts at once.
    """
    trials = scenario.request.trials
    if scenario.request.polls:
        return _poll_ends_s(scenario, rates, process, random), np.zeros(trials, dtype=bool)
    if scenario.request.pops:  # only the service of those that pull is waited for, and it has nothing to do
        return np.zeros(trials), np.zeros(trials, dtype=bool)
    patience = scenario.request.settings.seconds("awaitTerminationMillisWhenShutdown")
    running = random.uniform(0, rates.service_s, trials)
    queued = by_process(scenario, rates, cached_messages(scenario, rates, scenario.processes[process].ends_s or 0.0))[
        process
    ]
    needed = queued / rates.per_process[process] + running
    first = np.minimum(needed, patience)
    second = np.where(needed > patience, np.minimum(running, patience), 0.0)
    return first + second, (needed <= patience) | (running <= patience) & (patience > 0)


def _poll_ends_s(scenario: Scenario, rates: Rates, process: int, random: np.random.Generator) -> Floats:
    """Return by trial how long ``shutdown`` waits for the poll that runs: both take the consumer's one lock.

    A poll ends with the next message, at the latest after its time limit; a client that works on a message polls
    nothing.
    """
    trials, longest = scenario.request.trials, scenario.request.settings.seconds("pollTimeoutMillis")
    arriving = by_process(scenario, rates, rates.consumed)[process]
    waits = np.full(trials, longest) * random.random(trials)
    if arriving > 0:
        waits = np.minimum(random.exponential(1 / arriving, trials), longest)
    is_polling = random.random(trials) >= min(arriving / rates.per_process[process], 1.0)
    return np.where(is_polling, waits, 0.0)
