"""KEDA's Kafka lag scaler with the HPA that it drives.

Source: ``pkg/scalers/kafka_scaler.go`` (``getTotalLag``, ``getNextFactorThatBalancesConsumersToTopicPartitions``), KEDA
2.20. KEDA's own loop switches between zero and one only, and a backtest has at least one consumer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.backtest.observation import Observation
from planner.backtest.policies.hpa import (
    DOWNSCALE_STABILISATION_S,
    SYNC_PERIOD_S,
    WINDOWS_S,
    Stabiliser,
    external_average,
)
from planner.backtest.scenario import Scenario

DEFAULT_LAG_THRESHOLD = 10.0
THRESHOLDS_S = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0)
"""Lag thresholds that are tried, in seconds of one consumer's work."""


@dataclass(frozen=True, slots=True)
class ScalerOptions:
    """Options of the scaler, with KEDA's defaults."""

    lag_threshold: float = DEFAULT_LAG_THRESHOLD
    allow_idle_consumers: bool = False
    even_distribution: bool = False
    limit_to_lagging: bool = False


def scaler_metric(lags: Sequence[float], options: ScalerOptions) -> float:
    """Return the lag that the scaler reports for the lags of all partitions, which is their sum or what caps it.

    The cap compares whole numbers: a lag between ``P × T`` and ``(P + 1) × T`` passes.
    """
    threshold, total = options.lag_threshold, sum(lags)
    if options.allow_idle_consumers and not (options.even_distribution or options.limit_to_lagging):
        return total
    most = len(lags)
    if options.even_distribution:
        total = _next_divisor(most, total / threshold) * threshold
    if options.limit_to_lagging:
        most = sum(lag > 0 for lag in lags)
    return most * threshold if total // threshold > most else total


def _next_divisor(partitions: int, least: float) -> int:
    """Return the smallest divisor of the partition count that is not below ``least``, the count itself if none is."""
    divisors = (divisor for divisor in range(1, partitions + 1) if partitions % divisor == 0 and divisor >= least)
    return next(divisors, partitions)


class Keda:
    """One scaled group: KEDA's metric, then the HPA's loop every 15 s."""

    name = "keda"
    every_s = SYNC_PERIOD_S
    reads_busy = False

    def __init__(self, scenario: Scenario, options: ScalerOptions, window_s: float = DOWNSCALE_STABILISATION_S) -> None:
        self._options, self._window_s = options, window_s
        self._stabiliser = Stabiliser(scenario.lowest, scenario.highest, window_s)
        self._stabiliser.remember(0.0, scenario.start)
        self._queues = len(scenario.queues)

    @property
    def tuning(self) -> str:
        """Threshold and stabilisation window."""
        return f"lagThreshold {self._options.lag_threshold:g}, stabilisation {self._window_s:.0f} s"

    def decide(self, observation: Observation) -> int | None:
        """Return the HPA's count; the first sync is 15 s after the start."""
        if observation.second == 0.0:
            return None
        metric = self._metric(observation)
        # The Deployment's status counts its pods, ready or not, within a second of the order.
        count = observation.ordered
        proposal = external_average(metric, self._options.lag_threshold, count, count)
        return self._stabiliser.stabilised(observation.second, count, proposal)

    def _metric(self, observation: Observation) -> float:
        options = self._options
        if options.even_distribution or options.limit_to_lagging or options.allow_idle_consumers:
            return scaler_metric(observation.lag.tolist(), options)
        total = observation.total_lag
        return min(total, self._queues * options.lag_threshold) if self._is_capped(total) else total

    def _is_capped(self, total: float) -> bool:
        return total // self._options.lag_threshold > self._queues


def keda_grid(scenario: Scenario) -> Iterator[Keda]:
    """Yield the settings that are tried for one scenario."""
    for seconds in THRESHOLDS_S:
        for window_s in WINDOWS_S:
            yield Keda(scenario, ScalerOptions(max(seconds * scenario.capacity, 1e-6)), window_s)
