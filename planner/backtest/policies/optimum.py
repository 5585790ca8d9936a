"""The best schedule for a known future: dynamic programming over (count, backlog), then played like all others.

Rises are ordered a pod's start ahead, so that they cost no delay. The programme knows the fluid and its prices, not the
draws of pauses and repeats: played schedules of several safety margins are compared, and the cheapest counts.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import NOBODY
from planner.backtest.observation import Observation
from planner.backtest.owners import GroupOwners
from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Floats, Ints, Scenario
from planner.backtest.simulated_group import COMMIT_INTERVAL_S

MARGINS = (0.6, 0.8, 0.9, 0.97)
"""Parts of the allowed wait from which a schedule takes a message for late."""
PACE = 0.995
BIN_S = 60.0
MOVED_SHARE = 0.7
LEVELS: Floats = np.concatenate([4000.0 * np.linspace(0, 1, 140) ** 2, [5e3, 7e3, 1e4, 2e4, 1e5, 1e6]])
"""Backlogs in consumer-seconds of the whole group; close, as interpolation blurs what is late."""


class Programme(NamedTuple):
    """The solved programme: ``costs`` has what is left to pay from each bin on, by count run in it and backlog."""

    scenario: Scenario
    counts: Ints
    shares: Floats
    loads: Floats
    margin: float
    costs: NDArray[np.float32]

    def choose(self, bin_number: int, backlog: float, current: int) -> int:
        """Return the count to run in a bin that begins with this backlog, where ``current`` ran before."""
        costs = self.costs[min(bin_number, len(self.costs) - 1)]
        repeated = _repeated(float(self.loads[min(bin_number, len(self.loads) - 1)]))
        options = _at(costs, backlog + repeated) + self.scenario.prices.rebalance_h * SECONDS_AN_HOUR
        index = int(np.searchsorted(self.counts, current))
        if index < len(self.counts) and self.counts[index] == current:
            options[index] = _at(costs, backlog)[index]
        return int(self.counts[int(options.argmin())])

    def later(self, bin_number: int, backlog: float, count: int, seconds: float) -> float:
        """Return the backlog after so many seconds of one bin with one count."""
        index = int(np.searchsorted(self.counts, count).clip(0, len(self.counts) - 1))
        row = min(bin_number, len(self.loads) - 1)
        growth = float(self.loads[row] - PACE / self.shares[row, index])
        return max(backlog + growth * seconds, 0.0)


class Optimum:
    """The programme's answer at each bin, for the backlog that there really is."""

    name = "optimum"
    every_s = STEP_S
    reads_busy = False

    def __init__(self, programme: Programme) -> None:
        self._programme = programme
        self._ahead_s = programme.scenario.pod_start_s

    @property
    def tuning(self) -> str:
        """The safety margin."""
        return f"knows the future; late from {self._programme.margin:.0%} of the allowed wait"

    def decide(self, observation: Observation) -> int | None:
        """Return the count of the bin that begins now, or a higher one of that which begins when its pods are ready."""
        now = observation.second
        if now % BIN_S == 0:
            present = self._programme.choose(int(now // BIN_S), self._backlog(observation), observation.ordered)
            # A rise that was ordered ahead for a later bin stays ordered.
            return present if observation.running == observation.ordered or present > observation.ordered else None
        if (now + self._ahead_s) % BIN_S < STEP_S and observation.running == observation.ordered:
            begin = int((now + self._ahead_s) // BIN_S)
            wished = self._programme.choose(begin, self._ahead(observation), observation.ordered)
            return wished if wished > observation.ordered else None
        return None

    def _ahead(self, observation: Observation) -> float:
        """Return the backlog by the time at which a pod that is ordered now is ready."""
        second, backlog = observation.second, self._backlog(observation)
        end = second + self._ahead_s
        while second < end:
            until = min(end, BIN_S * (second // BIN_S + 1))
            backlog = self._programme.later(int(second // BIN_S), backlog, observation.running, until - second)
            second = until
        return backlog

    def _backlog(self, observation: Observation) -> float:
        """Return what waits, in consumer-seconds, as if spread like the load: the busiest consumer's, scaled up."""
        programme = self._programme
        waiting = np.maximum(observation.arrived - observation.consumed, 0.0)
        worst = float(np.bincount(observation.owners, weights=waiting).max()) / programme.scenario.capacity
        index = int(np.searchsorted(programme.counts, observation.running).clip(0, len(programme.counts) - 1))
        row = min(int(observation.second // BIN_S), len(programme.shares) - 1)
        return worst / float(programme.shares[row, index])


def optimum_grid(scenario: Scenario) -> Iterator[Optimum]:
    """Yield the schedules that are played for one scenario."""
    loads = bin_loads(scenario)
    counts, shares = busiest_shares(scenario, loads)
    totals = loads.sum(axis=1)
    for margin in MARGINS:
        costs = _solve(scenario, counts, shares, totals, margin)
        yield Optimum(Programme(scenario, counts, shares, totals, margin, costs))


def bin_loads(scenario: Scenario) -> Floats:
    """Return the load that each queue brings in each bin, in consumers; shape (bins, queues)."""
    arrived = np.concatenate([np.zeros((1, len(scenario.queues))), np.cumsum(scenario.played, axis=0)])
    bins = max(1, int(np.ceil(scenario.steps * STEP_S / BIN_S)))
    rows = np.minimum(np.arange(bins + 1) * BIN_S / scenario.interval_s, len(arrived) - 1)
    below = np.minimum(rows.astype(np.intp), len(arrived) - 2)
    fraction = (rows - below)[:, None]
    return np.asarray(
        np.diff(arrived[below] * (1 - fraction) + arrived[below + 1] * fraction, axis=0) / BIN_S / scenario.capacity
    )


def busiest_shares(scenario: Scenario, loads: Floats) -> tuple[Ints, Floats]:
    """Return the counts, and the busiest consumer's share of the load in each bin; shape (bins, counts)."""
    owners = GroupOwners(scenario)
    total = np.maximum(loads.sum(axis=1), 1e-9)
    counts: list[int] = []
    shares: list[Floats] = []
    for count in range(scenario.lowest, scenario.highest + 1):
        owned = owners.of_count(count)
        owned = np.where(owned == NOBODY, count, owned)
        share = (loads @ (owned[:, None] == np.arange(count + 1)).astype(float)).max(axis=1) / total
        if not shares or (share < shares[-1] * 0.999).any() or count == scenario.start:
            counts.append(count)
            shares.append(np.maximum(share, 1.0 / len(scenario.queues)))
    return np.array(counts, dtype=np.intp), np.stack(shares, axis=1)


def _solve(scenario: Scenario, counts: Ints, shares: Floats, loads: Floats, margin: float) -> NDArray[np.float32]:
    """Return what is left to pay from each bin on; shape (bins, counts, levels)."""
    bins, change = len(loads), scenario.prices.rebalance_h * SECONDS_AN_HOUR
    costs = np.zeros((bins, len(counts), len(LEVELS)), dtype=np.float32)
    value = np.zeros((len(counts), len(LEVELS)))
    for index in range(bins - 1, -1, -1):
        after, late = _grow(LEVELS, float(loads[index]), shares[index][:, None], scenario, margin)
        costs[index] = counts[:, None] * BIN_S + late + _interpolated(value, after)
        cheapest = costs[index].min(axis=0)
        changed = np.interp(LEVELS + _repeated(float(loads[index])), LEVELS, cheapest) + change
        value = np.minimum(costs[index], changed)
    return costs


def _repeated(load: float) -> float:
    """Return the work that a change adds: moved queues, most of all, repeat half a commit interval's messages."""
    return MOVED_SHARE * COMMIT_INTERVAL_S / 2 * load


def _grow(backlog: Floats, load: float, share: Floats, scenario: Scenario, margin: float) -> tuple[Floats, Floats]:
    """Return the backlog one bin later, and the price of the part of it in which messages are late."""
    growth = (load - PACE / share) * BIN_S
    after = backlog + growth
    limit = margin * scenario.late_after_s * np.maximum(PACE, load * share) / share
    fraction = (np.maximum(backlog, after) - limit) / (np.abs(growth) + 1e-6)
    price = scenario.prices.late_minute_h * SECONDS_AN_HOUR * BIN_S / 60.0
    return np.maximum(after, 0.0), np.clip(fraction, 0.0, 1.0) * price


def _interpolated(value: Floats, backlog: Floats) -> Floats:
    """Return each count's value at its own backlogs; shape (counts, levels)."""
    index = np.clip(np.searchsorted(LEVELS, backlog, side="right") - 1, 0, len(LEVELS) - 2)
    weight = (backlog - LEVELS[index]) / (LEVELS[index + 1] - LEVELS[index])
    rows = np.arange(len(value))[:, None]
    low = value[rows, index]
    return np.asarray(low + weight * (value[rows, index + 1] - low))


def _at(costs: NDArray[np.float32], backlog: float) -> Floats:
    index = min(max(int(np.searchsorted(LEVELS, backlog, side="right")) - 1, 0), len(LEVELS) - 2)
    weight = (backlog - LEVELS[index]) / (LEVELS[index + 1] - LEVELS[index])
    low, high = costs[:, index].astype(float), costs[:, index + 1].astype(float)
    return np.asarray(low + weight * (high - low))
