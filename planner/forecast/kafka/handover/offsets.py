"""Offsets: from which record each hold starts, when it delivers first, and what comes twice.

A partition's records are counted from the moment of the change: record 0 arrives then, ``lag`` records lie before it. A
hold starts at the committed offset and delivers as fast as records come, or as its process can.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import spread, tailed
from planner.forecast.kafka.handover.tenures import Holds
from planner.forecast.kafka.membership.poll_loops import Loops
from planner.forecast.kafka.membership.process_times import LifeTimes
from planner.forecast.kafka.membership.scenario import BEFORE, NOBODY, Booleans, Floats, Indexes, World
from planner.forecast.kafka.random_streams import Draws, Stage
from planner.forecast.kafka.request.settings import CLASSIC, RESET
from planner.forecast.kafka.timing import Calibration

_LONG_BEFORE = 1e18
_SEEN_RECORDS = 2.0
COLD_FOR_S = 1.0
"""So long after its first request a process still loads classes and opens connections as it fetches."""


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """By hold, trial and partition: ``first`` delivery, ``start`` offset, whether it ``delivers`` anything.

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


def deliveries(
    world: World, times: LifeTimes, holds: Holds, loops: Loops, calibration: Calibration, draws: Draws
) -> Deliveries:
    """Return what every hold delivers, and how much of it twice."""
    shape = holds.life.shape
    starts, random = draws.of(Stage.STARTS), draws.of(Stage.OFFSETS)
    first, start = np.full(shape, -np.inf), np.full(shape, -_LONG_BEFORE)
    fetching, queueing = np.zeros(shape), np.zeros(shape)
    delivers = np.zeros(shape, dtype=bool)
    committed, furthest = np.broadcast_to(-world.lags, shape[1:]).copy(), np.full(shape[1:], -np.inf)
    twice = np.zeros(shape[1:])
    keepers = np.where(np.isneginf(holds.gained[-1]) & np.isposinf(holds.dropped[-1]), holds.life[-1], NOBODY)
    delayed, overhead = np.zeros(shape[1:]), spread(starts, calibration.overhead, (shape[1], 1))
    limit, skips = _limits(world, holds, loops), skips_new(world)
    order, fetched = starts.random(shape[1:]), spread(starts, calibration.fetched_records, shape[1:])
    for number in range(shape[0]):
        life, gained, dropped = holds.life[number], holds.gained[number], holds.dropped[number]
        held = (life != NOBODY) & (gained < np.inf)  # a member may die before it hears what it was to take
        is_new = held & np.isfinite(gained)
        fetching[number] = np.where(is_new, _fetch_s(world, times, life, gained, calibration, starts), 0.0)
        ready = np.where(is_new & np.isfinite(gained), gained, 0.0) + fetching[number]
        untouched = is_new & skips & (start.max(axis=0) < -_LONG_BEFORE / 2)
        committed = np.where(untouched, world.rates * ready, committed)
        due = np.clip(world.rates * ready - committed, 0.0, fetched)
        work = np.where(is_new & (life != NOBODY), due, 0.0) * overhead / loops.capacity
        queueing[number] = np.where(is_new, _queue_s(life, work, order, gained), 0.0)
        delayed = np.maximum(delayed, _delays(world, work, life, keepers))
        first[number] = np.where(is_new, ready + queueing[number], -np.inf)
        start[number] = np.where(is_new, committed, -_LONG_BEFORE)
        delivers[number] = held & (first[number] < dropped)
        reach = _Reach(world, loops, is_new, first[number], committed, limit[number])
        end = np.where(np.isfinite(dropped), reach.at(np.where(np.isfinite(dropped), dropped, 0.0)), np.inf)
        again = delivers[number] & np.isfinite(furthest)
        twice += np.where(again, np.maximum(np.minimum(end, np.where(again, furthest, 0.0)) - start[number], 0.0), 0.0)
        kept = np.minimum(reach.at(np.where(np.isfinite(holds.saved[number]), holds.saved[number], 0.0)), end)
        known = delivers[number] & np.isfinite(dropped)
        committed = np.where(known, np.where(is_new, np.maximum(kept, committed), kept), committed)
        furthest = np.where(known, np.maximum(furthest, end), furthest)
    whole = np.floor(twice + random.random(twice.shape))
    return Deliveries(first, start, limit, delivers, whole, fetching, queueing, delayed)


def skips_new(world: World) -> Booleans:
    """Return which partitions are read from their end, as nobody committed there: new ones, unless told otherwise."""
    before = world.counts[BEFORE]
    is_new = np.array([number >= before[topic] for topic, number in world.partitions])
    return is_new & (world.request.settings.text(RESET) != "earliest")


