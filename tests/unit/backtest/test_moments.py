"""The hours in which one run cost most over another."""

import pytest

from planner.backtest.moments import lost_hours
from planner.backtest.observation import Observation
from planner.backtest.play import play
from tests.backtest_builders import scenario


class Always:
    """One count for all time."""

    name, tuning, every_s, reads_busy = "always", "", 60.0, False

    def __init__(self, count: int) -> None:
        self._count = count

    def decide(self, observation: Observation) -> int:  # noqa: ARG002  # the protocol's
        return self._count


def test_an_hour_is_lost_where_it_cost_more_than_the_others() -> None:
    """Red when an hour counts what came before it, or what was cheaper counts as lost."""
    # Half a consumer's work for an hour, then three consumers'.
    group = scenario(rates=[50.0] * 60 + [300.0] * 60)
    one, four = play(group, [Always(1), Always(4)])
    (lost,) = lost_hours(one, four, group.prices)
    assert lost.hour == 1
    assert lost.own.hours == pytest.approx(1.0)
    assert lost.own.late_minutes == one.totals.late_minutes > 50
    assert lost.over_h == pytest.approx(lost.own.late_minutes - 3.0)
    (dear,) = lost_hours(four, one, group.prices)
    assert dear.hour == 0
    assert len(four.hourly) == 2
    assert four.hourly[-1].hours == pytest.approx(four.totals.hours)


def test_each_stretch_of_a_play_has_its_own_longest_wait() -> None:
    """Red when a wait is told in another stretch than in which it was, or the longest of all is in none."""
    group = scenario(rates=[50.0] * 60 + [300.0] * 60)
    one, four = play(group, [Always(1), Always(4)])
    assert len(one.longest_waits) == 120
    assert max(one.longest_waits) == one.totals.worst_wait_s > 1800
    assert max(one.longest_waits[:60]) < 60
    # A backlog that only grows: each minute's longest wait is longer than the minute's before.
    assert list(one.longest_waits[61:]) == sorted(set(one.longest_waits[61:]))
    assert max(four.longest_waits) < 60
