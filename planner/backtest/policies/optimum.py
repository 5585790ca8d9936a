"""The best schedule for a known future: dynamic programming over (count, backlog), then played like all others.

Rises are ordered a pod's start ahead, so that they cost no delay. The programme knows the fluid and its prices, not the
draws of pauses and repeats: played schedules of several safety margins are compared, and the cheapest counts.
"""

from collections.abc import Iterator

import numpy as np

from planner.allocation.strategy import NOBODY
from planner.backtest.observation import Observation
from planner.backtest.owners import GroupOwners
from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Floats, Ints, Scenario

MARGINS = (0.6, 0.8, 0.9, 0.97)
"""Parts of the allowed wait from which a schedule takes a message for late."""
PACE = 0.995
BIN_S = 60.0
LEVELS: Floats = np.concatenate([4000.0 * np.linspace(0, 1, 140) ** 2, [5e3, 7e3, 1e4, 2e4, 1e5, 1e6]])
"""Backlogs in consumer-seconds of the whole group; close, as interpolation blurs what is late."""


class Optimum:
    """One schedule, made beforehand."""

    name = "optimum"
    every_s = STEP_S
    reads_busy = False

    def __init__(self, counts: Ints, margin: float, pod_start_s: float) -> None:
        """``counts`` has the count that should run in each bin."""
        self._counts, self._margin = counts, margin
        self._ahead_s = pod_start_s

    @property
    def tuning(self) -> str:
        """The safety margin."""
        return f"knows the future; late from {self._margin:.0%} of the allowed wait"

    def decide(self, observation: Observation) -> int | None:
        """Return what the schedule says: a rise as soon as its pods can be ready, anything else at its time."""
        now = self._at(observation.second)
        ahead = self._at(observation.second + self._ahead_s)
        return max(now, ahead)

    def _at(self, second: float) -> int:
        return int(self._counts[min(int(second // BIN_S), len(self._counts) - 1)])


def optimum_grid(scenario: Scenario) -> Iterator[Optimum]:
    """Yield the schedules that are played for one scenario."""
    loads = bin_loads(scenario)
    counts, shares = _busiest_shares(scenario, loads)
    totals = loads.sum(axis=1)
    for margin in MARGINS:
        yield Optimum(_schedule(scenario, counts, shares, totals, margin), margin, scenario.pod_start_s)


def bin_loads(scenario: Scenario) -> Floats:
    """Return the load that each queue brings in each bin, in consumers; shape (bins, queues)."""
    arrived = np.concatenate([np.zeros((1, len(scenario.queues))), np.cumsum(scenario.played, axis=0)])
    bins = max(1, int(np.ceil(scenario.steps * STEP_S / BIN_S)))
    rows = np.minimum(np.arange(bins + 1) * BIN_S / scenario.interval_s, len(arrived) - 1)
    below = np.minimum(rows.astype(np.intp), len(arrived) - 2)
    part = (rows - below)[:, None]
    return np.asarray(
        np.diff(arrived[below] * (1 - part) + arrived[below + 1] * part, axis=0) / BIN_S / scenario.capacity
    )


def _busiest_shares(scenario: Scenario, loads: Floats) -> tuple[Ints, Floats]:
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


def _schedule(scenario: Scenario, counts: Ints, shares: Floats, loads: Floats, margin: float) -> Ints:
    """Return the count of each bin with the least cost from begin to end."""
    bins, change = len(loads), scenario.prices.rebalance_h * SECONDS_AN_HOUR
    costs = np.zeros((bins, len(counts), len(LEVELS)), dtype=np.float32)
    value = np.zeros((len(counts), len(LEVELS)))
    for index in range(bins - 1, -1, -1):
        after, late = _grow(LEVELS, float(loads[index]), shares[index][:, None], scenario, margin)
        costs[index] = counts[:, None] * BIN_S + late + _interpolated(value, after)
        value = np.minimum(costs[index], change + costs[index].min(axis=0))
    schedule, backlog, current = np.zeros(bins, dtype=np.intp), 0.0, int(np.searchsorted(counts, scenario.start))
    for index in range(bins):
        options = _at(costs[index], backlog) + change
        options[current] -= change
        current = int(options.argmin())
        schedule[index] = counts[current]
        after, _ = _grow(
            np.array([backlog]), float(loads[index]), shares[index][current : current + 1], scenario, margin
        )
        backlog = float(after[0])
    return schedule


def _grow(backlog: Floats, load: float, share: Floats, scenario: Scenario, margin: float) -> tuple[Floats, Floats]:
    """Return the backlog one bin later, and the price of the part of it in which messages are late."""
    growth = (load - PACE / share) * BIN_S
    after = backlog + growth
    limit = margin * scenario.late_after_s * np.maximum(PACE, load * share) / share
    part = (np.maximum(backlog, after) - limit) / (np.abs(growth) + 1e-6)
    price = scenario.prices.late_minute_h * SECONDS_AN_HOUR * BIN_S / 60.0
    return np.maximum(after, 0.0), np.clip(part, 0.0, 1.0) * price


def _interpolated(value: Floats, backlog: Floats) -> Floats:
    """Return each count's value at its own backlogs; shape (counts, levels)."""
    index = np.clip(np.searchsorted(LEVELS, backlog, side="right") - 1, 0, len(LEVELS) - 2)
    weight = (backlog - LEVELS[index]) / (LEVELS[index + 1] - LEVELS[index])
    rows = np.arange(len(value))[:, None]
    low = value[rows, index]
    return np.asarray(low + weight * (value[rows, index + 1] - low))


def _at(costs: "np.ndarray[tuple[int, int], np.dtype[np.float32]]", backlog: float) -> Floats:
    index = min(max(int(np.searchsorted(LEVELS, backlog, side="right")) - 1, 0), len(LEVELS) - 2)
    weight = (backlog - LEVELS[index]) / (LEVELS[index + 1] - LEVELS[index])
    low, high = costs[:, index].astype(float), costs[:, index + 1].astype(float)
    return np.asarray(low + weight * (high - low))