class _Reach:
    """Up to which record one hold of each partition has delivered."""

    def __init__(
        self, world: World, loops: Loops, is_new: Booleans, first: Floats, start: Floats, limit: Floats
    ) -> None:
        self._world, self._loops, self._is_new = world, loops, is_new
        self._first, self._start, self._limit = np.where(is_new, first, 0.0), start, limit

    def at(self, when: Floats) -> Floats:
        """Return the offset at a moment of the hold."""
        arrived = self._world.rates * when
        old = -self._world.lags + self._loops.consumed * when
        new = np.maximum(np.minimum(arrived, self._start + self._limit * (when - self._first)), self._start)
        old = np.where(when > 0, np.minimum(old, arrived), old)
        return np.where(self._is_new, new, old)


def _limits(world: World, holds: Holds, loops: Loops) -> Floats:
    """Return how many records a second each hold can deliver: an even part of its process's loop."""
    found = np.empty(holds.life.shape)
    lives = len(world.lives)
    for number, life in enumerate(holds.life):
        trials = np.arange(len(life))[:, None]
        places = np.where(life == NOBODY, lives, life) + trials * (lives + 1)
        counts = np.bincount(places.ravel(), minlength=len(life) * (lives + 1))
        found[number] = loops.capacity / np.maximum(counts[places], 1)
    return np.maximum(found, world.rates * 1.0)


def first_fetch(world: World, times: LifeTimes, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return by trial and life how long it takes from an assignment to the first record of a warm process.

    librdkafka serves both protocols in one thread (``rdkafka_cgrp.c``): in rolls it was as quick by either.
    """
    if world.request.mixes:
        classic = times.delay(random, calibration.fetch_s)
        if not world.request.is_java:
            return classic
        return np.where(world.wakes_by_server, spread(random, calibration.consumer_fetch_s, classic.shape), classic)
    if world.request.protocol == CLASSIC:
        return times.delay(random, calibration.fetch_s)
    return spread(random, calibration.consumer_fetch_s, times.arrives.shape)


def _fetch_s(
    world: World,
    times: LifeTimes,
    life: Indexes,
    gained: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how long each process takes from its assignment to its first records: the same for all of them."""
    shape = (len(life), len(world.lives))
    owner = np.maximum(life, 0)
    usual = np.take_along_axis(first_fetch(world, times, calibration, random), owner, axis=1)
    more = np.take_along_axis(tailed(random, calibration.cold_fetch_s, shape), owner, axis=1)
    is_cold = gained < np.take_along_axis(times.arrives, owner, axis=1) + COLD_FOR_S
    return np.where(is_cold, usual + more, usual)


def _delays(world: World, work: Floats, life: Indexes, keepers: Indexes) -> Floats:
    """Return how long partitions that stay wait while their process works off what it has just been given."""
    trials, lives = len(life), len(world.lives)
    places = np.where(life == NOBODY, lives, life) + np.arange(trials)[:, None] * (lives + 1)
    given = np.bincount(places.ravel(), weights=work.ravel(), minlength=trials * (lives + 1)).reshape(trials, -1)
    kept = np.take_along_axis(given, np.where(keepers == NOBODY, lives, keepers), axis=1)
    # Nobody can tell a wait from the time between two records.
    is_seen = (keepers != NOBODY) & (kept * world.rates > _SEEN_RECORDS)
    return np.where(is_seen, kept, 0.0)


def _queue_s(life: Indexes, work: Floats, order: Floats, gained: Floats) -> Floats:
    """Return how long each partition waits for the records of those that its process takes up before it.

    One answer brings what is due of all partitions, and one loop works it off partition by partition.
    """
    keys = np.lexsort((order, gained, life), axis=1)
    sorted_life = np.take_along_axis(life, keys, axis=1)
    sorted_work = np.take_along_axis(work, keys, axis=1)
    before = np.cumsum(sorted_work, axis=1) - sorted_work
    same = np.zeros(life.shape, dtype=bool)
    sorted_gained = np.take_along_axis(gained, keys, axis=1)
    same[:, 1:] = (sorted_life[:, 1:] == sorted_life[:, :-1]) & (sorted_gained[:, 1:] == sorted_gained[:, :-1])
    base = np.maximum.accumulate(np.where(same, -np.inf, before), axis=1)
    found = np.empty_like(work)
    np.put_along_axis(found, keys, before - base, axis=1)
    return found
