"""From tenures and deliveries to what anybody can observe: pause, stall, burst, settle."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.backlog_drain import find_drain_times
from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.offsets import Deliveries
from planner.forecast.rocketmq.handover.shifted_drain import find_shifted_drain
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog
from planner.forecast.rocketmq.membership.inflow import Inflow
from planner.forecast.rocketmq.membership.ownership import Owners
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """By trial and queue, seconds and messages as the contract defines them.

    By trial: ``settle_s``; ``drained_s``, when no backlog is left (NaN: never); ``unread_s``, the longest time in which
    nobody delivers some queue, whichever member did before and does after.
    """

    pause_s: Floats
    duplicates: Floats
    burst: Floats
    settle_s: Floats
    drained_s: Floats
    unread_s: Floats


def observe(
    scenario: Scenario,
    owners: Owners,
    tenures: Tenures,
    starts: Starts,
    deliveries: Deliveries,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
    inflow: Inflow | None = None,
) -> Observed:
    """Return what an observer of all deliveries would see in each trial; ``inflow`` where it changes."""
    trials = scenario.request.trials
    shape = (trials, len(scenario.queues))
    client = np.array([*(process.client for process in scenario.processes), NOBODY])[tenures.process]
    after = owners.after[:, tenures.queues]
    before = np.broadcast_to(owners.before[tenures.queues], after.shape)
    moves = owners.moves[:, tenures.queues]
    is_old, is_new = client == before[:, :, None], client == after[:, :, None]
    if scenario.goes_back_and_forth:
        is_old &= starts.first < _first_by(is_new, starts, deliveries)[:, :, None]
    between = find_pauses(is_old, is_new, tenures, starts, deliveries)
    gaps = find_longest_gaps(tenures, starts, deliveries)
    pause = np.where(moves, between, np.where(before == after, gaps, np.nan))
    pauses = np.where(owners.before == owners.after, 0.0, np.full(shape, np.nan))
    pauses[:, tenures.queues] = pause
    if scenario.request.polls:
        stalls = _waits_in_line(scenario, owners, tenures, starts, deliveries, rates)
    else:
        stalls = _stalls(scenario, owners, tenures, calibration, random)
    pauses = np.where(owners.before == owners.after, np.maximum(pauses, stalls), pauses)
    pauses[:, owners.before == NOBODY] = np.nan
    duplicates, burst = np.zeros(shape), np.zeros(shape)
    duplicates[:, tenures.queues] = deliveries.duplicates
    final_first, final_start = _final_tenure(client, after, tenures, starts, deliveries)
    waits = np.isfinite(final_first)
    settled = np.where(waits, np.maximum(final_first, 0.0), 0.0)
    came = scenario.rates[tenures.queues] * settled
    if inflow is not None:
        came = inflow.arrived(_of_all(settled, tenures, shape))[:, tenures.queues]
    due = np.maximum(came - np.where(waits, final_start, 0.0), 0.0)
    burst[:, tenures.queues] = np.where(moves & waits, np.round(due), 0.0)
    begins, waiting = np.zeros(shape), np.broadcast_to(scenario.lags, shape).copy()
    begins[:, tenures.queues] = settled
    waiting[:, tenures.queues] = np.where(waits, due, waiting[:, tenures.queues])
    if inflow is None:
        gone = find_drain_times(scenario, owners.after, begins, waiting, rates)
    else:
        gone = find_shifted_drain(scenario, inflow, tenures, starts, deliveries, rates)
    return Observed(pauses, duplicates, burst, settled.max(axis=1, initial=0.0), gone, gaps.max(axis=1, initial=0.0))


def _of_all(values: Floats, tenures: Tenures, shape: tuple[int, int]) -> Floats:
    """Return figures of the touched queues among zeros for all others."""
    of_all = np.zeros(shape)
    of_all[:, tenures.queues] = values
    return of_all


def find_pauses(is_old: Booleans, is_new: Booleans, tenures: Tenures, starts: Starts, deliveries: Deliveries) -> Floats:
    """Return first delivery of the new owners less last one of the old ones, 0 where they overlap.

    ``is_old`` and ``is_new`` say by trial, queue and tenure whose it is.
    """
    first = _first_by(is_new, starts, deliveries)
    last = np.where(deliveries.delivers & is_old, tenures.dropped, -np.inf).max(axis=2, initial=-np.inf)
    known = np.isfinite(first) & ~np.isneginf(last)
    return np.where(known, np.maximum(np.where(known, first, 0.0) - np.where(known, last, 0.0), 0.0), np.nan)


def _first_by(of_owner: Booleans, starts: Starts, deliveries: Deliveries) -> Floats:
    """Return by trial and queue when these tenures deliver first, infinite where they never do."""
    first: Floats = np.where(deliveries.delivers & of_owner, starts.first, np.inf).min(axis=2, initial=np.inf)
    return first


def find_longest_gaps(tenures: Tenures, starts: Starts, deliveries: Deliveries) -> Floats:
    """Return the longest time in which nobody delivers, between the first tenure and the last one."""
    trials, queues, count = tenures.process.shape
    reached = (
        np.where(deliveries.delivers[:, :, 0], tenures.dropped[:, :, 0], np.inf)
        if count
        else np.zeros((trials, queues))
    )
    longest = np.zeros((trials, queues))
    for number in range(1, count):
        delivers = deliveries.delivers[:, :, number]
        waited = delivers & np.isfinite(reached)
        gap = np.where(waited, starts.first[:, :, number], 0.0) - np.where(waited, reached, 0.0)
        longest = np.maximum(longest, gap)
        reached = np.where(delivers, np.maximum(reached, tenures.dropped[:, :, number]), reached)
    return longest


def _final_tenure(
    client: Indexes, after: Indexes, tenures: Tenures, starts: Starts, deliveries: Deliveries
) -> tuple[Floats, Floats]:
    """Return when the final owner delivers for good, and from which offset; -inf where it did all along."""
    is_final = deliveries.delivers & np.isposinf(tenures.dropped) & (client == after[:, :, None])
    first = np.where(is_final, starts.first, -np.inf).max(axis=2, initial=-np.inf)
    start = np.where(is_final, deliveries.start, -np.inf).max(axis=2, initial=-np.inf)
    return first, start


def _stalls(
    scenario: Scenario, owners: Owners, tenures: Tenures, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long queues that stay stall: a pull that meets a version the broker does not know waits its retry.

    SUBSCRIPTION_NOT_LATEST hits any pull of the topic between a change of the member's queues and its heartbeat.
    """
    changes = np.zeros((scenario.request.trials, len(scenario.queues)))
    first_process = {process.client: index for index, process in reversed(list(enumerate(scenario.processes)))}
    for number, topic in enumerate(scenario.topics):
        picks = np.union1d(*topic.queues)
        processes = np.array([first_process.get(client, 0) for client in owners.before[picks].tolist()], dtype=np.intp)
        changes[:, picks] = tenures.changes[:, processes, number]
    window = random.uniform(*calibration.stale_version_window_s, (scenario.request.trials, 1))
    odds = 1 - np.exp(-window * changes * scenario.rates)
    retry = scenario.request.settings.seconds("pullTimeDelayMillsWhenException")
    return np.where(random.random(changes.shape) < odds, retry, 0.0)


