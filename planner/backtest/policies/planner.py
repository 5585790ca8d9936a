"""The planner's own rule: receding horizon over futures of the load (``planner.decision.horizon``)."""

from collections import deque

import numpy as np

from planner.backtest.observation import Observation
from planner.backtest.owners import GroupOwners, busiest_share
from planner.backtest.scenario import SECONDS_AN_HOUR, Floats, Scenario
from planner.decision.horizon import Costs, GroupState
from planner.decision.weighing import COMMIT_INTERVAL_S, DEFAULT_WEIGHING, Weighing, WeighingSettings, useful_counts
from planner.demand.series import DEFAULT_LEVEL, MINUTE_S, LevelSettings, LoadSeries

SHARES_S = 1800.0
"""Queue shares are those of the last half an hour."""


class Planner:
    """One decision each period."""

    name = "planner"
    reads_busy = False

    def __init__(
        self,
        scenario: Scenario,
        settings: WeighingSettings = DEFAULT_WEIGHING,
        level: LevelSettings = DEFAULT_LEVEL,
    ) -> None:
        self.every_s = scenario.every_s
        self._scenario, self._settings = scenario, settings
        self._owners = GroupOwners(scenario)
        self._series = LoadSeries(level, minutes(scenario) / scenario.capacity)
        self._costs = Costs(
            change=scenario.prices.rebalance_h * SECONDS_AN_HOUR,
            late_minute=scenario.prices.late_minute_h * SECONDS_AN_HOUR,
            late_after_s=scenario.late_after_s,
            pod_start_s=scenario.pod_start_s,
            every_s=scenario.every_s,
        )
        known = scenario.history[-max(1, round(SHARES_S / scenario.interval_s)) :].sum(axis=0)
        self._before: Floats = known if known.size and known.sum() > 0 else np.ones(len(scenario.queues))
        self._observed: deque[tuple[float, Floats]] = deque()
        self._minute_sum, self._minute_s = 0.0, 0.0

    @property
    def tuning(self) -> str:
        """The same setting for every scenario."""
        return f"one setting for all, every {self.every_s:g} s"

    def decide(self, observation: Observation) -> int | None:
        """Return the count with the least expected cost, ``None`` while nothing is known of the load."""
        self._learn(observation)
        if not len(self._series):
            return None
        useful = self._useful(self._queue_shares(), observation)
        weighing = Weighing(
            self._series,
            tuple(useful),
            np.array(list(useful.values())),
            self._state(observation, useful),
            self._costs,
            self._settings,
        )
        return weighing.bill().chosen

    def _learn(self, observation: Observation) -> None:
        """Add what came since the last observation to the series, spread evenly over the minutes between."""
        now, arrived = observation.second, observation.arrived
        before_s, before = self._observed[-1] if self._observed else (0.0, np.zeros_like(arrived))
        self._observed.append((now, arrived))
        while len(self._observed) > 2 and self._observed[1][0] <= now - SHARES_S:
            self._observed.popleft()
        span = now - before_s
        if span <= 0:
            return
        rate = float((arrived - before).sum()) / span / self._scenario.capacity
        while span > 0:
            taken = min(span, MINUTE_S - self._minute_s)
            self._minute_sum += rate * taken
            self._minute_s += taken
            span -= taken
            if self._minute_s >= MINUTE_S - 1e-9:
                self._series.append(self._minute_sum / MINUTE_S)
                self._minute_sum, self._minute_s = 0.0, 0.0

    def _queue_shares(self) -> Floats:
        """Return each queue's share of what came in the last half an hour, as far as that was observed."""
        (first_s, first), (last_s, last) = self._observed[0], self._observed[-1]
        recent = last - first
        known = max(0.0, SHARES_S - (last_s - first_s)) / SHARES_S
        weights = recent + known * self._before
        total = float(weights.sum())
        return np.asarray(weights / total) if total > 0 else np.full(len(weights), 1 / len(weights))

    def _useful(self, shares: Floats, observation: Observation) -> dict[int, float]:
        """Return the counts worth considering, with the busiest consumer's share under each."""
        counts = range(self._scenario.lowest, self._scenario.highest + 1)
        busiest = ((count, busiest_share(self._owners.of_count(count), shares, count)) for count in counts)
        return useful_counts(busiest, {observation.running, observation.ordered})

    def _state(self, observation: Observation, busiest: dict[int, float]) -> GroupState:
        """Return the group's state; of the lag, half a commit interval of arrivals has been worked off."""
        rates = self._rates()
        waiting = np.maximum(observation.lag - rates * COMMIT_INTERVAL_S / 2, 0.0)
        count = observation.running
        owners = np.minimum(observation.owners, count)
        worst = float(np.bincount(owners, weights=waiting, minlength=count).max())
        return GroupState(
            running=count,
            ordered=observation.ordered,
            ready_in_s=observation.next_ready_s or 0.0,
            backlog=worst / self._scenario.capacity / busiest[count],
        )

    def _rates(self) -> Floats:
        """Return messages per second of each queue since the observation before this one."""
        if len(self._observed) < 2:
            return np.zeros(len(self._scenario.queues))
        (before_s, before), (now_s, now) = self._observed[-2], self._observed[-1]
        return np.asarray((now - before) / (now_s - before_s))


def minutes(scenario: Scenario) -> Floats:
    """Return the known history as messages per second, by minute; the last minute ends where the play begins."""
    totals = scenario.history.sum(axis=1)
    summed = np.concatenate(([0.0], np.cumsum(totals)))
    whole = int(scenario.history_s // MINUTE_S)
    edges = scenario.history_s - MINUTE_S * np.arange(whole, -1, -1)
    return np.asarray(np.diff(np.interp(edges / scenario.interval_s, np.arange(len(summed)), summed)) / MINUTE_S)
