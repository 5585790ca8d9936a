"""Offsets: from which record each tenure starts, when it delivers first, and which records are delivered twice.

A partition's records are counted from the moment of the change: record 0 arrives then, ``lag`` records lie before it. A
tenure starts at the committed offset and delivers as fast as records come, or as its process can.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import draw_evenly, draw_tailed
from planner.forecast.kafka.handover.tenures import Tenures
from planner.forecast.kafka.membership.poll_loops import PollLoops
from planner.forecast.kafka.membership.process_times import ProcessTimes
from planner.forecast.kafka.membership.scenario import BEFORE, NOBODY, Booleans, Floats, Indexes, Scenario
from planner.forecast.kafka.random_streams import RandomStreams, Stage
from planner.forecast.kafka.request.settings import CLASSIC, RESET
from planner.forecast.kafka.timing import Calibration

_LONG_BEFORE = 1e18
_OBSERVED_RECORDS = 2.0
COLD_FOR_S = 1.0
"""So long after its first request a process still loads classes and opens connections as it fetches."""


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """By tenure, trial and partition: ``first`` delivery, ``start`` offset, whether it ``delivers`` anything.

    ``limit``: records a second that it can deliver. ``fetching`` and ``queueing``: the parts of ``first`` that went
    into the first fetch, and into other partitions' records before it. By trial and partition: ``duplicates``, whole
    records; ``delayed``, how long one that stays waits while its process works off what others left.
    """

    first: Floats
    start: Floats
    limit: Floats
    delivers: Booleans
    duplicates: Floats
    fetching: Floats
    queueing: Floats
    delayed: Floats


def find_deliveries(
    scenario: Scenario,
    times: ProcessTimes,
    tenures: Tenures,
    poll_loops: PollLoops,
    calibration: Calibration,
    streams: RandomStreams,
) -> Deliveries:
    """Return what every tenure delivers, and how much of it twice."""
    shape = tenures.process.shape
    starts, random = streams.of(Stage.STARTS), streams.of(Stage.OFFSETS)
    first, start = np.full(shape, -np.inf), np.full(shape, -_LONG_BEFORE)
    fetching, queueing = np.zeros(shape), np.zeros(shape)
    delivers = np.zeros(shape, dtype=bool)
    committed, furthest = np.broadcast_to(-scenario.lags, shape[1:]).copy(), np.full(shape[1:], -np.inf)
    repeated = np.zeros(shape[1:])
    keepers = np.where(
        np.isneginf(tenures.assigned_at[-1]) & np.isposinf(tenures.revoked_at[-1]), tenures.process[-1], NOBODY
    )
    delayed, overhead = np.zeros(shape[1:]), draw_evenly(starts, calibration.overhead, (shape[1], 1))
    limit, skips = _limits(scenario, tenures, poll_loops), skips_new(scenario)
    order, fetched = starts.random(shape[1:]), draw_evenly(starts, calibration.fetched_records, shape[1:])
    for number in range(shape[0]):
        process, assigned_at, revoked_at = (
            tenures.process[number],
            tenures.assigned_at[number],
            tenures.revoked_at[number],
        )
        is_owned = (process != NOBODY) & (assigned_at < np.inf)  # a member may die before it hears what it was to take
        is_new = is_owned & np.isfinite(assigned_at)
        fetching[number] = np.where(is_new, _fetch_s(scenario, times, process, assigned_at, calibration, starts), 0.0)
        ready = np.where(is_new & np.isfinite(assigned_at), assigned_at, 0.0) + fetching[number]
        untouched = is_new & skips & (start.max(axis=0) < -_LONG_BEFORE / 2)
        committed = np.where(untouched, scenario.rates * ready, committed)
        due = np.clip(scenario.rates * ready - committed, 0.0, fetched)
        work = np.where(is_new & (process != NOBODY), due, 0.0) * overhead / poll_loops.capacity
        queueing[number] = np.where(is_new, _queue_s(process, work, order, assigned_at), 0.0)
        delayed = np.maximum(delayed, _delays(scenario, work, process, keepers))
        first[number] = np.where(is_new, ready + queueing[number], -np.inf)
        start[number] = np.where(is_new, committed, -_LONG_BEFORE)
        delivers[number] = is_owned & (first[number] < revoked_at)
        reach = _Reach(scenario, poll_loops, is_new, first[number], committed, limit[number])
        end = np.where(np.isfinite(revoked_at), reach.at(np.where(np.isfinite(revoked_at), revoked_at, 0.0)), np.inf)
        is_repeated = delivers[number] & np.isfinite(furthest)
        repeated += np.where(
            is_repeated, np.maximum(np.minimum(end, np.where(is_repeated, furthest, 0.0)) - start[number], 0.0), 0.0
        )
        kept = np.minimum(reach.at(np.where(np.isfinite(tenures.saved[number]), tenures.saved[number], 0.0)), end)
        known = delivers[number] & np.isfinite(revoked_at)
        committed = np.where(known, np.where(is_new, np.maximum(kept, committed), kept), committed)
        furthest = np.where(known, np.maximum(furthest, end), furthest)
    whole = np.floor(repeated + random.random(repeated.shape))
    return Deliveries(first, start, limit, delivers, whole, fetching, queueing, delayed)


def skips_new(scenario: Scenario) -> Booleans:
    """Return which partitions are read from their end, as nobody committed there: new ones, by default.

    Of a topic that nobody in the group has subscribed to, offsets are taken to be missing, too.
    """
    before, added = scenario.counts[BEFORE], scenario.added
    is_new = np.array([number >= before[topic] or topic in added for topic, number in scenario.partitions])
    return is_new & (scenario.request.settings.text(RESET) != "earliest")


class _Reach:
    """Up to which record one tenure of each partition has delivered."""

    def __init__(
        self, scenario: Scenario, poll_loops: PollLoops, is_new: Booleans, first: Floats, start: Floats, limit: Floats
    ) -> None:
        self._scenario, self._poll_loops, self._is_new = scenario, poll_loops, is_new
        self._first, self._start, self._limit = np.where(is_new, first, 0.0), start, limit

    def at(self, when: Floats) -> Floats:
        """Return the offset at a moment of the tenure."""
        arrived = self._scenario.rates * when
        old = -self._scenario.lags + self._poll_loops.consumed * when
        new = np.maximum(np.minimum(arrived, self._start + self._limit * (when - self._first)), self._start)
        old = np.where(when > 0, np.minimum(old, arrived), old)
        return np.where(self._is_new, new, old)


def _limits(scenario: Scenario, tenures: Tenures, poll_loops: PollLoops) -> Floats:
    """Return how many records a second each tenure can deliver: an even part of its process's loop."""
    limits = np.empty(tenures.process.shape)
    processes = len(scenario.processes)
    for number, process in enumerate(tenures.process):
        trials = np.arange(len(process))[:, None]
        cells = np.where(process == NOBODY, processes, process) + trials * (processes + 1)
        counts = np.bincount(cells.ravel(), minlength=len(process) * (processes + 1))
        limits[number] = poll_loops.capacity / np.maximum(counts[cells], 1)
    return np.maximum(limits, scenario.rates * 1.0)


