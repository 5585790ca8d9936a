"""When the backlog is gone where a broker's death sends more to the queues that are left, while these change owners."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.offsets import Deliveries
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, most_pulled
from planner.forecast.rocketmq.membership.inflow import Inflow
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario

STEPS = 64
"""The time until all has settled is cut into so many equal steps, each with one owner a queue."""


@dataclass(slots=True, eq=False)
class _Pools:
    """What waits in each queue, by trial; ``drained_s`` is when the last process had nothing left so far."""

    scenario: Scenario
    rates: Rates
    inflow: Inflow
    is_read: Booleans
    waiting: Floats
    drained_s: Floats

    def go_on(self, at_s: Floats, until_s: Floats, owner: Indexes) -> None:
        """Let each process work on its queues in the order in which messages came (one pool, first in, first out)."""
        step_s = until_s - at_s
        came = np.maximum(self.inflow.arrived(until_s) - self.inflow.arrived(at_s), 0.0) * self.is_read
        due = self.waiting + came
        able = self.rates.per_process * step_s
        needed = self._by_process(due, owner)
        served = np.minimum(1.0, able / np.maximum(needed, 1e-12))
        picks = np.maximum(owner, 0)
        done = np.where(owner == NOBODY, 0.0, due * np.take_along_axis(served, picks, axis=1))
        done = np.minimum(done, _most_of_queue(self.scenario) * step_s)
        waited = self._by_process(self.waiting, owner)
        empties = (needed <= able) & (waited > 0)
        spare = np.maximum(able - (needed - waited), 1e-12)
        gone = np.where(empties, at_s + step_s * waited / spare, 0.0).max(axis=1, initial=0.0)
        self.waiting = due - done
        self.drained_s = np.maximum(self.drained_s, gone)

    def rest(self, at_s: Floats, owner: Indexes) -> Floats:
        """Return when all is gone under the final owners; NaN where some process never keeps up."""
        comes = self.inflow.after * self.is_read
        backlog, arriving = self._by_process(self.waiting, owner), self._by_process(comes, owner)
        drained_s: Floats = np.maximum(
            self.drained_s, _gone(at_s, backlog, self.rates.per_process - arriving).max(axis=1)
        )
        if np.isfinite(_most_of_queue(self.scenario)):
            waiting = np.where(owner == NOBODY, 0.0, self.waiting)
            alone = _gone(at_s, waiting, _most_of_queue(self.scenario) - np.where(owner == NOBODY, 0.0, comes))
            drained_s = np.maximum(drained_s, alone.max(axis=1, initial=0.0))
        return drained_s

    def _by_process(self, values: Floats, owner: Indexes) -> Floats:
        trials, count = len(values), len(self.rates.per_process)
        cell = np.arange(trials)[:, None] * count + owner
        owned = owner != NOBODY
        sums = np.bincount(cell[owned], weights=values[owned], minlength=trials * count)
        return sums.reshape(trials, count).astype(float)


def find_shifted_drain(
    scenario: Scenario, inflow: Inflow, tenures: Tenures, starts: Starts, deliveries: Deliveries, rates: Rates
) -> Floats:
    """Return by trial when the queues that are left have no backlog, NaN where one process never keeps up."""
    shape = (scenario.request.trials, len(scenario.queues))
    is_read = scenario.present
    waiting = np.broadcast_to(scenario.lags * is_read, shape).copy()
    pools = _Pools(scenario, rates, inflow, is_read, waiting, np.zeros(shape[0]))
    ends = _settled_s(inflow, starts, deliveries)
    for step in range(STEPS):
        at_s, until_s = (ends * number / STEPS for number in (step, step + 1))
        owner = _owners_at((at_s + until_s) / 2, shape, tenures, starts, deliveries, rates)
        pools.go_on(at_s, until_s, np.where(is_read, owner, NOBODY))
    final = _owners_at(np.full_like(ends, np.inf), shape, tenures, starts, deliveries, rates)
    return pools.rest(ends, np.where(is_read, final, NOBODY))


def _settled_s(inflow: Inflow, starts: Starts, deliveries: Deliveries) -> Floats:
    """Return by trial, as a column, when the inflow has shifted and every queue is with its final owner."""
    first = np.where(deliveries.delivers & np.isfinite(starts.first), starts.first, 0.0)
    ends: Floats = np.maximum(inflow.shift_s.max(axis=1), first.max(axis=(1, 2), initial=0.0))[:, None]
    return np.maximum(ends, 1e-3)


def _owners_at(
    at_s: Floats, shape: tuple[int, int], tenures: Tenures, starts: Starts, deliveries: Deliveries, rates: Rates
) -> Indexes:
    """Return which process delivers each queue at a time, NOBODY in between."""
    owner = np.broadcast_to(rates.owners, shape).copy()
    of_touched = np.full(tenures.process.shape[:2], NOBODY, dtype=np.intp)
    for number in range(tenures.process.shape[2]):
        begun = deliveries.delivers[:, :, number] & (starts.first[:, :, number] <= at_s)
        runs = begun & ((tenures.dropped[:, :, number] > at_s) | np.isposinf(tenures.dropped[:, :, number]))
        of_touched = np.where(runs, tenures.process[:, :, number], of_touched)
    owner[:, tenures.queues] = of_touched
    return owner


def _gone(at_s: Floats, backlog: Floats, spare: Floats) -> Floats:
    """Return when so much is worked off: 0 where nothing waits, NaN where it grows or stays."""
    grows = (spare < 0) | ((spare <= 0) & (backlog > 0))
    gone = np.where(backlog > 0, at_s + backlog / np.where(spare > 0, spare, 1.0), 0.0)
    return np.where(grows, np.nan, gone)


def _most_of_queue(scenario: Scenario) -> float:
    """Return what can be done of one queue in a second: one call at a time in order, and as much as is pulled."""
    request = scenario.request
    calls = request.settings.value("consumeMessageBatchMaxSize") / max(request.service_time_s, 1e-9)
    return min(calls if request.orderly else np.inf, most_pulled(scenario))
