"""Numaflow's autoscaler of a MonoVertex: as many replicas as work off what is pending in a target time.

Source: ``pkg/reconciler/monovertex/scaling/scaling.go`` (``scaleOneMonoVertex``, ``desiredReplicas``) and
``pkg/apis/numaflow/v1alpha1/const.go``, Numaflow 1.8.3. Its scaling to zero does not occur here: a backtest has at
least one consumer.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from planner.backtest.observation import Observation
from planner.backtest.scenario import Scenario

PERIOD_S = 30.0
TARGETS_S = (3.0, 5.0, 10.0, 20.0, 40.0)
LOOKBACKS_S = (60.0, 120.0)
STEPS = (2, 8)
COOLDOWNS_S = ((90.0, 90.0), (30.0, 1200.0), (90.0, 3600.0), (90.0, 7200.0))


@dataclass(frozen=True, slots=True)
class NumaflowOptions:
    """Fields of ``scale`` with Numaflow's defaults; spans in seconds."""

    target_s: float = 20.0
    lookback_s: float = 120.0
    most_at_once: int = 2
    cooldown_up_s: float = 90.0
    cooldown_down_s: float = 90.0

    @property
    def tuning(self) -> str:
        """The settings, for people."""
        return (
            f"targetProcessingSeconds {self.target_s:g}, lookbackSeconds {self.lookback_s:g}, replicasPerScale "
            f"{self.most_at_once}, cooldown {self.cooldown_up_s:g} s up, {self.cooldown_down_s:g} s down"
        )


def desired_replicas(pending: int, rate: float, *, target_s: float, ready: int, replicas: int) -> int:
    """Return the count at which ``pending`` messages take ``target_s`` seconds at the rate of each ready replica.

    ``rate`` in messages per second of all ``ready`` replicas. 0 where nothing is pending and none processed, the
    present ``replicas`` where none is processed, else at least 1 and at most one for each pending message.
    """
    if rate == 0:
        return replicas if pending else 0
    desired = max(1, math.floor(pending / rate / target_s * ready + 0.5))
    return min(desired, pending) if pending else desired


class Numaflow:
    """One scaled vertex: means of the lookback, then a step of a few replicas with a cool-down behind it."""

    name = "numaflow"
    every_s = PERIOD_S
    reads_busy = False

    def __init__(self, scenario: Scenario, options: NumaflowOptions) -> None:
        self._options = options
        self._lowest, self._highest = scenario.lowest, scenario.highest
        self._samples: deque[tuple[float, float, float]] = deque()
        self._changed_at = -math.inf

    @property
    def tuning(self) -> str:
        """The settings."""
        return self._options.tuning

    def decide(self, observation: Observation) -> int | None:
        """Return the next step's count, ``None`` while it is cooling down, nothing is ready or no rate is known."""
        means = self._means(observation)
        if means is None or observation.running == 0:
            return None
        rate, pending = means
        current = observation.ordered
        desired = desired_replicas(
            round(pending), rate, target_s=self._options.target_s, ready=observation.running, replicas=current
        )
        return self._step(observation.second, current, min(max(desired, self._lowest), self._highest))

    def _means(self, observation: Observation) -> tuple[float, float] | None:
        """Return the processed messages per second and the mean of what was pending, over the lookback."""
        now = observation.second
        self._samples.append((now, float(observation.consumed.sum()), observation.total_lag))
        while self._samples[0][0] < now - self._options.lookback_s:
            self._samples.popleft()
        first, last = self._samples[0], self._samples[-1]
        if last[0] == first[0]:
            return None
        pending = sum(sample[2] for sample in self._samples) / len(self._samples)
        return (last[1] - first[1]) / (last[0] - first[0]), pending

    def _step(self, now: float, current: int, desired: int) -> int | None:
        if desired == current:
            return None
        cooldown_s = self._options.cooldown_up_s if desired > current else self._options.cooldown_down_s
        if now - self._changed_at < cooldown_s:
            return None
        self._changed_at = now
        most = self._options.most_at_once
        return current + max(-most, min(desired - current, most))


def numaflow_grid(scenario: Scenario) -> Iterator[Numaflow]:
    """Yield the settings that are tried for one scenario, its defaults among them."""
    for target_s, lookback_s, step, (up_s, down_s) in product(TARGETS_S, LOOKBACKS_S, STEPS, COOLDOWNS_S):
        yield Numaflow(scenario, NumaflowOptions(target_s, lookback_s, step, up_s, down_s))
