"""The planner's other rule, ``SmallestCount`` with its defaults: at most 80 % of the busiest consumer."""

from collections import deque

import numpy as np

from planner.backtest.observation import Observation
from planner.backtest.owners import GroupOwners
from planner.backtest.scenario import Floats, Scenario
from planner.demand.series import MINUTE_S

UTILISATION = 0.8
WINDOW_MIN = 10
PERCENTILE = 95.0
BACKLOG_GONE_S = 600.0


class SmallestCount:
    """Observes each minute, as a watch does, and decides each period.

    The load of a consumer is the sum of its queues' own percentiles over the window; what waits must be gone in ten
    minutes at that load.
    """

    name = "smallest-count"
    every_s = MINUTE_S
    reads_busy = False

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._owners = GroupOwners(scenario)
        self._arrived: deque[Floats] = deque(_known(scenario), maxlen=WINDOW_MIN + 1)

    @property
    def tuning(self) -> str:
        """Its defaults."""
        return f"at most {UTILISATION:.0%} of the busiest consumer, decided every {self._scenario.every_s:g} s"

    def decide(self, observation: Observation) -> int | None:
        """Return the smallest count within the bounds, the largest where none is; ``None`` between two decisions."""
        self._arrived.append(observation.arrived)
        if observation.second % self._scenario.every_s or len(self._arrived) < 2:
            return None
        upper = np.percentile(np.diff(np.array(self._arrived), axis=0), PERCENTILE, axis=0) / MINUTE_S
        counts = range(self._scenario.lowest, self._scenario.highest + 1)
        able = (count for count in counts if self._is_able(count, upper, observation.lag))
        return next(able, self._scenario.highest)

    def _is_able(self, count: int, upper: Floats, lag: Floats) -> bool:
        owners = np.minimum(self._owners.of_count(count), count)
        capacity = self._scenario.capacity
        loads = np.bincount(owners, weights=upper, minlength=count)
        waiting = np.bincount(owners, weights=lag, minlength=count)
        is_used = loads.max() <= UTILISATION * capacity
        return bool(is_used and (waiting <= (capacity - loads) * BACKLOG_GONE_S).all())


def _known(scenario: Scenario) -> Floats:
    """Return what came of each queue before the minutes that are known beforehand, counted back from the begin."""
    minutes = min(WINDOW_MIN, int(scenario.history_s // MINUTE_S))
    summed = np.concatenate([np.zeros((1, len(scenario.queues))), np.cumsum(scenario.history, axis=0)])
    rows = (scenario.history_s - MINUTE_S * np.arange(minutes, 0, -1)) / scenario.interval_s
    below = np.minimum(rows.astype(np.intp), max(len(summed) - 2, 0))
    fraction = (rows - below)[:, None]
    return np.asarray(
        summed[below] * (1 - fraction) + summed[np.minimum(below + 1, len(summed) - 1)] * fraction - summed[-1]
    )
