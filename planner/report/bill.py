"""The bill that a count was weighed by, as the page shows it."""

from dataclasses import dataclass

from planner.decision.bill_words import describe_payback, describe_source, money
from planner.decision.decision import BillLine, DecisionBill
from planner.demand.outlook import Stretch, outlook
from planner.report import words
from planner.report.case import Case


@dataclass(frozen=True, slots=True)
class BillRow:
    """One count: figures in consumer-hours as words; ``role`` is ``now``, ``chosen`` or empty,
    ``money`` what the sum is worth, empty for a bill without a price."""

    count: int
    role: str
    consumers: str
    change: str
    later: str
    late: str
    total: str
    note: str
    money: str


@dataclass(frozen=True, slots=True)
class LoadRow:
    """One stretch of the time ahead: possible loads in messages per second as words, and how earlier bands did."""

    ahead: str
    low: str
    middle: str
    high: str
    record: str


@dataclass(frozen=True, slots=True)
class BillSection:
    """The section: where the bill comes from, its rows, when the choice pays back, and the load that may come.

    ``has_money``: the rows say what their sums are worth. ``has_events``: known events are in the bill, and not in
    ``loads``.
    """

    source: str
    rows: tuple[BillRow, ...]
    payback: str
    loads: tuple[LoadRow, ...]
    has_money: bool
    has_events: bool


def bill_section(case: Case) -> BillSection | None:
    """Return the decision's bill for the page, ``None`` for a decision without one."""
    decision = case.record.decision
    bill = decision.bill
    if bill is None:
        return None
    rows = tuple(_row(bill, line, decision.current, decision.target) for line in bill.lines)
    payback = describe_payback(bill, decision.current, decision.target)
    ahead = outlook(case.snapshot)
    loads = tuple(_load(stretch) for stretch in ahead.stretches) if ahead else ()
    return BillSection(
        f"{describe_source(bill)}.", rows, payback, loads, bill.consumer_hour is not None, bill.has_events
    )


def _load(stretch: Stretch) -> LoadRow:
    record = f"{stretch.inside} of {stretch.forecasts} inside" if stretch.forecasts else "none is over yet"
    return LoadRow(
        ahead=f"{stretch.from_minutes}–{stretch.to_minutes} min",
        low=words.per_second(stretch.low),
        middle=words.per_second(stretch.middle),
        high=words.per_second(stretch.high),
        record=record,
    )


def _row(bill: DecisionBill, line: BillLine, current: int, target: int) -> BillRow:
    change = f"{line.change_hours:,.2f}" + ("" if line.is_change_known else " (not all known)")
    bounds = f"bounds met too late: {line.bound_hours:,.2f}" if line.bound_hours else ""
    return BillRow(
        count=line.count,
        role="now" if line.count == current else "chosen" if line.count == target else "",
        consumers=f"{line.consumer_hours:,.2f}",
        change=change,
        later=f"{line.later_change_hours:,.2f}",
        late=f"{line.late_hours:,.2f} ({line.late_minutes:,.1f} min)",
        total=f"{line.total_hours:,.2f}",
        note=bounds,
        money="" if bill.consumer_hour is None else money(bill, line.total_hours),
    )
