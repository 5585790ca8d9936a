"""The bill of every count: consumers, changes and lateness over possible futures, in hours of one consumer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.decision.decision import EVENTS_LEAD, BillLine, DecisionBill
from planner.decision.group_weighing import GroupWeighing, weighing_of
from planner.decision.horizon import DEFAULT_HORIZON
from planner.decision.objective import WaitObjective
from planner.decision.prices import change_price, is_price_complete
from planner.decision.weighing import Weighing
from planner.demand.events import Event, describe_events
from planner.demand.futures import has_errors
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.text.words import duration

HOUR_S = 3600.0
DECIMALS = 3
"""Of an hour: 3.6 s of one consumer. Finer differences are no reason for one count and against another."""


@dataclass(frozen=True, slots=True)
class CountBills:
    """The bill of every weighed count; ``shown`` of it is what a decision keeps.

    ``current`` is the present count, ``hot`` the queue that alone takes more than a consumer. ``used`` says how much of
    the busiest consumer the level takes with each count, that queue left out.
    """

    whole: DecisionBill
    current: int
    used: Mapping[int, float]
    hot: Queue | None = None

    def cheapest(self, counts: Sequence[int]) -> int:
        """Return the count that costs least, of equal ones the present one, else the smallest."""
        totals = {line.count: line.total_hours for line in self.whole.lines if line.count in counts}
        return min(totals, key=lambda count: (totals[count], count != self.current, count))

    def weighs(self, count: int) -> bool:
        """Return whether the count relieves the busiest consumer at all, so that it was weighed."""
        return self.whole.line(count) is not None

    def why_none_keeps_up(self, counts: Sequence[int]) -> str:
        """Return in half a sentence why messages stay late with each of the counts, empty where one keeps up."""
        if self.hot is not None:
            return (
                f"{self.hot.noun} {self.hot} alone takes more than a consumer can do, so that no count keeps up with it"
            )
        least = min(self.used[count] for count in counts)
        if least < DEFAULT_HORIZON.pace:
            return ""
        return f"no allowed count keeps up, as the level takes {least:.0%} of the busiest consumer at least"

    def why_unweighed(self, count: int) -> str:
        """Return in half a sentence why a count has no bill."""
        if self.hot is not None and count < self.current:
            return f"{self.hot.noun} {self.hot} alone takes more than a consumer, and with fewer there is less for it"
        return "it relieves the busiest consumer by less than 1 % of what fewer consumers leave it"

    def shown(self, target: int) -> DecisionBill:
        """Return the bill of staying, of the chosen count, and of those next to it."""
        counts = [line.count for line in self.whole.lines]
        index = counts.index(target)
        kept = {self.current, *counts[max(index - 1, 0) : index + 2]}
        whole = self.whole
        return DecisionBill(
            horizon_seconds=whole.horizon_seconds,
            first_change_seconds=whole.first_change_seconds,
            futures=whole.futures,
            source=whole.source,
            level=whole.level,
            lines=tuple(line for line in whole.lines if line.count in kept),
            members_per_pod=whole.members_per_pod,
            consumer_hour=whole.consumer_hour,
        )


def bill_counts(
    snapshot: GroupSnapshot,
    outcomes: Sequence[CandidateOutcome],
    late_s: Mapping[int, float],
    wait: WaitObjective,
    events: Sequence[Event] = (),
) -> CountBills | None:
    """Return the bill of the given outcomes, the present one among them, ``None`` where its load is unknown.

    ``late_s`` says how many seconds later than the policy allows a time bound is met with each count; ``events`` are
    known times with another load.
    """
    group = weighing_of(snapshot, outcomes, wait, events)
    if group is None:
        return None
    weighing, late_minute_s = group.weighing, wait.prices.late_minute_s
    items = weighing.items()
    lines = []
    for index, (count, outcome) in enumerate(group.outcomes.items()):
        change_s = change_price(outcome, snapshot.count, wait.prices)
        bound_s = late_s.get(count, 0.0) / 60.0 * late_minute_s
        hours = {
            "consumer_hours": float(items.consumers[index]),
            "change_hours": change_s,
            "later_change_hours": max(float(items.changes[index]) - change_s, 0.0),
            "late_hours": max(float(items.late[index]), 0.0),
            "bound_hours": bound_s,
        }
        rounded = {name: round(seconds / HOUR_S, DECIMALS) for name, seconds in hours.items()}
        lines.append(
            BillLine(
                count=count,
                **rounded,
                late_minutes=round(float(items.late[index]) / late_minute_s, 1) + 0.0 if late_minute_s else 0.0,
                total_hours=round(sum(rounded.values()), DECIMALS),
                is_change_known=count == snapshot.count or is_price_complete(outcome),
            )
        )
    level = float(weighing.series.level[-1])
    used = {count: level * float(share) for count, share in zip(weighing.counts, weighing.shares, strict=True)}
    known = describe_events(events, snapshot.at, 60.0 * sum(weighing.bins_min))
    bill = _bill(group, tuple(lines), snapshot.members_per_pod or 1, known)
    bill = replace(bill, consumer_hour=wait.prices.consumer_hour)
    return CountBills(bill, snapshot.count, used, group.hot)


def _bill(group: GroupWeighing, lines: tuple[BillLine, ...], members_per_pod: int, events: str) -> DecisionBill:
    weighing = group.weighing
    return DecisionBill(
        horizon_seconds=60.0 * sum(weighing.bins_min),
        first_change_seconds=60.0 * sum(weighing.periods_min[0]),
        futures=weighing.paths,
        source=f"{_source(weighing, group)}{EVENTS_LEAD}{events}" if events else _source(weighing, group),
        level=round(float(weighing.series.level[-1]), DECIMALS),
        lines=lines,
        members_per_pod=members_per_pod,
    )


def _source(weighing: Weighing, group: GroupWeighing) -> str:
    """Return where the futures come from, as half a sentence."""
    size = len(weighing.series)
    observed = duration(60.0 * size)
    if has_errors(size, weighing.bins_min, weighing.settings.paths):
        source = f"the errors that forecasts of this load made in the last {observed}"
    else:
        source = f"the level alone, spread wider, as only {observed} of the load are known"
    if group.hot is None:
        return source
    hot = f"{group.hot.noun} {group.hot}"
    return f"{source}, without {hot}, which alone takes more than a consumer, so that no count relieves it"
