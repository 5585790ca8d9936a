"""The bill that a count was weighed by, as the page shows it."""

from dataclasses import dataclass

from planner.decision.bill_words import describe_payback, describe_source
from planner.decision.decision import BillLine
from planner.report.case import Case


@dataclass(frozen=True, slots=True)
class BillRow:
    """One count: figures in consumer-hours as words; ``role`` is ``now``, ``chosen`` or empty."""

    count: int
    role: str
    consumers: str
    change: str
    later: str
    late: str
    total: str
    note: str


@dataclass(frozen=True, slots=True)
class BillSection:
    """The section: where the bill comes from, its rows, and when the choice pays back."""

    source: str
    rows: tuple[BillRow, ...]
    payback: str


def bill_section(case: Case) -> BillSection | None:
    """Return the decision's bill for the page, ``None`` for a decision without one."""
    decision = case.record.decision
    bill = decision.bill
    if bill is None:
        return None
    rows = tuple(_row(line, decision.current, decision.target) for line in bill.lines)
    return BillSection(f"{describe_source(bill)}.", rows, describe_payback(bill, decision.current, decision.target))


def _row(line: BillLine, current: int, target: int) -> BillRow:
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
    )
