from dataclasses import replace
from datetime import timedelta

import pytest

from planner.report.trend import describe_trend, foreseen, horizon_s, measured, rebalances, trend, waiting
from planner.simulation.outcome import ConsumerLoad
from tests.builders import AT
from tests.report import worlds


def load(lag: int, rate: float, capacity: float = 100.0) -> ConsumerLoad:
    spare = capacity - rate
    return ConsumerLoad("c", 1, rate, rate / capacity, lag, lag / capacity, lag / spare if spare > 0 else None)


def test_a_backlog_falls_evenly_until_it_is_gone() -> None:
    one = load(lag=1000, rate=80.0)
    assert [waiting(one, after) for after in (0, 25, 50, 51)] == [1000, 500, 0, 0]


def test_a_consumer_that_does_not_keep_up_falls_behind_by_what_it_cannot_do() -> None:
    assert waiting(load(lag=1000, rate=120.0), 60.0) == pytest.approx(1000 + 20 * 60)


def test_at_exactly_full_load_the_backlog_stays() -> None:
    assert waiting(load(lag=1000, rate=100.0), 60.0) == pytest.approx(1000)


def test_nothing_behind_stays_nothing() -> None:
    assert waiting(load(lag=0, rate=10.0), 5.0) == 0.0


def test_the_forecast_bends_where_a_consumer_has_caught_up() -> None:
    case = worlds.case(worlds.growing())
    assert case.chosen is not None
    line = foreseen(case.chosen, AT, 600.0)
    assert line[0].lag == case.snapshot.lag
    assert line[-1].lag == 0.0
    assert [point.at for point in line[1:-1]] == [
        AT + timedelta(seconds=drain) for drain in sorted({one.drain_s for one in case.chosen.loads if one.drain_s})
    ]


def test_no_forecast_without_a_known_capacity() -> None:
    case = worlds.case(worlds.unknown_capacity())
    drawn = trend(case)
    assert drawn.chosen == ()
    assert drawn.staying == ()
    assert "Forecast" not in describe_trend(drawn)


def test_a_gap_breaks_the_lines_and_is_a_span() -> None:
    drawn = trend(worlds.case(worlds.growing()))
    (gap,) = drawn.gaps
    assert gap[1] - gap[0] == timedelta(seconds=100)
    empty = [point for point in drawn.measured if point.lag is None]
    assert [gap[0] < point.at < gap[1] for point in empty] == [True]
    assert all(point.arrival is None and point.consumption is None for point in empty)


def test_points_that_move_one_after_the_other_are_one_rebalance() -> None:
    (rebalance,) = rebalances(worlds.recent())
    assert rebalance.moved == 7


def test_unknown_rates_stay_unknown() -> None:
    point = replace(worlds.recent()[0], arrival_rate=None)
    assert [one.arrival for one in measured([point])] == [None]


def test_the_future_drawn_shows_the_end_of_the_backlog_within_bounds() -> None:
    case = worlds.case(worlds.growing())
    assert case.chosen is not None
    assert case.chosen.drain_s is not None
    assert horizon_s(1500.0, case.chosen) == pytest.approx(max(300.0, 1.2 * case.chosen.drain_s))
    assert horizon_s(36_000.0, case.chosen) == pytest.approx(7200.0)
    assert horizon_s(0.0, None) == 300.0
    assert horizon_s(3600.0, replace(case.chosen, drain_s=4000.0)) == pytest.approx(4800.0)
    assert horizon_s(3600.0, replace(case.chosen, drain_s=1e9)) == pytest.approx(86_400.0)


def test_a_hold_has_one_forecast_a_change_two() -> None:
    holding, growing = trend(worlds.case(worlds.holding())), trend(worlds.case(worlds.growing()))
    assert (bool(holding.chosen), bool(holding.staying)) == (True, False)
    assert (bool(growing.chosen), bool(growing.staying)) == (True, True)


def test_the_words_carry_the_figures_of_the_picture() -> None:
    told = describe_trend(trend(worlds.case(worlds.growing())))
    assert "at most 461 messages (at 10:30)" in told
    assert "Queues changed owner once, 7 in all." in told
    assert "Samples are missing in one span" in told
    assert "0 messages with 6 consumers" in told


def test_an_empty_course_says_so() -> None:
    drawn = trend(worlds.case(worlds.nobody_there()))
    assert drawn.is_empty
    assert describe_trend(drawn) == "Nothing was measured before."
