"""The cases that the report's tests look at."""

import math
from dataclasses import replace
from functools import cache

from planner.model.snapshot import GroupSnapshot, SeriesPoint
from planner.report.case import Case
from planner.simulation.transition import TRIALS
from tests import builders
from tests.builders import OBJECTIVE, World

SMALL_QUEUES = (*builders.queues(), *builders.queues("payments", each=3))
HOT = SMALL_QUEUES[2]
BOUND = OBJECTIVE.max_utilisation


def case(world: World) -> Case:
    """Return the world as the report sees it, with the builders' bound."""
    return Case(world.snapshot, world.outcomes, world.record, world.plan, BOUND)


def recent(points: int = 60) -> tuple[SeriesPoint, ...]:
    """Return ten minutes: a rebalance of 5 and 2 queues, later a gap, lag rising at the end."""
    lags = [100 + max(0, number - 40) ** 2 for number in range(points)]
    line = list(builders.series(lags, [100.0 + number for number in range(points)], [100.0] * points))
    line[10], line[11] = replace(line[10], moved=5), replace(line[11], moved=2)
    return (*line[:20], replace(line[29], is_gap=True, seconds=100.0), *line[30:])


@cache
def growing() -> World:
    """22 queues, 3 consumers, a hot queue with a backlog: the answer is 6."""
    return builders.decided(_small(52.0, 9000), trials=TRIALS)


def holding() -> World:
    """The same group with little load: 3 are right."""
    return builders.decided(_small(10.0, 90, capacity=125.0))


@cache
def shrinking() -> World:
    """22 queues, 6 consumers that have little to do: the answer is fewer."""
    return builders.decided(builders.snapshot(SMALL_QUEUES, builders.clients(6), capacity=120.0), trials=TRIALS)


def outdated() -> World:
    """Data too old for a decision."""
    return builders.decided(replace(_small(52.0, 9000), parts=builders.parts(500.0, 0.5)))


def nobody_there() -> World:
    """No queue, no consumer."""
    return builders.decided(builders.snapshot((), ()))


def unknown_capacity() -> World:
    """Nobody knows what one consumer can do."""
    return builders.decided(builders.snapshot(SMALL_QUEUES, capacity=None))


@cache
def hostile() -> World:
    """Every name in the data is an attack on a page that does not escape."""
    evil = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x00\x1b[2J\x9b1A\u202e\u2066\u2028"
    queues = builders.queues(f"T{evil}", (f"b{evil}", "broker-b"), 8)
    taken = builders.snapshot(
        queues,
        tuple(f"{name}{evil}" for name in "abc"),
        lags={queues[0]: 9000},
        capacity=45.0,
        group=f"g{evil}",
        cluster=f"c{evil}",
        strategy_source=f"s{evil}",
        problems=(f"p{evil}",),
        recent=recent(),
    )
    return builders.decided(taken, trials=TRIALS)


def large() -> World:
    """1000 queues, 100 consumers, 16 candidates, six hours of past."""
    topics = ("audit", "mail", "orders", "payments")
    queues = tuple(queue for topic in topics for queue in builders.queues(topic, each=125))
    rates = {queue: 2.0 + (number * 37 % 29) for number, queue in enumerate(queues)}
    wave = [9000 + 6000 * math.sin(number / 60) for number in range(360)]
    past = builders.series([400_000 + number for number in range(360)], wave, wave, every_s=60.0)
    taken = builders.snapshot(
        queues, builders.clients(100), rates=rates, lags=dict.fromkeys(queues, 300), capacity=330.0, recent=past
    )
    return builders.decided(taken, replace(OBJECTIVE, lowest=17, highest=250))


@cache
def crowded() -> World:
    """120 queues, 20 consumers: the answer is to start so many that a picture of all would be too large."""
    taken = builders.snapshot(builders.queues(each=60), builders.clients(20), capacity=60.0)
    return builders.decided(taken, replace(OBJECTIVE, lowest=30, highest=30), ("AVG",), trials=10)


def _small(hot_rate: float, hot_lag: int, capacity: float = 130.0) -> GroupSnapshot:
    return builders.snapshot(
        SMALL_QUEUES, rates={HOT: hot_rate}, lags={HOT: hot_lag}, capacity=capacity, recent=recent()
    )
