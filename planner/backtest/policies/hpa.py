"""The Horizontal Pod Autoscaler's loop without ``behavior``: recommendation, stabilisation, limit upwards.

Source: ``pkg/controller/podautoscaler/horizontal.go`` and ``replica_calculator.go``, Kubernetes 1.35.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planner.backtest.observation import Observation
from planner.backtest.scenario import Scenario

SYNC_PERIOD_S = 15.0
TOLERANCE = 0.1
DOWNSCALE_STABILISATION_S = 300.0
CPU_TARGETS = (0.5, 0.6, 0.7, 0.8, 0.9)
WINDOWS_S = (300.0, 900.0, 1800.0)


def external_average(metric: float, target: float, count: int, reported: int) -> int:
    """Return the count proposed for an external metric with a target average per pod.

    ``reported`` is the count in the Deployment's status, which is what comes back within the tolerance
    (``GetExternalPerPodMetricReplicas``); ``count`` in the spec is not asked.
    """
    del count
    ratio = metric / (target * reported)
    if abs(1 - ratio) <= TOLERANCE + 1e-12:
        return reported
    return math.ceil(metric / target - 1e-12)


def resource_utilisation(busy: Sequence[float], target: float, count: int) -> int:
    """Return the count proposed for a mean utilisation of the ready pods (``GetResourceReplicas``)."""
    if not busy:
        return count
    ratio = sum(busy) / len(busy) / target
    if abs(1 - ratio) <= TOLERANCE:
        return count
    return math.ceil(ratio * len(busy) - 1e-12)


@dataclass
class Stabiliser:
    """The recommendations of the stabilisation window, and what follows from them.

    ``started_at`` and ``start``: at start-up the present count is a recommendation, too.
    """

    lowest: int
    highest: int
    window_s: float = DOWNSCALE_STABILISATION_S
    _recommended: deque[tuple[float, int]] = field(default_factory=deque)

    def remember(self, now_s: float, count: int) -> None:
        """Add a recommendation; those that no later answer can be, as a larger one is younger, are forgotten."""
        while self._recommended and self._recommended[-1][1] <= count:
            self._recommended.pop()
        self._recommended.append((now_s, count))

    def stabilised(self, now_s: float, current: int, proposal: int) -> int:
        """Return the count to go to: the largest recommendation of the window, at most max(2 × present, 4)."""
        self.remember(now_s, proposal)
        while self._recommended[0][0] < now_s - self.window_s:
            self._recommended.popleft()
        largest = self._recommended[0][1]
        return max(self.lowest, min(largest, self.highest, max(2 * current, 4)))


class HpaOnCpu:
    """HPA on the share of time in which consumers work, the nearest that a fluid has to CPU."""

    name = "hpa-cpu"
    every_s = SYNC_PERIOD_S
    reads_busy = True

    def __init__(self, scenario: Scenario, target: float, window_s: float = DOWNSCALE_STABILISATION_S) -> None:
        self._target, self._window_s = target, window_s
        self._stabiliser = Stabiliser(scenario.lowest, scenario.highest, window_s)
        self._stabiliser.remember(0.0, scenario.start)

    @property
    def tuning(self) -> str:
        """Target utilisation and stabilisation window."""
        return f"target {self._target:.0%}, stabilisation {self._window_s:.0f} s"

    def decide(self, observation: Observation) -> int | None:
        """Return the HPA's count for the utilisation observed."""
        if observation.second == 0.0 or observation.busy is None:
            return None
        proposal = resource_utilisation(observation.busy.tolist(), self._target, observation.ordered)
        return self._stabiliser.stabilised(observation.second, observation.ordered, proposal)


def hpa_grid(scenario: Scenario) -> Iterator[HpaOnCpu]:
    """Yield the settings that are tried for one scenario."""
    for target in CPU_TARGETS:
        for window_s in WINDOWS_S:
            yield HpaOnCpu(scenario, target, window_s)
