"""Flink's autoscaler, with the group as its only vertex: one source without anything downstream.

Source: ``flink-autoscaler`` of ``apache/flink-kubernetes-operator`` 1.15 (``ScalingMetrics``,
``ScalingMetricEvaluator``, ``JobVertexScaler``, ``DelayedScaleDown``), alignment ``BALANCED`` as in 1.16.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from planner.backtest.observation import Observation
from planner.backtest.scenario import Scenario

PERIOD_S = 60.0
BACKLOG_LAG_S = 300.0
OBSERVED_LAG_S = 30.0
OBSERVED_SWITCH = 0.15
LEAST_OBSERVED = 2


@dataclass(frozen=True, slots=True)
class FlinkOptions:
    """Options of the autoscaler by their own names (``AutoScalerOptions``), with its defaults; spans in seconds."""

    utilisation_target: float = 0.7
    utilisation_boundary: float = 0.3
    window_s: float = 900.0
    stabilisation_s: float = 300.0
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    scale_down_interval_s: float = 3600.0
    max_scale_down: float = 0.6
    max_scale_up: float = 100_000.0

    @property
    def tuning(self) -> str:
        """The settings that a tuning changes, for people."""
        return (
            f"utilisation {self.utilisation_target:g} ± {self.utilisation_boundary:g}, window {self.window_s:.0f} s, "
            f"stabilisation {self.stabilisation_s:.0f} s, catch-up {self.catch_up_s:.0f} s, restart "
            f"{self.restart_s:.0f} s, scale-down interval {self.scale_down_interval_s:.0f} s"
        )


class Rates(NamedTuple):
    """Means over one window: input and lag trend in messages/s, the lag now, and busy milliseconds a second."""

    input: float
    lag_trend: float
    lag: float
    busy_ms: float

    @property
    def target(self) -> float:
        """The arrival rate."""
        return max(0.0, self.input + self.lag_trend)


class Evaluation(NamedTuple):
    """What follows from one window: needed and true capacity, wished count, and whether a bound is crossed."""

    true_rate: float
    needed: float
    factor: float
    wished: int
    scale_up_below: float
    scale_down_above: float

    @property
    def is_outside(self) -> bool:
        """Whether the true rate is outside its bounds."""
        return self.true_rate < self.scale_up_below or self.true_rate > self.scale_down_above


def needed_capacity(rates: Rates, options: FlinkOptions, utilisation: float, *, with_restart: bool) -> float:
    """Return the rate that the group must manage at a utilisation; infinite at a utilisation of 0."""
    if utilisation <= 0:
        return math.inf
    catch_up = rates.lag / options.catch_up_s if options.catch_up_s else 0.0
    restart = rates.target * options.restart_s / options.catch_up_s if with_restart and options.catch_up_s else 0.0
    return round(catch_up + restart + rates.target / utilisation)


def true_rate(rates: Rates, observed: float | None) -> float:
    """Return what the group could work off if it never waited; ``observed`` was measured while it lagged."""
    by_busy = rates.input / (rates.busy_ms / 1000) if rates.busy_ms > 0 else math.inf
    if observed is not None and (math.isinf(by_busy) or by_busy > observed * (1 + OBSERVED_SWITCH)):
        return observed
    return by_busy


def evaluate(rates: Rates, options: FlinkOptions, count: int, capacity: float) -> Evaluation:
    """Return what the window means for ``count`` consumers that can work off ``capacity`` messages a second."""
    is_behind = rates.lag > BACKLOG_LAG_S * rates.input if rates.input > 0 else rates.lag > 0
    upper = 1.0 if is_behind else min(1.0, options.utilisation_target + options.utilisation_boundary)
    lower = 0.0 if is_behind else max(0.0, options.utilisation_target - options.utilisation_boundary)
    needed = needed_capacity(rates, options, options.utilisation_target, with_restart=True)
    factor = needed / capacity if capacity > 0 else math.inf
    limited = min(max(factor, 1 - options.max_scale_down), 1 + options.max_scale_up)
    return Evaluation(
        true_rate=capacity,
        needed=needed,
        factor=limited,
        wished=math.ceil(limited * count - 1e-9),
        scale_up_below=needed_capacity(rates, options, upper, with_restart=False),
        scale_down_above=needed_capacity(rates, options, lower, with_restart=True),
    )


def align(wished: int, count: int, queues: int, *, is_balanced: bool = True, highest: int | None = None) -> int:
    """Return the wished count raised to one that spreads ``queues`` better; the wished one where none is found.

    Upwards from the wished count, to the queues when growing, to the present count when shrinking: the first that
    divides the queues or (``is_balanced``, mode ``BALANCED``) leaves each consumer fewer whole queues.
    """
    last = min(queues, highest if highest is not None else queues) if wished > count else count
    for candidate in range(wished, last + 1):
        if queues % candidate == 0 or (is_balanced and queues // candidate < queues // wished):
            return candidate
    return wished


class Flink:
    """The autoscaler's loop, once a minute."""

    name = "flink"
    every_s = PERIOD_S
    reads_busy = True

    def __init__(self, scenario: Scenario, options: FlinkOptions) -> None:
        self._options = options
        self._lowest, self._highest = scenario.lowest, min(scenario.highest, scenario.largest_topic)
        self._queues = scenario.largest_topic
        self._samples: deque[tuple[float, float, float, float]] = deque()
        self._observed: deque[tuple[float, float]] = deque()
        self._running_since: float | None = 0.0
        self._wishes: list[tuple[float, int, bool]] = []

    @property
    def tuning(self) -> str:
        """The settings."""
        return self._options.tuning

    def decide(self, observation: Observation) -> int | None:
        """Return a new count once a full window after the last change is there and its bounds are crossed."""
        rates = self._collect(observation)
        if rates is None:
            return None
        observed = self._observe_rate(observation.second, rates)
        capacity = true_rate(rates, observed)
        if math.isinf(capacity):
            return None
        count = self._evaluated(observation, evaluate(rates, self._options, observation.ordered, capacity))
        if count is not None:
            self._running_since = None
            self._samples.clear()
            self._observed.clear()
            self._wishes.clear()
        return count

    def _collect(self, observation: Observation) -> Rates | None:
        """Return the window's rates once stabilisation and a full window have passed, ``None`` before."""
        now = observation.second
        if self._running_since is None:
            if observation.running != observation.ordered:
                return None
            self._running_since = now
        if now < self._running_since + self._options.stabilisation_s or observation.busy is None:
            return None
        busiest = 1000 * float(observation.busy.max()) if len(observation.busy) else 0.0
        consumed, arrived = float(observation.consumed.sum()), float(observation.arrived.sum())
        self._samples.append((now, consumed, arrived - consumed, busiest))
        if now - self._samples[0][0] < self._options.window_s:
            return None
        while self._samples[1][0] <= now - self._options.window_s:
            self._samples.popleft()
        first, last = self._samples[0], self._samples[-1]
        span = last[0] - first[0]
        busy = sum(sample[3] for sample in self._samples) / len(self._samples)
        return Rates((last[1] - first[1]) / span, (last[2] - first[2]) / span, last[2], busy)

    def _observe_rate(self, now: float, rates: Rates) -> float | None:
        """Return the mean rate while the group lagged by half a minute or more, with two samples at the least."""
        if rates.lag >= OBSERVED_LAG_S * rates.input and rates.lag > 0:
            self._observed.append((now, rates.input))
        while self._observed and self._observed[0][0] < now - self._options.window_s:
            self._observed.popleft()
        if len(self._observed) < LEAST_OBSERVED:
            return None
        return sum(rate for _, rate in self._observed) / len(self._observed)

    def _evaluated(self, observation: Observation, evaluation: Evaluation) -> int | None:
        count = observation.ordered
        wished = self._limited(evaluation.wished, count)
        if wished == count:
            self._wishes.clear()
            return None
        wished = align(wished, count, self._queues, highest=self._highest)
        if wished == count:
            self._wishes.clear()
            return None
        if wished > count:
            self._wishes.clear()
            return wished if evaluation.is_outside else None
        return self._delayed(observation.second, wished, is_outside=evaluation.is_outside)

    def _limited(self, wished: int, count: int) -> int:
        return max(min(count, self._lowest), min(wished, self._highest, max(count, self._highest)))

    def _delayed(self, now: float, wished: int, *, is_outside: bool) -> int | None:
        """Return the largest count wished for within the interval, once the first wish is that old."""
        self._wishes.append((now, wished, is_outside))
        if now - self._wishes[0][0] < self._options.scale_down_interval_s:
            return None
        recent = [wish for wish in self._wishes if wish[0] >= now - self._options.scale_down_interval_s]
        _, largest, was_outside = max(recent, key=lambda wish: wish[1])
        return largest if was_outside else None


def flink_grid(scenario: Scenario) -> Iterator[Flink]:
    """Yield the defaults and the tuned settings that are tried for one scenario."""
    yield Flink(scenario, FlinkOptions())
    restart_s = scenario.pod_start_s + 5.0
    for target, boundary, interval_s, catch_up_s in product(
        (0.7, 0.8, 0.9, 0.95), (0.05, 0.1, 0.3), (300.0, 900.0, 3600.0), (300.0, 1800.0)
    ):
        options = FlinkOptions(target, boundary, 120.0, 60.0, catch_up_s, restart_s, interval_s)
        yield Flink(scenario, options)
