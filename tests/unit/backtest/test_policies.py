"""What holds for every policy: nothing from the future reaches it, and the known future costs least."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from planner.backtest.compare import GRIDS, POLICY_NAMES, best_run, compare
from planner.backtest.observation import Policy
from planner.backtest.play import play
from planner.backtest.policies.druid import Druid, DruidOptions
from planner.backtest.policies.flink import Flink, FlinkOptions
from planner.backtest.policies.hpa import HpaOnCpu, resource_utilisation
from planner.backtest.policies.keda import Keda, ScalerOptions
from planner.backtest.policies.numaflow import Numaflow, NumaflowOptions
from planner.backtest.policies.planner import Planner
from planner.backtest.policies.smallest import SmallestCount
from planner.backtest.scenario import Scenario
from planner.demand.events import DateSpan, Event
from tests.backtest_builders import scenario
from tests.builders import AT

pytestmark = pytest.mark.slow

TUNED = FlinkOptions(0.9, 0.1, 120.0, 60.0, 300.0, 35.0, 300.0)
POLICIES: dict[str, Callable[[Scenario], Policy]] = {
    "planner": Planner,
    "smallest-count": SmallestCount,
    "keda": lambda group: Keda(group, ScalerOptions(200.0)),
    "flink": lambda group: Flink(group, TUNED),
    "hpa-cpu": lambda group: HpaOnCpu(group, 0.7),
    "numaflow": lambda group: Numaflow(group, NumaflowOptions(5.0, most_at_once=8)),
    "druid": lambda group: Druid(group, DruidOptions(10.0, 0.3, 120.0, 300.0)),
}


def day(minutes: int, seed: int = 3) -> list[float]:
    """Return a load that rises and falls between 100 and 700 messages a second, with noise."""
    noise = np.random.default_rng(seed).normal(0, 20, minutes)
    wave = 400 - 300 * np.cos(np.arange(minutes) * 2 * np.pi / 240)
    return np.maximum(wave + noise, 0.0).tolist()


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_another_future_changes_no_decision_before_it(name: str) -> None:
    rates = day(240)
    changed = [*rates[:150], *(5 * rate + 50 for rate in rates[150:])]
    first, second = (
        play(scenario(queues=8, rates=future, known=60), [POLICIES[name](scenario(queues=8, rates=future, known=60))])[
            0
        ]
        for future in (rates, changed)
    )
    until_s = 90 * 60.0
    assert [c for c in first.changes if c[0] <= until_s] == [c for c in second.changes if c[0] <= until_s]
    assert first.changes != second.changes


def test_nobody_is_cheaper_than_the_optimum_and_the_planner_is_nearer_than_the_others() -> None:
    group = scenario(queues=8, rates=day(600), known=240)
    costs = {run.policy: run.cost_h(group.prices) for run in compare(group, POLICY_NAMES)}
    assert tuple(costs) == POLICY_NAMES
    assert min(costs, key=lambda name: costs[name]) == "optimum"
    assert costs["planner"] == min(cost for name, cost in costs.items() if name != "optimum")


def test_the_smallest_count_keeps_the_busiest_consumer_at_80_percent_and_lets_a_backlog_go() -> None:
    """360 a second are 90 % of 4 consumers, and 5 to 7 relieve nobody. Red when the bound or what waits is left out."""
    steady = scenario(queues=8, rates=[360.0] * 60, start=4, every_s=600)
    assert play(steady, [SmallestCount(steady)])[0].changes == ((600.0, 8),)
    known = scenario(queues=8, rates=[360.0] * 80, known=20, start=4, every_s=600)
    assert play(known, [SmallestCount(known)])[0].changes == ((0.0, 8),)
    # 210,000 wait for 2 consumers that keep up by now: 2 queues of 8 need more than ten minutes, one queue does not.
    heavy = scenario(queues=8, rates=[900.0] * 5 + [200.0] * 55, start=2, every_s=1200)
    assert play(heavy, [SmallestCount(heavy)])[0].changes == ((1200.0, 8), (2400.0, 3))


def test_a_load_beyond_all_counts_gets_the_largest_useful_one() -> None:
    group = scenario(queues=4, rates=[1000.0] * 60)
    assert play(group, [Planner(group)])[0].changes[-1][1] == 4


def test_a_load_without_a_message_gets_the_smallest_count() -> None:
    group = scenario(queues=4, rates=[0.0] * 60, known=20, start=4)
    assert play(group, [Planner(group)])[0].changes == ((0.0, 1),)


def test_a_shorter_period_is_looked_at_more_often_and_every_period_is_played() -> None:
    for every_s in (5.0, 30.0, 90.0, 600.0):
        group = scenario(queues=8, rates=day(70), known=30, every_s=every_s)
        changes = play(group, [Planner(group)])[0].changes
        assert changes
        assert all(second % every_s == 0 for second, _ in changes)


def test_slow_pods_are_ordered_before_the_load_needs_them() -> None:
    group = scenario(queues=8, rates=day(720), known=480, pod_start_s=180)
    assert play(group, [Planner(group)])[0].totals.late_minutes <= 3


def test_the_cheapest_setting_is_reported_with_how_many_were_tried() -> None:
    group = scenario(rates=[250.0] * 30)
    best = best_run(group, list(GRIDS["fixed"](group)))
    # Three own 2, 1 and 1 of four queues, so that the first has half of the load all the same.
    assert best.tuning == "4 consumers; best of 4"


def test_hpa_on_cpu_goes_by_the_mean_of_the_ready_ones() -> None:
    assert resource_utilisation([0.9, 0.9], 0.6, 2) == 3
    assert resource_utilisation([0.62, 0.6], 0.6, 2) == 2
    assert resource_utilisation([], 0.6, 5) == 5


def with_sale(group: Scenario, begins_minute: int, ends_minute: int, factor: float) -> Scenario:
    """Return the scenario of a policy that knows of a load so many times the usual one."""
    span = DateSpan(AT + timedelta(minutes=begins_minute), AT + timedelta(minutes=ends_minute))
    return replace(group, events=(Event("sale", span, factor),), begins_at=AT)


def test_pods_of_the_planner_start_before_an_event_that_it_knows_of() -> None:
    """The load triples after two hours for one. Red when events do not reach the weighing."""
    rates = [*([200.0] * 420), *([600.0] * 60), *([200.0] * 60)]
    group = scenario(queues=8, rates=rates, known=300)
    unknowing = play(group, [Planner(group)])[0]
    told = with_sale(group, 120, 180, 3.0)
    knowing = play(told, [Planner(told)])[0]
    assert (unknowing.totals.late_minutes > 0, knowing.totals.late_minutes) == (True, 0)
    # Ready as it begins; who does not know of it sees it a look later.
    first_orders = [next(second for second, count in run.changes if count >= 6) for run in (unknowing, knowing)]
    assert first_orders == [121 * 60.0, 120 * 60.0]
    # What is usual is learned without the event: it ends as the load does.
    assert knowing.changes[-1][1] <= 3


def test_an_event_that_does_not_come_is_paid_for_until_the_load_shows_it() -> None:
    """Red when a load within an event is not divided by its factor."""
    group = scenario(queues=8, rates=[200.0] * 540, known=300)
    told = with_sale(group, 60, 180, 3.0)
    hours = [play(one, [Planner(one)])[0].totals.hours for one in (group, told)]
    assert hours[0] < hours[1] < hours[0] + 4.0
