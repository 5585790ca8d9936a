"""A bill in words: what each count costs, why the cheapest won, and when it pays back."""

from collections.abc import Iterator

from planner.decision.decision import BillLine, DecisionBill
from planner.text.words import duration, pods, scaled

HOUR_S = 3600.0


def describe_choice(bill: DecisionBill, current: int, target: int) -> str:
    """Return why the target won, as half a sentence. Raises ``ValueError`` for a target that has no line."""
    chosen, stay, horizon = bill.line(target), bill.line(current), duration(bill.horizon_seconds)
    if chosen is None:
        raise ValueError(f"the bill has no line for {target}: the caller chose it from there")
    costs = f"over the next {horizon} it is expected to cost {describe_line(bill, chosen)}, the least of all counts"
    if target == current or stay is None:
        return costs
    staying = f"staying at {current} would cost {describe_line(bill, stay)}"
    return f"{costs}; {staying}{_and_pays_back(bill, stay, chosen)}"


def describe_line(bill: DecisionBill, line: BillLine) -> str:
    """Return what a count costs: the sum, and what it is made of."""
    clauses = [f"{line.consumer_hours:,.2f} for {scaled(bill.members_per_pod)}s"]
    if changes := line.change_hours + line.later_change_hours:
        clauses.append(f"{changes:,.2f} for changes")
    clauses.append(f"{line.late_hours:,.2f} for {line.late_minutes:,.1f} late minutes")
    if line.bound_hours:
        clauses.append(f"{line.bound_hours:,.2f} for bounds that are met too late")
    return f"{hours(bill, line.total_hours)} ({', '.join(clauses)})"


def describe_difference(bill: DecisionBill, line: BillLine, chosen: BillLine) -> str:
    """Return why a count was not chosen: what it costs more."""
    more = _difference(line, chosen)
    than = pods(chosen.count, chosen.count * bill.members_per_pod)
    return f"it is expected to cost {hours(bill, line.total_hours)}, {more:,.2f} more than {than}"


def describe_bill(bill: DecisionBill, current: int, target: int) -> Iterator[str]:
    """Yield the bill as sentences: where it comes from, each line, and when the choice pays back."""
    yield f"{describe_source(bill)}:"
    for line in bill.lines:
        role = " (as now)" if line.count == current else " (chosen)" if line.count == target else ""
        unknown = "" if line.is_change_known else "; pauses and duplicates of this change are not known"
        count = pods(line.count, line.count * bill.members_per_pod)
        yield f"{count}{role}: {describe_line(bill, line)}{unknown}."
    if sentence := describe_payback(bill, current, target):
        yield sentence


def describe_source(bill: DecisionBill) -> str:
    """Return what the bill considers: how far ahead, how many futures, out of what."""
    return (
        f"Bill for the next {duration(bill.horizon_seconds)}, the mean of {bill.futures} possible loads around a level "
        f"of {bill.level:,.1f} consumers, made of {bill.source}; each count stays for "
        f"{duration(bill.first_change_seconds)} at least, then come the best changes"
    )


def describe_payback(bill: DecisionBill, current: int, target: int) -> str:
    """Return when fewer consumers have paid for the change, or what more of them save; empty for a hold."""
    stay, chosen = bill.line(current), bill.line(target)
    if target == current or stay is None or chosen is None:
        return ""
    if target < current:
        pays_back = _pays_back(bill, stay, chosen)
        return f"{pays_back[:1].upper()}{pays_back[1:]}."
    saved = hours(bill, _difference(stay, chosen))
    return f"Against staying it saves {saved}."


def _difference(line: BillLine, other: BillLine) -> float:
    """Return by how many hours the sums differ as they are shown: a reader subtracts one from the other."""
    return round(line.total_hours, 2) - round(other.total_hours, 2)


def _and_pays_back(bill: DecisionBill, stay: BillLine, chosen: BillLine) -> str:
    return f"; {_pays_back(bill, stay, chosen)}" if chosen.count < stay.count else ""


def _pays_back(bill: DecisionBill, stay: BillLine, chosen: BillLine) -> str:
    """Return what a smaller count saves, the price of the change, and when the one has paid for the other."""
    fewer = stay.count - chosen.count
    after = duration(chosen.change_hours * HOUR_S / fewer)
    price = hours(bill, chosen.change_hours)
    less = pods(fewer, fewer * bill.members_per_pod)
    return f"the change costs {price}, {less} less pay that back in {after}"


def hours(bill: DecisionBill, value: float) -> str:
    """Return consumer-hours, or pod-hours where a pod runs several consumers, with their unit and what they are worth.

    The worth is in the policy's money, whose name nobody knows; nothing is said of it where the policy has no price.
    """
    worth = "" if bill.consumer_hour is None else f" worth {money(bill, value)}"
    return f"{value:,.2f} {scaled(bill.members_per_pod)}-hours{worth}"


def money(bill: DecisionBill, value: float) -> str:
    """Return what so many hours of the bill cost, in money. Raises ``ValueError`` for a bill without a price."""
    if bill.consumer_hour is None:
        raise ValueError("the bill has no price of a consumer's hour")
    return f"{value * bill.members_per_pod * bill.consumer_hour:,.2f}"
