"""The bill of a receding horizon."""

from dataclasses import replace

import numpy as np
import pytest

from planner.decision.horizon import (
    DEFAULT_HORIZON,
    Bill,
    Costs,
    GroupState,
    choose_count,
    horizon_periods,
    itemise,
)

COUNTS = (1, 2, 4, 8)
SHARES = np.array([1.0, 0.5, 0.25, 0.125])
COSTS = Costs(change=900.0, late_minute=3600.0, late_after_s=60.0, pod_start_s=30.0, every_s=60.0)
BINS = DEFAULT_HORIZON.bins_min


def bill(load: float, count: int, costs: Costs = COSTS, **state: object) -> Bill:
    periods = horizon_periods(DEFAULT_HORIZON, max(costs.pod_start_s, costs.every_s))
    futures = np.full((3, sum(map(len, periods))), load)
    group = GroupState(**{"running": count, "ordered": count, "ready_in_s": 0.0, "backlog": 0.0, **state})  # type: ignore[arg-type]
    return choose_count(COUNTS, SHARES, futures, periods, group, costs, DEFAULT_HORIZON)


def test_a_steady_load_costs_the_consumers_of_the_horizon() -> None:
    result = bill(1.5, 2)
    assert result.chosen == 2
    assert result.costs[1] == pytest.approx(2 * 60 * sum(BINS))


def test_a_load_above_the_count_is_answered_by_the_next_one_that_keeps_up() -> None:
    # A minute later its busiest consumer would be behind by more than the objective's wait.
    assert bill(3.0, 2, backlog=120.0).chosen == 4


def test_a_rise_waits_while_nobody_waits_too_long() -> None:
    assert bill(3.0, 2).chosen == 2


def test_a_backlog_that_nobody_waits_for_too_long_is_left_to_drain() -> None:
    assert bill(1.5, 2, backlog=10.0).chosen == 2
    assert bill(1.5, 2, backlog=600.0).chosen > 2


def test_a_backlog_in_one_queue_is_no_reason_to_grow() -> None:
    assert bill(0.1, 2, backlog=600.0).chosen > 2
    # Whichever count: one consumer has all of it.
    assert bill(0.1, 2, backlog=600.0, backlog_ratios=(1.0, 1.0, 1.0, 1.0)).chosen == 2


def test_a_backlog_spread_like_the_load_costs_the_same_with_its_ratios() -> None:
    spread = bill(3.0, 2, backlog=120.0, backlog_ratios=(2.0, 1.0, 0.5, 0.25))
    assert spread.costs == pytest.approx(bill(3.0, 2, backlog=120.0).costs)


def test_a_change_that_does_not_pay_back_is_left() -> None:
    assert bill(1.5, 4).chosen == 2
    # Two consumers less for two hours are worth 4 hours, a rebalance here 5.
    assert bill(1.5, 4, replace(COSTS, change=5 * 3600.0)).chosen == 4


def test_what_is_ordered_already_is_not_ordered_twice() -> None:
    ordered = bill(3.0, 2, ordered=4, ready_in_s=20.0, backlog=120.0)
    assert ordered.chosen == 4
    # Pods that are ready ten seconds sooner are paid ten seconds longer; the rebalance counts once either way.
    assert ordered.costs[2] == pytest.approx(bill(3.0, 2, backlog=120.0).costs[2] + 10 * 2)


def test_periods_are_no_shorter_than_the_start_of_a_pod_and_their_bins_stay_short() -> None:
    periods = horizon_periods(DEFAULT_HORIZON, 180.0)
    assert min(map(sum, periods)) == 3
    assert sum(map(sum, periods)) >= sum(DEFAULT_HORIZON.bins_min)
    assert periods[:4] == ((1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 2))
    assert horizon_periods(DEFAULT_HORIZON, 60.0) == tuple((minutes,) for minutes in BINS)
    assert sum(map(sum, horizon_periods(DEFAULT_HORIZON, 4 * 3600.0))) == 240


