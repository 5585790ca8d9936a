"""Druid's cost-based autoscaler, with a consumer for each of its tasks: lag to work off against idle tasks.

Source: ``CostBasedAutoScaler``, ``WeightedCostFunction`` and ``CostBasedAutoScalerConfig`` of the package
``org.apache.druid.indexing.seekablestream.supervisor.autoscaler``, Druid 37.0.0. The rule differs from release to
release: earlier ones weighed the idle time of a task's whole duration, later ones have other weights and delays.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

from planner.backtest.observation import Observation
from planner.backtest.scenario import Scenario

MOST_FEWER_A_TASK: Final = 2
MOST_MORE_A_TASK: Final = 4
"""How many partitions fewer (more tasks) and more (fewer tasks) each task may get at once, where steps are bounded."""
PARTITION_DIVISOR: Final = 6.4
LAG_AMPLIFICATION: Final = 0.05
LEAST_RATE: Final = 1000.0
"""Messages per second and task that the rule reckons with at the least."""
UNKNOWN_IDLE: Final = 0.5
STANDSTILL_RATE, STANDSTILL_LAG = 1.0, 10_000.0
"""Below this rate with more lag than this in each partition the metrics are taken for wrong."""
RATE_AVERAGE_S: Final = 900.0

IDLE_WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01)
PERIODS_S = ((600.0, 1800.0), (300.0, 900.0), (120.0, 900.0), (120.0, 300.0))


@dataclass(frozen=True, slots=True)
class DruidOptions:
    """Fields of the configuration with Druid's defaults; spans in seconds, ``high_lag`` in messages a partition."""

    lag_weight: float = 0.25
    idle_weight: float = 0.75
    period_s: float = 600.0
    delay_s: float = 1800.0
    bounded: bool = False
    high_lag: int = -1

    @property
    def tuning(self) -> str:
        """The settings, for people."""
        steps = f"bounded steps, highLagThreshold {self.high_lag}" if self.bounded else "steps of any size"
        return (
            f"lagWeight {self.lag_weight:g}, idleWeight {self.idle_weight:g}, period {self.period_s:g} s, "
            f"minScaleDownDelay {self.delay_s:g} s, {steps}"
        )


class Metrics(NamedTuple):
    """What the rule knows: lag of all partitions, tasks, the share of time in which they idle, messages/s of each.

    ``idle`` below 0 is unknown.
    """

    lag: float
    partitions: int
    tasks: int
    idle: float
    rate: float


def task_counts(metrics: Metrics, options: DruidOptions, lowest: int, highest: int) -> list[int]:
    """Return the counts that are compared, from few to many: one for each whole number of partitions a task."""
    partitions = metrics.partitions
    a_task = partitions // metrics.tasks
    fewest, most = 1, partitions
    if options.bounded:
        most = min(partitions, a_task + MOST_MORE_A_TASK)
        more = _further_steps(metrics, options.high_lag, highest) if options.high_lag > 0 else 0
        fewest = max(1, a_task - MOST_FEWER_A_TASK - more)
    counts = (-(-partitions // each) for each in range(most, fewest - 1, -1))
    return list(dict.fromkeys(count for count in counts if lowest <= count <= highest))


def _further_steps(metrics: Metrics, high_lag: float, highest: int) -> int:
    """Return by how many partitions a task a high lag widens the bound of a growing group."""
    partitions, tasks = metrics.partitions, metrics.tasks
    lag = metrics.lag / partitions
    if lag < high_lag:
        return 0
    further = partitions / PARTITION_DIVISOR / math.sqrt(tasks) * math.log(lag / high_lag)
    return max(0, math.floor(partitions / tasks - partitions / min(float(highest), tasks + further)))


def count_cost(metrics: Metrics, tasks: int, options: DruidOptions) -> float:
    """Return the weighted seconds that the lag takes and tasks that idle, for so many tasks."""
    recovery = 0.0
    if metrics.lag > 0:
        amplified = max(1.0, 1.0 + LAG_AMPLIFICATION * math.log(metrics.lag / metrics.partitions))
        recovery = metrics.lag * amplified / (tasks * max(metrics.rate, LEAST_RATE))
    return options.lag_weight * recovery + options.idle_weight * tasks * _idle_share(metrics, tasks)


def _idle_share(metrics: Metrics, tasks: int) -> float:
    if metrics.idle < 0:
        return UNKNOWN_IDLE
    if tasks == metrics.tasks:
        return metrics.idle
    return max(0.0, min(1.0, 1.0 - (1.0 - metrics.idle) * metrics.tasks / tasks))


def cheapest_count(metrics: Metrics, options: DruidOptions, counts: Sequence[int]) -> int:
    """Return the first count that costs least; the present one where none costs less than it."""
    best, least = metrics.tasks, count_cost(metrics, metrics.tasks, options)
    for count in counts:
        cost = count_cost(metrics, count, options)
        if cost < least:
            best, least = count, cost
    return best


class Druid:
    """One supervisor: compares costs each period, and rests for the delay behind each change."""

    name = "druid"
    reads_busy = True

    def __init__(self, scenario: Scenario, options: DruidOptions) -> None:
        self._options = options
        self._lowest, self._highest = scenario.lowest, scenario.highest
        self._partitions = len(scenario.queues)
        self._before: tuple[float, float] | None = None
        self._rate: float | None = None
        self._changed_at = -math.inf

    @property
    def every_s(self) -> float:
        """The period."""
        return self._options.period_s

    @property
    def tuning(self) -> str:
        """The settings."""
        return self._options.tuning

    def decide(self, observation: Observation) -> int | None:
        """Return the cheapest count once the delay has passed, ``None`` without metrics or where it is the present."""
        self._average_rate(observation)
        busy = observation.busy
        if self._rate is None or busy is None or not len(busy):
            return None
        metrics = Metrics(
            observation.total_lag, self._partitions, observation.ordered, 1.0 - float(busy.mean()), self._rate
        )
        if metrics.rate < STANDSTILL_RATE and metrics.lag / metrics.partitions > STANDSTILL_LAG:
            return None
        if observation.second - self._changed_at < self._options.delay_s:
            return None
        count = cheapest_count(metrics, self._options, task_counts(metrics, self._options, self._lowest, self._highest))
        if count == observation.ordered:
            return None
        self._changed_at = observation.second
        return count

    def _average_rate(self, observation: Observation) -> None:
        """Bring up to date the moving average of 15 minutes of what each task processes a second."""
        now, consumed = observation.second, float(observation.consumed.sum())
        if self._before is not None and observation.running:
            span = now - self._before[0]
            rate = (consumed - self._before[1]) / span / observation.running
            kept = math.exp(-span / RATE_AVERAGE_S)
            self._rate = rate if self._rate is None else kept * self._rate + (1.0 - kept) * rate
        self._before = (now, consumed)


def druid_grid(scenario: Scenario) -> Iterator[Druid]:
    """Yield the defaults and the tuned settings that are tried for one scenario.

    The weight of the lag makes up for a consumer that does less than the least rate.
    """
    yield Druid(scenario, DruidOptions())
    lag_weight = max(1.0, LEAST_RATE / scenario.capacity)
    for idle_weight, (period_s, delay_s), bounded in product(IDLE_WEIGHTS, PERIODS_S, (False, True)):
        high_lag = max(1, round(10 * scenario.capacity)) if bounded else -1
        yield Druid(scenario, DruidOptions(lag_weight, idle_weight, period_s, delay_s, bounded, high_lag))