def _waits_in_line(
    scenario: Scenario, owners: Owners, tenures: Tenures, starts: Starts, deliveries: Deliveries, rates: Rates
) -> Floats:
    """Return how long queues that stay wait behind what their owner gains: all that it pulls stands in one line.

    ``consumeRequestCache`` of ``DefaultLitePullConsumerImpl``. A queue with a backlog has its own batches in that line.
    Less than two messages' distance is not observable.
    """
    most = scenario.request.settings.value("pullThresholdForQueue")
    delivers = deliveries.delivers & np.isfinite(starts.first)
    due = scenario.rates[tenures.queues][None, :, None] * np.where(delivers, starts.first, 0.0) - deliveries.start
    line = np.zeros((scenario.request.trials, len(scenario.processes)))
    trial = np.broadcast_to(np.arange(len(line))[:, None, None], delivers.shape)
    np.add.at(line, (trial[delivers], tenures.process[delivers]), np.clip(due[delivers], 0.0, most))
    first_process = {process.client: index for index, process in reversed(list(enumerate(scenario.processes)))}
    owner = np.array([first_process.get(client, NOBODY) for client in owners.before.tolist()], dtype=np.intp)
    waits = np.where(owner == NOBODY, 0.0, (line / rates.per_process)[:, np.maximum(owner, 0)])
    return np.where((waits * scenario.rates < 2) | has_backlog(scenario, rates.service_s), 0.0, waits)
