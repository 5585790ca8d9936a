"""From a group's load and counts to the bill of every first action: what the decision and the backtest both call."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from planner.decision.horizon import (
    DEFAULT_HORIZON,
    Bill,
    Costs,
    GroupState,
    HorizonSettings,
    Items,
    Model,
    Periods,
    choose_count,
    horizon_periods,
    itemise,
)
from planner.demand.events import EventLoad, with_events
from planner.demand.futures import DEFAULT_FUTURES, FutureSettings, futures
from planner.demand.series import Floats, LoadSeries

LEAST_RELIEF = 0.01
"""A count is useful if it takes at least this part of its load from the busiest consumer."""
COMMIT_INTERVAL_S = 5.0
"""How often clients commit by default, RocketMQ's and Kafka's."""
UNCOMMITTED_S = COMMIT_INTERVAL_S / 2
"""Of so many seconds what arrives is worked off and not yet committed, in the mean."""
LEAST_SHARE = 1e-9
MOST_OF_A_CONSUMER = 0.95
"""What one queue counts for at most, in consumers: one that takes more is relieved by no count once it is alone."""
ALL_OF_A_CONSUMER = 1.0
"""A queue that alone takes more is left out: its messages are late with any count, so that none is paid for.

Nor is any consumer taken away beside it, as that one would leave less of a consumer to it. Several such queues count
for most of a consumer each, as it helps to part them.
"""


@dataclass(frozen=True, slots=True)
class WeighingSettings:
    """How futures are made and how the horizon counts: one setting for all groups.

    Of ``model`` and its subclasses all give the same bills: they differ in speed alone.
    """

    horizon: HorizonSettings = DEFAULT_HORIZON
    paths: FutureSettings = DEFAULT_FUTURES
    model: type[Model] = Model


DEFAULT_WEIGHING = WeighingSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """One group to weigh: its load in consumers by minute, its counts, and the share of the busiest consumer of each.

    ``counts`` are ascending and hold what runs and what is ordered. ``events`` has what known events do to each minute
    of the horizon, floors in consumers; the series is then the load without their factors.
    """

    series: LoadSeries
    counts: tuple[int, ...]
    shares: Floats
    state: GroupState
    costs: Costs
    settings: WeighingSettings = DEFAULT_WEIGHING
    events: EventLoad | None = None

    @property
    def periods_min(self) -> Periods:
        """The stretches of the horizon in minutes, those between two decisions together."""
        return horizon_periods(self.settings.horizon, max(self.costs.pod_start_s, self.costs.every_s))

    @property
    def bins_min(self) -> tuple[int, ...]:
        """The stretches of the horizon in minutes."""
        return tuple(minutes for period in self.periods_min for minutes in period)

    @property
    def paths(self) -> int:
        """How many possible futures are weighed."""
        return len(self._futures())

    def bill(self) -> Bill:
        """Return the cost of every first action. Raises ``ValueError`` for a series without any minute."""
        return choose_count(*self._inputs(), self.settings.model)

    def items(self) -> Items:
        """Return what the bill is made of. Raises ``ValueError`` for a series without any minute."""
        return itemise(*self._inputs())

    def _inputs(self) -> tuple[tuple[int, ...], Floats, Floats, Periods, GroupState, Costs, HorizonSettings]:
        horizon = self.settings.horizon
        return self.counts, self.shares, self._futures(), self.periods_min, self.state, self.costs, horizon

    def _futures(self) -> Floats:
        usual = futures(self.series, self.bins_min, self.settings.paths)
        return usual if self.events is None else with_events(usual, self.bins_min, self.events)


def leave_out_hot_queue(loads: Floats) -> tuple[Floats, int | None]:
    """Return what counts of each queue's load, both in consumers, and the hottest queue if it is too much for one."""
    served = np.minimum(loads, MOST_OF_A_CONSUMER)
    too_hot = np.flatnonzero(loads > ALL_OF_A_CONSUMER)
    if not len(too_hot):
        return served, None
    if len(too_hot) == 1:
        served[too_hot] = 0.0
    return served, int(loads.argmax())


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


def backlog_ratios(shares: Iterable[float], of_running: float) -> tuple[float, ...]:
    """Return what the consumer with most of the backlog would have under each count, over what it has as of now.

    ``shares`` are the largest of what waits and what arrives within ``UNCOMMITTED_S``: where nothing waits, what will
    is spread like the load.
    """
    return tuple(max(share, LEAST_SHARE) / max(of_running, LEAST_SHARE) for share in shares)
