"""The simulated group: who is paid when, what waits, what a rebalance repeats."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from planner.allocation.strategy import NOBODY
from planner.backtest.observation import Observation
from planner.backtest.owners import GroupOwners, busiest_share, strategy_names
from planner.backtest.play import Run, play
from planner.backtest.policies.fixed import Fixed
from planner.backtest.scenario import Scenario
from planner.backtest.simulated_group import SimulatedGroup
from tests.backtest_builders import scenario


class Script:
    """Orders counts at given seconds and keeps what it observed."""

    name, tuning, every_s, reads_busy = "script", "", 5.0, True

    def __init__(self, *orders: tuple[float, int]) -> None:
        self._orders = dict(orders)
        self.observed: list[Observation] = []

    def decide(self, observation: Observation) -> int | None:
        self.observed.append(observation)
        return self._orders.get(observation.second)


def run(group: Scenario, *orders: tuple[float, int]) -> tuple[Run, Sequence[Observation]]:
    policy = Script(*orders)
    return play(group, [policy])[0], policy.observed


def test_a_pod_is_paid_from_the_second_at_which_it_is_ready() -> None:
    result, observed = run(scenario(rates=[100.0] * 10), (60.0, 4), (120.0, 2))
    # Two for ten minutes, two more from 90 s (ordered at 60, ready 30 s later) to 120 s.
    assert result.totals.seconds == 2 * 600 + 2 * 30
    assert result.totals.rebalances == 2
    assert [o.running for o in observed if o.second in (85.0, 95.0, 125.0)] == [2, 4, 2]


def test_pods_that_are_cancelled_before_they_are_ready_cost_nothing() -> None:
    result, _ = run(scenario(rates=[100.0] * 10), (60.0, 4), (75.0, 2))
    assert (result.totals.seconds, result.totals.rebalances) == (1200, 0)


def test_overload_waits_as_long_as_the_backlog_lasts_at_the_pace_at_which_it_came() -> None:
    # 200 a second for two minutes on one consumer of 100: behind them 12,000 wait, the oldest for 60 s.
    group = scenario(rates=[200.0, 200.0, 0.0, 0.0, 0.0], start=1, late_after_s=55)
    result, observed = run(group)
    at_120 = next(o for o in observed if o.second == 120)
    assert at_120.arrived.sum() - at_120.consumed.sum() == pytest.approx(12_000)
    assert result.totals.worst_wait_s == pytest.approx(120, abs=5)
    assert result.totals.late_minutes == 3


def test_lag_is_counted_to_the_last_commit_and_not_to_what_was_consumed() -> None:
    _, observed = run(scenario(rates=[200.0] * 30, start=4))
    lags = [o.total_lag for o in observed[1:]]
    assert np.mean(lags) == pytest.approx(200 * 2.5, rel=0.15)
    assert all(o.consumed.sum() == pytest.approx(o.arrived.sum()) for o in observed)


def test_moved_queues_repeat_what_was_not_committed() -> None:
    result, _ = run(scenario(rates=[300.0] * 10, start=4), (120.0, 3))
    assert 1 <= result.totals.moved <= 4
    assert 0 < result.totals.duplicates <= result.totals.moved * 75 * 5


def test_a_saturated_consumer_is_busy_all_the_time() -> None:
    _, observed = run(scenario(rates=[400.0] * 10, start=2))
    assert observed[50].busy is not None
    assert observed[50].busy.tolist() == pytest.approx([1.0, 1.0])


def test_the_same_seed_gives_the_same_run_and_others_beside_it_change_nothing() -> None:
    orders = ((60.0, 4), (300.0, 1))
    alone, _ = run(scenario(), *orders)
    together = play(scenario(), [Fixed(3), Script(*orders)])[1]
    assert (alone.totals, alone.changes) == (together.totals, together.changes)
    assert run(scenario(seed=2), *orders)[0].totals.duplicates != alone.totals.duplicates


def test_queues_that_nobody_owns_wait_for_ever() -> None:
    owners = np.array([0, NOBODY, NOBODY, 1])
    assert busiest_share(owners, np.full(4, 0.25), 2) == 0.5


@pytest.mark.parametrize(
    ("system", "strategy"), [(s, name) for s in ("rocketmq", "kafka") for name in strategy_names(s)]
)
def test_every_strategy_that_is_offered_gives_each_queue_an_owner(system: str, strategy: str) -> None:
    group = scenario(queues=6, system=system, strategy=strategy)
    owners = GroupOwners(group)
    assert set(owners.of_count(3).tolist()) <= {0, 1, 2}
    result, _ = run(group, (60.0, 3), (180.0, 1), (300.0, 6))
    assert result.totals.rebalances == 3
    assert result.totals.worst_wait_s < 60


def test_sticky_members_keep_what_they_own() -> None:
    moved = {name: _moved(name) for name in ("sticky", "roundrobin")}
    assert moved["sticky"] <= moved["roundrobin"]
    assert moved["sticky"] == 4  # of 12, a third member takes a third


def _moved(strategy: str) -> int:
    return run(scenario(queues=12, system="kafka", strategy=strategy), (60.0, 3))[0].totals.moved


def test_the_simulated_group_counts_minutes_and_not_steps() -> None:
    simulated = SimulatedGroup(scenario(rates=[400.0] * 3, start=1), 1)
    for arrived in simulated.arrivals.by_step():
        simulated.advance(arrived)
    simulated.finish()
    assert simulated.totals[0].late_minutes == 2


def test_rounding_leaves_no_backlog_below_zero_while_nothing_comes() -> None:
    group = scenario(queues=32, rates=[700.0, 0.0] * 30, start=5)
    weights = np.random.default_rng(7).permutation(np.linspace(0.5, 1.5, 32))
    uneven = replace(group, messages=group.messages * weights)
    simulated = SimulatedGroup(uneven, 3)
    for arrived in simulated.arrivals.by_step():
        simulated.advance(arrived)
        assert simulated.backlog.min() >= 0.0
    assert simulated.arrived.sum() == pytest.approx(uneven.played.sum())
