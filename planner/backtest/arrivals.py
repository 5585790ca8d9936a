"""Recorded arrivals as the simulated group reads them: messages by step, and when the message at a position came."""

from collections.abc import Iterator

import numpy as np

from planner.backtest.scenario import STEP_S, Floats, Ints, Scenario

STEPS_AT_ONCE = 720


class Arrivals:
    """The played part, with messages spread evenly over each interval."""

    def __init__(self, scenario: Scenario) -> None:
        self._interval_s = scenario.interval_s
        self._steps = scenario.steps
        played = scenario.played
        self._arrived = np.zeros((len(played) + 1, played.shape[1]))
        np.cumsum(played, axis=0, out=self._arrived[1:])
        # One sorted line for all queues: each queue's positions stand above all of the queue before it.
        self._offset = float(self._arrived[-1].max()) + 1.0
        offsets = self._offset * np.arange(played.shape[1])
        self._line = (self._arrived + offsets).T.ravel().copy()

    def until(self, seconds: Floats) -> Floats:
        """Return how many messages of each queue came until each time; shape (times, queues)."""
        intervals = np.minimum(seconds / self._interval_s, len(self._arrived) - 1)
        below = np.minimum(intervals.astype(np.intp), len(self._arrived) - 2)
        fraction = (intervals - below)[:, None]
        return np.asarray(self._arrived[below] * (1 - fraction) + self._arrived[below + 1] * fraction)

    def by_step(self) -> Iterator[Floats]:
        """Yield the messages of each queue that come within each step."""
        for first in range(0, self._steps, STEPS_AT_ONCE):
            last = min(first + STEPS_AT_ONCE, self._steps)
            yield from np.diff(self.until(np.arange(first, last + 1) * np.float64(STEP_S)), axis=0)

    def ages(self, now_s: float, positions: Floats, queues: Ints) -> Floats:
        """Return for how many seconds the message behind each position has been waiting.

        ``positions`` counts the messages of a queue that came before it; ``queues`` are column numbers.
        """
        rows = len(self._arrived)
        index = np.searchsorted(self._line, positions + self._offset * queues, side="right") - 1
        index = np.minimum(index, (queues + 1) * rows - 2).astype(np.intp)
        start = index - queues * rows
        before, after = self._line[index], self._line[index + 1]
        fraction = (positions + self._offset * queues - before) / np.maximum(after - before, 1e-12)
        came = (start + np.clip(fraction, 0.0, 1.0)) * self._interval_s
        return np.asarray(np.maximum(now_s - came, 0.0))
