"""From a group's load and counts to the bill of every first action: what the decision and the backtest both call."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from planner.decision.horizon import (
    DEFAULT_HORIZON,
    Bill,
    Costs,
    GroupState,
    HorizonSettings,
    Items,
    choose_count,
    horizon_bins,
    itemise,
)
from planner.demand.futures import DEFAULT_FUTURES, FutureSettings, futures
from planner.demand.series import Floats, LoadSeries

LEAST_RELIEF = 0.01
"""A count is useful if it takes at least this part of its load from the busiest consumer."""
COMMIT_INTERVAL_S = 5.0
"""How often clients commit by default, RocketMQ's and Kafka's: half of it is worked off and not yet committed."""
LEAST_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class WeighingSettings:
    """How futures are made and how the horizon counts: one setting for all groups."""

    horizon: HorizonSettings = DEFAULT_HORIZON
    paths: FutureSettings = DEFAULT_FUTURES


DEFAULT_WEIGHING = WeighingSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """One group to weigh: its load in consumers by minute, its counts, and the share of the busiest consumer of each.

    ``counts`` are ascending and hold what runs and what is ordered.
    """

    series: LoadSeries
    counts: tuple[int, ...]
    shares: Floats
    state: GroupState
    costs: Costs
    settings: WeighingSettings = DEFAULT_WEIGHING

    @property
    def bins_min(self) -> tuple[int, ...]:
        """The stretches of the horizon in minutes."""
        return horizon_bins(self.settings.horizon, max(self.costs.pod_start_s, self.costs.every_s))

    @property
    def paths(self) -> int:
        """How many possible futures are weighed."""
        return len(self._futures())

    def bill(self) -> Bill:
        """Return the cost of every first action. Raises ``ValueError`` for a series without any minute."""
        return choose_count(*self._inputs())

    def items(self) -> Items:
        """Return what the bill is made of. Raises ``ValueError`` for a series without any minute."""
        return itemise(*self._inputs())

    def _inputs(self) -> tuple[tuple[int, ...], Floats, Floats, tuple[int, ...], GroupState, Costs, HorizonSettings]:
        horizon = self.settings.horizon
        return self.counts, self.shares, self._futures(), self.bins_min, self.state, self.costs, horizon

    def _futures(self) -> Floats:
        return futures(self.series, self.bins_min, self.settings.paths)


def useful_counts(shares: Iterable[tuple[int, float]], kept: Collection[int]) -> dict[int, float]:
    """Return the counts that are worth weighing, with the busiest consumer's share of the load under each.

    ``shares`` has counts in ascending order. A count that relieves the busiest consumer no more than a smaller one does
    is left out, unless it is among ``kept``.
    """
    useful, least = {}, float("inf")
    for count, share in shares:
        if count in kept or share < least * (1 - LEAST_RELIEF):
            useful[count] = max(share, LEAST_SHARE)
        least = min(least, share)
    return useful
