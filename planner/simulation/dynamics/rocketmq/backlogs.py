"""POP: what members have popped of messages that wait, step by step: it is theirs until they drop the queue.

A member pops until more than ``popThresholdForQueue`` messages of a queue, or of a broker that it has whole, wait
behind its threads (``DefaultMQPushConsumerImpl#popMessage``, 5.5.0). What it has popped as it drops the queue runs, or
is never begun (``ConsumeMessagePopConcurrentlyService.ConsumeRequest#run``): either way it comes again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.rocketmq.changes import BlueGreen
from planner.simulation.dynamics.rocketmq.holds import NOBODY, Holds
from planner.simulation.dynamics.rocketmq.processes import AFTER
from planner.simulation.dynamics.rocketmq.pulls import Starts
from planner.simulation.dynamics.rocketmq.rates import Rates
from planner.simulation.dynamics.rocketmq.timing import POP_THRESHOLD, Calibration
from planner.simulation.dynamics.rocketmq.world import Booleans, Floats, World
from planner.simulation.dynamics.spreads import spread

_TICK_S, _STEP_S = 0.02, 0.5
"""Moments closer than a tick are one; none lies more than a step after the one before."""
_LEAST, _ROUNDING = 1e-9, 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Popped:
    """Messages that a hold has popped as it ends, by trial, queue and hold: ``running`` calls, and those not begun.

    ``asks``: it leaves a request with the broker, which it has there unless enough waits behind its threads.
    ``behind_s``: by trial, the longest time in which a member would work off what it has popped.
    """

    running: Floats
    unbegun: Floats
    asks: Booleans
    behind_s: Floats


def popped_at_end(
    world: World, holds: Holds, starts: Starts, rates: Rates, calibration: Calibration, random: np.random.Generator
) -> Popped:
    """Return what each hold has popped as it ends; nothing of a group that another one follows."""
    counts = holds.life != NOBODY
    if isinstance(world.request.change, BlueGreen):
        counts &= (world.groups == AFTER)[np.maximum(holds.life, 0)]
    begins = np.where(counts, _ticks(starts.first), np.inf)
    ends = np.where(counts, _ticks(holds.dropped), -np.inf)
    opened = _opened(world, holds, calibration, random)
    arriving = world.rates[holds.queues]
    pools, waits = _Pools(world, holds, rates), np.tile(world.lags[holds.queues], (len(begins), 1))
    before, start = np.isneginf(begins) & (ends > 0), np.zeros(len(begins))
    waits = pools.step(before, waits, before.any(axis=2) * arriving * rates.service_s, start - rates.service_s, start)
    shape = counts.shape
    found = Popped(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(len(begins)))
    for since, until in _steps(begins, ends):
        active = (begins <= since[:, None, None]) & (since[:, None, None] < ends)
        come_s = np.maximum(until[:, None] - np.maximum(since[:, None], opened), 0.0)
        waits = pools.step(active, waits, arriving * come_s, since, until)
        np.maximum(found.behind_s, pools.behind_s, out=found.behind_s)
        pools.end(active & (ends == until[:, None, None]), found)
    return found


class _Pools:
    """Messages in the pools of all members' threads, by trial, queue and hold: ``cached`` and ``running`` ones."""

    def __init__(self, world: World, holds: Holds, rates: Rates) -> None:
        self._life = np.maximum(holds.life, 0) + np.arange(len(holds.life))[:, None, None] * len(world.lives)
        self._of_all = (len(holds.life), len(world.lives))
        self._rates, self._threads = rates, rates.per_life * rates.service_s
        self._most, self._first = _most_cached(world, holds)
        self._comes = (world.rates[holds.queues] > 0)[None, :, None]
        self._cached, self._running = np.zeros(holds.life.shape), np.zeros(holds.life.shape)
        self._busy_since = np.full(self._of_all, np.nan)  # where more waits than the threads can take

    def step(self, active: Booleans, waits: Floats, come: Floats, since: Floats, until: Floats) -> Floats:
        """Go on between two moments of each trial; return what still waits at brokers of what waited and came by queue.

        Who asks for messages of a queue gets as many as the others.
        """
        takers, offered = active.sum(axis=2), waits + come
        has = self._cached + np.where(active, (offered / np.maximum(takers, 1))[:, :, None], 0.0)
        waiting = self._sums(has)
        free = self._free(since[:, None], until[:, None])
        begun = has * self._of_holders(np.minimum(free / np.maximum(waiting, _LEAST), 1.0))
        self._busy_since = np.where(waiting > free, np.fmin(self._busy_since, since[:, None]), np.nan)
        self._cached = np.minimum(has - begun, self._most)
        turns = (until - since)[:, None, None] / self._rates.service_s
        running = self._running * np.clip(1 - turns, 0.0, 1.0) + begun / np.maximum(turns, 1.0)
        running = np.where(self._of_holders(self._busy_since) <= until[:, None, None], self._running + begun, running)
        most = np.minimum(self._threads / np.maximum(self._sums(running), _LEAST), 1.0)
        self._running = running * self._of_holders(most)
        left: Floats = np.where(takers == 0, offered, (has - begun - self._cached).sum(axis=2))
        return left

    @property
    def behind_s(self) -> Floats:
        """Return by trial how long the member that has most to do works on what it has popped."""
        longest: Floats = (self._sums(self._cached) / self._rates.per_life).max(axis=1, initial=0.0)
        return longest

    def _free(self, since: Floats, until: Floats) -> Floats:
        """Return how many calls the threads can begin: those of a burst begin together, and end together."""
        began = np.fmin(self._busy_since, since)
        ended, ends = (np.floor((at - began) / self._rates.service_s + _ROUNDING) for at in (since, until))
        idle = np.maximum(self._threads - self._sums(self._running), 0.0)
        free: Floats = idle + self._threads * (ends - ended)
        return free

    def end(self, over: Booleans, found: Popped) -> None:
        """Note what these holds have popped, and forget it."""
        found.running[over], found.unbegun[over] = self._running[over], self._cached[over]
        found.asks[over] = (self._first & self._comes & (self._cached < self._most))[over]
        self._running[over], self._cached[over] = 0.0, 0.0

    def _sums(self, values: Floats) -> Floats:
        size = self._of_all[0] * self._of_all[1]
        found: Floats = np.bincount(self._life.ravel(), values.ravel(), size).astype(float).reshape(self._of_all)
        return found

    def _of_holders(self, values: Floats) -> Floats:
        return values.ravel()[self._life]