def first_fetch(
    scenario: Scenario, times: ProcessTimes, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return by trial and process how long it takes from an assignment to the first record of a warm process.

    librdkafka serves both protocols in one thread (``rdkafka_cgrp.c``): in rolls it was as quick by either.
    """
    if scenario.request.mixes:
        classic = times.delay(random, calibration.fetch_s)
        if not scenario.request.is_java:
            return classic
        return np.where(
            scenario.resumes_by_server, draw_evenly(random, calibration.consumer_fetch_s, classic.shape), classic
        )
    if scenario.request.protocol == CLASSIC:
        return times.delay(random, calibration.fetch_s)
    return draw_evenly(random, calibration.consumer_fetch_s, times.arrives.shape)


def _fetch_s(
    scenario: Scenario,
    times: ProcessTimes,
    process: Indexes,
    assigned_at: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how long each process takes from its assignment to its first records: the same for all of them."""
    shape = (len(process), len(scenario.processes))
    owner = np.maximum(process, 0)
    usual = np.take_along_axis(first_fetch(scenario, times, calibration, random), owner, axis=1)
    more = np.take_along_axis(draw_tailed(random, calibration.cold_fetch_s, shape), owner, axis=1)
    is_cold = assigned_at < np.take_along_axis(times.arrives, owner, axis=1) + COLD_FOR_S
    return np.where(is_cold, usual + more, usual)


def _delays(scenario: Scenario, work: Floats, process: Indexes, keepers: Indexes) -> Floats:
    """Return how long partitions that stay wait while their process works off what it has just been given."""
    trials, processes = len(process), len(scenario.processes)
    cells = np.where(process == NOBODY, processes, process) + np.arange(trials)[:, None] * (processes + 1)
    given = np.bincount(cells.ravel(), weights=work.ravel(), minlength=trials * (processes + 1)).reshape(trials, -1)
    kept = np.take_along_axis(given, np.where(keepers == NOBODY, processes, keepers), axis=1)
    # No log distinguishes a wait from the time between two records.
    is_observed = (keepers != NOBODY) & (kept * scenario.rates > _OBSERVED_RECORDS)
    return np.where(is_observed, kept, 0.0)


def _queue_s(process: Indexes, work: Floats, order: Floats, assigned_at: Floats) -> Floats:
    """Return how long each partition waits for the records of those that its process takes up before it.

    One answer brings what is due of all partitions, and one loop works it off partition by partition.
    """
    keys = np.lexsort((order, assigned_at, process), axis=1)
    sorted_process = np.take_along_axis(process, keys, axis=1)
    sorted_work = np.take_along_axis(work, keys, axis=1)
    before = np.cumsum(sorted_work, axis=1) - sorted_work
    same = np.zeros(process.shape, dtype=bool)
    sorted_assigned_at = np.take_along_axis(assigned_at, keys, axis=1)
    same[:, 1:] = (sorted_process[:, 1:] == sorted_process[:, :-1]) & (
        sorted_assigned_at[:, 1:] == sorted_assigned_at[:, :-1]
    )
    base = np.maximum.accumulate(np.where(same, -np.inf, before), axis=1)
    queueing_s = np.empty_like(work)
    np.put_along_axis(queueing_s, keys, before - base, axis=1)
    return queueing_s