def test_a_minute_of_too_much_counts_between_two_decisions_as_well() -> None:
    """2 consumers do 2 a minute: in each second minute 3.8 come. Red where a mean of ten minutes hides them."""
    costs = replace(COSTS, every_s=600.0, late_after_s=30.0)
    periods = horizon_periods(DEFAULT_HORIZON, 600.0)
    minutes = [length for period in periods for length in period]
    burst = np.array([3.8 if place % 2 else 0.0 for place in range(10)] + [1.9] * (len(minutes) - 10))
    level = np.full(len(minutes), 1.9)
    two = COUNTS.index(2)

    def late(load: np.ndarray) -> float:
        futures = np.stack([load, load])
        group = GroupState(2, 2, 0.0, 0.0)
        return float(itemise(COUNTS, SHARES, futures, periods, group, costs, DEFAULT_HORIZON).late[two])

    assert late(level) == 0.0
    assert late(burst) > 0.0


@pytest.mark.parametrize("pod_start_s", [0.0, 30.0, 90.0, 700.0])
@pytest.mark.parametrize("every_s", [60.0, 600.0])
def test_a_bill_adds_up_however_long_pods_start(pod_start_s: float, every_s: float) -> None:
    costs = replace(COSTS, pod_start_s=pod_start_s, every_s=every_s)
    periods = horizon_periods(DEFAULT_HORIZON, max(pod_start_s, every_s))
    futures = np.random.default_rng(1).uniform(0.5, 6.0, (5, sum(map(len, periods))))
    inputs = (COUNTS, SHARES, futures, periods, GroupState(2, 4, pod_start_s / 2, 20.0), costs, DEFAULT_HORIZON)
    items = itemise(*inputs)
    assert items.consumers + items.changes + items.late == pytest.approx(choose_count(*inputs).costs)


def test_pods_that_start_for_longer_than_a_bin_work_once_they_are_ready() -> None:
    periods = horizon_periods(DEFAULT_HORIZON, 120.0)
    futures = np.full((3, sum(map(len, periods))), 3.0)
    costs = replace(COSTS, pod_start_s=120.0)
    items = itemise(COUNTS, SHARES, futures, periods, GroupState(2, 2, 0.0, 0.0), costs, DEFAULT_HORIZON)
    assert items.consumers[COUNTS.index(4)] == pytest.approx(2 * 120 + 4 * (60 * sum(map(sum, periods)) - 120))


def test_the_largest_count_has_no_way_up_and_the_smallest_none_down() -> None:
    assert bill(100.0, 8).chosen == 8
    assert bill(0.0, 1).chosen == 1
    assert np.isfinite(bill(100.0, 1).costs).all()


def test_a_dear_change_is_not_put_off_for_a_cheaper_one_later() -> None:
    # Six consumers less for two hours are worth 12 hours; the change to 2 costs 1, to 4 next to nothing.
    assert bill(1.5, 8, replace(COSTS, change=(3600.0, 3600.0, 10.0, 10.0))).chosen == 2


def test_what_no_load_tells_costs_what_it_costs_not_to_know_it() -> None:
    periods = horizon_periods(DEFAULT_HORIZON, 600.0)
    bins = [length for period in periods for length in period]
    costs = replace(COSTS, change=3 * 3600.0, every_s=600.0)

    def stays(*loads: np.ndarray) -> float:
        bill = choose_count(
            COUNTS, SHARES, np.stack(loads), periods, GroupState(4, 4, 0.0, 0.0), costs, DEFAULT_HORIZON
        )
        return float(bill.costs[COUNTS.index(4)])

    calm, jump = np.full(len(bins), 1.5), np.full(len(bins), 1.5)
    jump[np.cumsum(bins) > 40] = 3.8
    known = (stays(calm) + stays(jump)) / 2
    # Nobody can stop two consumers in the one and keep them in the other: all four run for all the time in both.
    assert stays(calm, jump) == pytest.approx(4 * 60 * sum(bins))
    assert known < 4 * 60 * sum(bins) - 600
    jump[np.cumsum(bins) <= 40] = 1.6
    assert stays(calm, jump) == pytest.approx(known)