def _most_cached(world: World, holds: Holds) -> tuple[Floats, Booleans]:
    """Return how much each hold may cache, and which holds stand for all of their member's holds of a whole broker.

    Such a broker is popped as one queue.
    """
    places = [world.queues[pick].place for pick in holds.queues.tolist()]
    count = np.array([places.count(place) for place in places], dtype=float)[None, :, None]
    first = np.array([place not in places[:number] for number, place in enumerate(places)])[None, :, None]
    return np.where(holds.whole, POP_THRESHOLD / count, POP_THRESHOLD), first | ~holds.whole


def _ticks(seconds: Floats) -> Floats:
    """Return the ticks nearest to moments after the change; others as they are."""
    later = np.isfinite(seconds) & (seconds > 0)
    found: Floats = np.where(later, np.rint(np.where(later, seconds, 0.0) / _TICK_S), seconds) * _TICK_S
    return found


def _opened(world: World, holds: Holds, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return since when messages come to each touched queue that wait for somebody, by trial and queue.

    A group that takes over begins with what came since the copy, or since the end of the other one. Messages come to a
    broker as soon as it is there.
    """
    change, shape = world.request.change, holds.life.shape[:2]
    if isinstance(change, BlueGreen):
        return np.full(shape, min(change.clone_s, change.stop_s))
    started = spread(random, calibration.broker_start_s, (shape[0], 1))
    of_broker = np.array([world.brokers.index(world.queues[pick].broker) for pick in holds.queues.tolist()])
    found: Floats = np.where(of_broker == world.up, started, 0.0)
    return found


def _steps(begins: Floats, ends: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield from when to when each step goes, by trial, from the change to the last end; the last ones may be empty."""
    trials = len(begins)
    last = np.where(np.isfinite(ends), ends, 0.0).max(initial=0.0)
    regular = np.tile(_ticks(np.arange(0.0, last + _STEP_S, _STEP_S)), (trials, 1))
    moments = np.concatenate([begins.reshape(trials, -1), ends.reshape(trials, -1), regular], axis=1)
    moments = np.sort(np.clip(moments, 0.0, last), axis=1)
    moments[:, 1:][np.diff(moments, axis=1) < _TICK_S / 2] = last
    moments.sort(axis=1)
    width = int((moments < last).sum(axis=1).max(initial=0)) + 1
    return zip(moments[:, : width - 1].T, moments[:, 1:width].T, strict=True)
