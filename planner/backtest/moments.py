"""The hours in which one run cost most over another: where a policy loses, by what it lost there."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.backtest.play import Run
from planner.backtest.scenario import Prices
from planner.backtest.simulated_group import Totals

MOST_MOMENTS = 5


@dataclass(frozen=True, slots=True)
class Moment:
    """One hour of the play: what a run and another one took in it, and what the run cost over the other."""

    hour: int
    own: Totals
    other: Totals
    over_h: float


def lost_hours(run: Run, other: Run, prices: Prices, at_most: int = MOST_MOMENTS) -> list[Moment]:
    """Return the hours in which ``run`` cost most over ``other``, the dearest first; none in which it did not."""
    moments = [
        Moment(hour, own, its, own.cost_h(prices) - its.cost_h(prices))
        for hour, (own, its) in enumerate(zip(_by_hour(run.hourly), _by_hour(other.hourly), strict=True))
    ]
    lost = sorted((it for it in moments if it.over_h > 0), key=lambda it: (-it.over_h, it.hour))
    return lost[:at_most]


def _by_hour(hourly: Sequence[Totals]) -> list[Totals]:
    """Return what each hour took, of totals by the end of each."""
    ends = [Totals(), *hourly]
    return [
        Totals(
            seconds=end.seconds - begin.seconds,
            rebalances=end.rebalances - begin.rebalances,
            late_minutes=end.late_minutes - begin.late_minutes,
        )
        for begin, end in pairwise(ends)
    ]
