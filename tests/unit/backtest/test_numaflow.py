"""Numaflow's rule: counts of ``desiredReplicas`` of its release 1.8.3, steps, cool-downs and means of the lookback."""

import math

import numpy as np
import pytest

from planner.backtest.observation import Observation
from planner.backtest.policies.numaflow import Numaflow, NumaflowOptions, desired_replicas
from tests.backtest_builders import scenario


@pytest.mark.parametrize(
    ("pending", "rate", "target_s", "ready", "replicas", "expected"),
    [
        (0, 0, 20, 1, 1, 0),
        (100, 0, 20, 1, 3, 3),
        (100, 5, 20, 1, 1, 1),
        (1, 1000, 20, 1, 1, 1),
        (3, 0.5, 20, 1, 1, 1),
        (3, 0.01, 1, 5, 5, 3),
        (100_000, 0.001, 20, 1, 1, 100_000),
        # Half a replica more is one more: 4.5 and 2.5 s of the target each.
        (3000, 100, 20, 3, 3, 5),
        (5000, 100, 20, 1, 1, 3),
    ],
)
def test_one_reading_gives_the_replicas_of_numaflow(
    pending: int, rate: float, target_s: float, ready: int, replicas: int, expected: int
) -> None:
    assert desired_replicas(pending, rate, target_s=target_s, ready=ready, replicas=replicas) == expected


def counts(policy: Numaflow, start: int, pending: list[float], rate: float = 100.0) -> list[tuple[float, int]]:
    """Return each new count with its second, one reading of ``pending`` each 30 s; pods are ready at once."""
    count, changes = start, []
    for number, waiting in enumerate(pending):
        second = 30.0 * number
        consumed = np.array([rate * second])
        seen = Observation(
            second,
            np.array([waiting]),
            consumed + waiting,
            consumed,
            np.zeros(1, dtype=np.intp),
            count,
            count,
            None,
            None,
        )
        answer = policy.decide(seen)
        if answer is not None:
            count = answer
            changes.append((second, count))
    return changes


def test_it_goes_two_at_a_time_and_rests_for_90_seconds_behind_each_change() -> None:
    policy = Numaflow(scenario(queues=32, highest=32, start=2), NumaflowOptions())
    assert counts(policy, 2, [1_000_000.0] * 12) == [(30.0, 4), (120.0, 6), (210.0, 8), (300.0, 10)]


def test_means_of_two_minutes_decide_and_downwards_has_a_cooldown_of_its_own() -> None:
    # 2,000 pending at 100 a second are the target's 20 s for whatever count there is: nothing changes. Then nothing is
    # pending: the mean of 120 s falls to 1,600 at once, which is 0.8 of the count.
    options = NumaflowOptions(cooldown_up_s=30.0, cooldown_down_s=300.0, most_at_once=8)
    policy = Numaflow(scenario(queues=32, highest=32, start=10), options)
    assert counts(policy, 10, [2000.0] * 6 + [0.0] * 12) == [(180.0, 8), (480.0, 1)]


def test_limits_of_the_scenario_bound_it_and_nothing_ready_is_no_reading() -> None:
    policy = Numaflow(scenario(queues=4, highest=3, start=2, lowest=2), NumaflowOptions(most_at_once=8))
    assert counts(policy, 2, [1e6] * 3 + [0.0] * 30)[0] == (30.0, 3)
    quiet = Numaflow(scenario(queues=4, start=2), NumaflowOptions())
    nothing = np.zeros(1)
    for second in (0.0, 30.0):
        seen = Observation(second, nothing, nothing, nothing, np.zeros(1, dtype=np.intp), 0, 2, None, None)
        assert quiet.decide(seen) is None
    assert math.isinf(quiet._changed_at)
