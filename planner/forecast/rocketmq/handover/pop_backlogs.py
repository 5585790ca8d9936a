"""POP: what members have popped of messages that wait, step by step: it is theirs until they drop the queue.

A member pops until more than ``popThresholdForQueue`` messages of a queue, or of a broker that it has whole, wait
behind its threads (``DefaultMQPushConsumerImpl#popMessage``, 5.5.0). What it has popped as it drops the queue runs, or
is never begun (``ConsumeMessagePopConcurrentlyService.ConsumeRequest#run``): either way it comes again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.changes import BlueGreen
from planner.forecast.rocketmq.timing import POP_THRESHOLD

_TICK_S, _STEP_S = 0.02, 0.5
"""Moments closer than a tick are one; none lies more than a step after the one before."""
_LEAST, _ROUNDING = 1e-9, 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Popped:
    """Messages that a tenure has popped as it ends, by trial, queue and tenure: ``running`` calls, and those not begun.

    ``asks``: it leaves a request with the broker, which it has there unless enough waits behind its threads.
    ``behind_s``: by trial, the longest time in which a member would work off what it has popped.
    """

    running: Floats
    unbegun: Floats
    asks: Booleans
    behind_s: Floats


def find_popped_at_end(scenario: Scenario, change: BlueGreen, tenures: Tenures, starts: Starts, rates: Rates) -> Popped:
    """Return what each tenure of a group that takes over has popped as it ends, nothing of the one before it.

    The group begins with what came since the copy of the offsets, or since the end of the other one.
    """
    counts = (tenures.process != NOBODY) & (scenario.groups == AFTER)[np.maximum(tenures.process, 0)]
    begins, ends = _ticks(starts.first), _ticks(tenures.dropped)
    arriving = scenario.rates[tenures.queues]
    opened_s = min(change.clone_s, change.stop_s)
    pools = _Pools(scenario, tenures, rates, np.flatnonzero(counts & (begins < ends)))
    begins, ends = begins.ravel()[pools.tenures], ends.ravel()[pools.tenures]
    waits = np.tile(scenario.lags[tenures.queues], (len(tenures.process), 1))
    for since, until in _steps(begins, ends, pools.trial, len(tenures.process)):
        goes_on = (begins <= since[pools.trial]) & (since[pools.trial] < np.minimum(ends, until[pools.trial]))
        active = np.flatnonzero(goes_on)
        come_s = np.maximum(until - np.maximum(since, opened_s), 0.0)
        waits = pools.step(active, waits, arriving * come_s[:, None], since, until)
        pools.end(active[ends[active] == until[pools.trial[active]]])
    return pools.popped(counts.shape)


class _Pools:
    """Messages in the pools of all members' threads, by tenure: ``cached`` and ``running`` ones.

    ``tenures``: indexes of the tenures among those of all trials and queues; ``cell``: of their queues among those of
    all trials; ``trial``: theirs.
    """

    def __init__(self, scenario: Scenario, tenures: Tenures, rates: Rates, listed: Indexes) -> None:
        trials, queues, count = tenures.process.shape
        self.tenures, self.cell = listed, listed // count
        self.trial = self.cell // queues
        self._process = tenures.process.ravel()[listed] + self.trial * len(scenario.processes)
        self._of_all = (trials, len(scenario.processes))
        self._rates, self._threads = rates, rates.per_process * rates.service_s
        most, first = _most_cached(scenario, tenures)
        self._most: Floats = np.broadcast_to(most, tenures.process.shape).ravel()[listed]
        self._first: Booleans = np.broadcast_to(first, tenures.process.shape).ravel()[listed]
        self._comes = (scenario.rates[tenures.queues] > 0)[self.cell % queues]
        self._cached, self._running = np.zeros(len(listed)), np.zeros(len(listed))
        self._busy_since = np.full(self._of_all, np.nan)  # where more waits than the threads can take
        self._behind_s = np.zeros(trials)
        self._ended = np.zeros((3, len(listed)))

    def step(self, active: Indexes, waits: Floats, come: Floats, since: Floats, until: Floats) -> Floats:
        """Go on between two moments of each trial; return what still waits at brokers of what waited and came by queue.

        Who asks for messages of a queue gets as many as the others.
        """
        cell, trial, process = self.cell[active], self.trial[active], self._process[active]
        takers, offered = np.bincount(cell, minlength=waits.size), (waits + come).ravel()
        has = self._cached[active] + (offered / np.maximum(takers, 1))[cell]
        waiting = self._sums(process, has)
        free = self._free(self._sums(process, self._running[active]), since[:, None], until[:, None])
        begun = has * np.minimum(free / np.maximum(waiting, _LEAST), 1.0).ravel()[process]
        self._busy_since = np.where(waiting > free, np.fmin(self._busy_since, since[:, None]), np.nan)
        cached = np.minimum(has - begun, self._most[active])
        calls = ((until - since) / self._rates.service_s)[trial]
        running = self._running[active] * np.clip(1 - calls, 0.0, 1.0) + begun / np.maximum(calls, 1.0)
        is_burst = (self._busy_since <= until[:, None]).ravel()[process]
        running = np.where(is_burst, self._running[active] + begun, running)
        running *= np.minimum(self._threads / np.maximum(self._sums(process, running), _LEAST), 1.0).ravel()[process]
        self._cached[active], self._running[active] = cached, running
        behind_s = (self._sums(process, cached) / self._rates.per_process).max(axis=1, initial=0.0)
        self._behind_s = np.maximum(self._behind_s, behind_s)
        left = np.bincount(cell, has - begun - cached, minlength=waits.size)
        taken_up: Floats = np.where(takers == 0, offered, left).reshape(waits.shape)
        return taken_up

    def _free(self, running: Floats, since: Floats, until: Floats) -> Floats:
        """Return how many calls the threads can begin: those of a burst begin together, and end together."""
        began = np.fmin(self._busy_since, since)
        ended, ends = (np.floor((at - began) / self._rates.service_s + _ROUNDING) for at in (since, until))
        idle = np.maximum(self._threads - running, 0.0)
        free: Floats = idle + self._threads * (ends - ended)
        return free

    def end(self, over: Indexes) -> None:
        """Note what these tenures have popped, and forget it."""
        asks = self._first[over] & self._comes[over] & (self._cached[over] < self._most[over])
        self._ended[:, over] = self._running[over], self._cached[over], asks
        self._running[over], self._cached[over] = 0.0, 0.0

    def popped(self, shape: tuple[int, ...]) -> Popped:
        """Return what all tenures have popped as they ended, by trial, queue and tenure."""
        ended = np.zeros((3, *shape))
        ended.reshape(3, -1)[:, self.tenures] = self._ended
        return Popped(ended[0], ended[1], ended[2] > 0, self._behind_s)

    def _sums(self, process: Indexes, values: Floats) -> Floats:
        size = self._of_all[0] * self._of_all[1]
        sums: Floats = np.bincount(process, values, size).astype(float).reshape(self._of_all)
        return sums


def _most_cached(scenario: Scenario, tenures: Tenures) -> tuple[Floats, Booleans]:
    """Return how much each tenure may cache, and which tenures stand for all of their member's tenures of a whole
    broker.

    Such a broker is popped as one queue.
    """
    locations = [scenario.queues[pick].place for pick in tenures.queues.tolist()]
    count = np.array([locations.count(location) for location in locations], dtype=float)[None, :, None]
    first = np.array([location not in locations[:number] for number, location in enumerate(locations)])[None, :, None]
    return np.where(tenures.whole, POP_THRESHOLD / count, POP_THRESHOLD), first | ~tenures.whole


def _ticks(seconds: Floats) -> Floats:
    """Return the ticks nearest to moments after the change; others as they are."""
    later = np.isfinite(seconds) & (seconds > 0)
    ticks: Floats = np.where(later, np.rint(np.where(later, seconds, 0.0) / _TICK_S), seconds) * _TICK_S
    return ticks


def _steps(begins: Floats, ends: Floats, trial: Indexes, trials: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield from when to when each step goes, by trial, from the change to the last end; the last ones may be empty."""
    last = np.where(np.isfinite(ends), ends, 0.0).max(initial=0.0)
    regular = _ticks(np.arange(0.0, last + _STEP_S, _STEP_S))
    moments = np.concatenate([begins, ends, np.tile(regular, trials)])
    of_trial = np.concatenate([trial, trial, np.repeat(np.arange(trials), len(regular))])
    # Each trial's moments in a row of their own, as long as the longest one.
    cell = np.unique(of_trial * (round(last / _TICK_S) + 1) + np.rint(np.clip(moments, 0.0, last) / _TICK_S))
    rows, ticks = np.divmod(cell.astype(np.intp), round(last / _TICK_S) + 1)
    count = np.bincount(rows, minlength=trials)
    moments_of = np.full((trials, count.max(initial=1)), last)
    moments_of[rows, np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)] = ticks * _TICK_S
    return zip(moments_of[:, :-1].T, moments_of[:, 1:].T, strict=True)
