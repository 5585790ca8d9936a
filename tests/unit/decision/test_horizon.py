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
    horizon_bins,
)

COUNTS = (1, 2, 4, 8)
SHARES = np.array([1.0, 0.5, 0.25, 0.125])
COSTS = Costs(change=900.0, late_minute=3600.0, late_after_s=60.0, pod_start_s=30.0, every_s=60.0)
BINS = horizon_bins(DEFAULT_HORIZON, 30.0)


def bill(load: float, count: int, costs: Costs = COSTS, **state: object) -> Bill:
    futures = np.full((3, len(BINS)), load)
    group = GroupState(**{"running": count, "ordered": count, "ready_in_s": 0.0, "backlog": 0.0, **state})  # type: ignore[arg-type]
    return choose_count(COUNTS, SHARES, futures, BINS, group, costs, DEFAULT_HORIZON)


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


def test_bins_are_no_shorter_than_the_start_of_a_pod() -> None:
    assert min(horizon_bins(DEFAULT_HORIZON, 180.0)) == 3
    assert sum(horizon_bins(DEFAULT_HORIZON, 180.0)) >= sum(DEFAULT_HORIZON.bins_min)


def test_the_largest_count_has_no_way_up_and_the_smallest_none_down() -> None:
    assert bill(100.0, 8).chosen == 8
    assert bill(0.0, 1).chosen == 1
    assert np.isfinite(bill(100.0, 1).costs).all()


def test_a_dear_change_is_not_put_off_for_a_cheaper_one_later() -> None:
    # Six consumers less for two hours are worth 12 hours; the change to 2 costs 1, to 4 next to nothing.
    assert bill(1.5, 8, replace(COSTS, change=(3600.0, 3600.0, 10.0, 10.0))).chosen == 2


def test_what_no_load_tells_costs_what_it_costs_not_to_know_it() -> None:
    bins = horizon_bins(DEFAULT_HORIZON, 600.0)
    costs = replace(COSTS, change=3 * 3600.0, every_s=600.0)

    def stays(*loads: np.ndarray) -> float:
        bill = choose_count(COUNTS, SHARES, np.stack(loads), bins, GroupState(4, 4, 0.0, 0.0), costs, DEFAULT_HORIZON)
        return float(bill.costs[COUNTS.index(4)])

    calm, jump = np.full(len(bins), 1.5), np.full(len(bins), 1.5)
    jump[4:] = 3.8
    known = (stays(calm) + stays(jump)) / 2
    # Nobody can stop two consumers in the one and keep them in the other: all four run for all the time in both.
    assert stays(calm, jump) == pytest.approx(4 * 60 * sum(bins))
    assert known < 4 * 60 * sum(bins) - 600
    jump[0] = 1.6
    assert stays(calm, jump) == pytest.approx(known)
