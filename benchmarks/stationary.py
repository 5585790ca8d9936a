"""``python -m benchmarks.stationary``: loads that stay as they are for days: each change of count is one too many.

A group's load has one level for ten days, with the noise of single messages, or more; the rule of
``planner.backtest.policies.planner`` decides on it every ten minutes. See docs/backtest.md.
"""

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from planner.backtest.observation import Observation
from planner.backtest.policies.planner import Planner
from planner.backtest.scenario import Floats, Ints, Prices, Scenario
from planner.compiled import fastest_model
from planner.decision.weighing import UNCOMMITTED_S, WeighingSettings
from planner.model.queues import MessageQueue

QUEUES, CAPACITY, MOST = 16, 100.0, 8
DAY_MIN, KNOWN_DAYS, DAYS_EACH = 1440, 1, 10
EVERY_MIN = 10
MINUTE_S = 60.0
PRICES = Prices(0.25, 1.0)
"""A quarter of an hour of one consumer for a change, an hour for a minute in which a message is late."""

NOISES = (0.0, 0.05, 0.1, 0.2)
"""Standard deviation of the logarithm of a minute's load, beside the noise of single messages."""

LEVELS = (1.0, 6.0)
"""Loads between so many consumers' work, drawn evenly."""


@dataclass(frozen=True)
class Course:
    """What became of one group: its load in consumers, the count from each decision on, and costs in consumer-hours.

    ``fixed_h`` is what the cheapest count would have cost that stays for all days; ``None`` where ours stayed, too.
    """

    noise: float
    load: float
    counts: Sequence[int]
    late_minutes: int
    fixed_h: float | None

    @property
    def changes(self) -> int:
        """How often the count changed, once it had found its own within the first hour."""
        return changes(self.counts[60 // EVERY_MIN :])

    @property
    def cost_h(self) -> float:
        """What its consumers, its changes and its late minutes cost."""
        hours = sum(self.counts) * EVERY_MIN / 60
        return hours + PRICES.rebalance_h * changes(self.counts) + PRICES.late_minute_h * self.late_minutes

    @property
    def pays(self) -> bool:
        """Whether its changes brought at least what they cost: no count that stays would have been cheaper."""
        return self.fixed_h is None or self.cost_h <= self.fixed_h


def changes(counts: Sequence[int]) -> int:
    """Return how often a count is another than the one before it."""
    return len(list(groupby(counts))) - 1


def main() -> None:
    """Print changes and late minutes by noise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stationary", description=__doc__)
    parser.add_argument("--days", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sampled", action="store_true", help="know each minute, as beside planner sample")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + math.ceil(options.days / DAYS_EACH))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        courses = []
        played = pool.map(partial(course_of, is_sampled=options.sampled), seeds)
        for done, course in enumerate(played, start=1):
            courses.append(course)
            if done % 50 == 0:
                print("\n".join([f"{done * DAYS_EACH} days", *table(courses)]), flush=True)
    print("\n".join(table(courses)))


def table(courses: Sequence[Course]) -> Iterator[str]:
    """Yield one line for each noise."""
    yield "| a minute's noise | days | groups | of them changed | changes a day of those | of those, paying |"
    yield "|---|---|---|---|---|---|"
    for noise in NOISES:
        its = [course for course in courses if course.noise == noise]
        moved = [course for course in its if course.changes]
        days = len(moved) * DAYS_EACH
        each_day = f"{sum(course.changes for course in moved) / days:.1f}" if moved else "–"
        paying = sum(course.pays for course in moved)
        yield f"| {noise:.0%} | {len(its) * DAYS_EACH} | {len(its)} | {len(moved)} | {each_day} | {paying} |"
        for course in moved:
            if not course.pays:
                told = f"{course.changes} changes, {course.late_minutes} late minutes"
                yield f"  load {course.load:.2f}: {told}, {course.cost_h:.0f} h for {course.fixed_h:.0f} h"


def course_of(seed: int, days: int = DAYS_EACH, *, is_sampled: bool = False) -> Course:
    """Return what the rule does in so many days of one group, after one that it knows; ``decided`` has the rest."""
    random = np.random.default_rng(seed)
    noise, load = NOISES[seed % len(NOISES)], float(random.uniform(*LEVELS))
    messages = messages_of(random, np.full((KNOWN_DAYS + days) * DAY_MIN, load), noise)
    counts, late = decided(messages, math.ceil(load / 0.9), seed, is_sampled=is_sampled)
    stays = changes(counts[60 // EVERY_MIN :]) == 0
    return Course(noise, load, counts, late, None if stays else cheapest_fixed_h(messages, load))


def cheapest_fixed_h(messages: Floats, load: float) -> float:
    """Return what the cheapest count costs that stays from the first day's end on."""
    hours = (len(messages) / DAY_MIN - KNOWN_DAYS) * 24
    counts = range(math.floor(load), MOST + 1)
    return min(count * hours + PRICES.late_minute_h * late_minutes(messages, count) for count in counts if count)


def late_minutes(messages: Floats, count: int) -> int:
    """Return the minutes in which a queue's oldest message waited over 60 s, with so many consumers all the time."""
    group, late = Group(), 0
    for came in messages[KNOWN_DAYS * DAY_MIN :]:
        late += group.pass_minute(came, count)
    return late


def messages_of(random: np.random.Generator, loads: Floats, noise: float) -> Floats:
    """Return each minute's messages of each queue for its load in consumers, one row a minute."""
    means = loads * CAPACITY * MINUTE_S * np.exp(random.normal(-(noise**2) / 2, noise, len(loads)))
    return random.poisson(np.repeat(means[:, None] / QUEUES, QUEUES, axis=1)).astype(float)


def _scenario(messages: Floats, seed: int, start: int) -> Scenario:
    return Scenario(
        queues=tuple(MessageQueue("t", "broker-a", queue) for queue in range(QUEUES)),
        messages=messages,
        interval_s=MINUTE_S,
        history_s=KNOWN_DAYS * DAY_MIN * MINUTE_S,
        system="rocketmq",
        strategy="AVG",
        capacity=CAPACITY,
        pod_start_s=30.0,
        lowest=1,
        highest=MOST,
        start=start,
        late_after_s=60.0,
        prices=PRICES,
        every_s=EVERY_MIN * MINUTE_S,
        seed=seed,
    )


class Group:
    """A group whose consumers take from all of their queues what waits. A change of count costs no time here."""

    def __init__(self) -> None:
        self.waiting = self.arrived = self.consumed = np.zeros(QUEUES)

    def pass_minute(self, came: Floats, count: int) -> bool:
        """Let a minute's messages come; return whether what then waits for a consumer is more than a minute's work."""
        owners, minute = _owners(count), CAPACITY * MINUTE_S
        waiting = self.waiting + came
        loads = np.bincount(owners, weights=waiting, minlength=count)
        done = waiting * (np.minimum(loads, minute) / np.maximum(loads, 1e-9))[owners]
        self.waiting = waiting - done
        self.arrived, self.consumed = self.arrived + came, self.consumed + done
        return bool((loads > 2 * minute).any())

    def seen(self, second: float, uncommitted: Floats, count: int) -> Observation:
        """Return what the brokers show."""
        lag = self.waiting + uncommitted
        return Observation(second, lag, self.arrived, self.consumed, _owners(count), count, count, None, None)


def decided(messages: Floats, count: int, seed: int, *, is_sampled: bool = False) -> tuple[list[int], int]:
    """Return the count from each decision on, and the minutes in which a consumer's oldest message waited over 60 s.

    The first day of ``messages`` is known beforehand; ``count`` consumers run at its end. With ``is_sampled`` each
    minute of the load is known at a decision, else the mean since the last one.
    """
    settings = WeighingSettings(model=fastest_model())
    planner, group = Planner(_scenario(messages, seed, count), settings), Group()
    known, counts, late = KNOWN_DAYS * DAY_MIN, [], 0
    for minute in range(known, len(messages)):
        is_due = minute % EVERY_MIN == 0
        if is_due or is_sampled:
            uncommitted = messages[minute - 1] / MINUTE_S * UNCOMMITTED_S
            seen = group.seen((minute - known) * MINUTE_S, uncommitted, count)
            if is_due:
                count = planner.decide(seen) or count
                counts.append(count)
            else:
                planner.learn(seen)
        late += group.pass_minute(messages[minute], count)
    return counts, late


def _owners(count: int) -> Ints:
    """Return the rank of each queue's consumer under ``AVG``: the first ones have one queue more."""
    each, more = divmod(QUEUES, count)
    return np.repeat(np.arange(count), [each + (rank < more) for rank in range(count)])


if __name__ == "__main__":
    main()
