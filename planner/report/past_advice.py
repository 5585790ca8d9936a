"""The page of ``planner advise --prometheus``: every group's last days as they were, and as they could have been."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from planner import __version__
from planner.backtest.play import Run
from planner.backtest.recorded import NotPlayable
from planner.backtest.review import Review
from planner.report import words
from planner.report.doctor import check_page
from planner.report.page import template
from planner.storage.files import write_atomically

TEMPLATE = "past_advice.html.j2"
FILTERS = ("moment", "number", "percent", "rate", "duration", "hours")


@dataclass(frozen=True, slots=True)
class Column:
    """One of the three: hours, rebalances, late minutes, cost in consumer-hours, and its bar (0 to 100)."""

    name: str
    hours: float
    rebalances: int
    late_minutes: int
    cost_h: float
    bar: float


@dataclass(frozen=True, slots=True)
class Row:
    """One group with its three columns; what is saved is in words, ``tuning`` says how KEDA was tuned."""

    review: Review
    columns: tuple[Column, ...]
    saves: str
    saved_h: str
    saved_money: str
    anchor: str
    counts: str
    tuning: str


def write_past_advice_page(
    path: Path,
    reviews: Sequence[Review],
    others: Sequence[NotPlayable],
    span: tuple[datetime, datetime, float],
    price: float | None,
) -> Path:
    """Write the page as one self-contained file and return its path; raises as ``check_page`` does.

    ``span`` is since, until and the seconds between two readings; ``price`` is of one consumer for an hour.
    """
    check_page(path)
    return write_atomically(path, render_past_advice(reviews, others, span, price))


def render_past_advice(
    reviews: Sequence[Review],
    others: Sequence[NotPlayable],
    span: tuple[datetime, datetime, float],
    price: float | None,
) -> str:
    """Return the page's HTML; equal answers give equal pages."""
    since, until, step_s = span
    rows = [_row(index, it, price) for index, it in enumerate(reviews)]
    html: str = template(TEMPLATE, FILTERS).render(
        head=_head(reviews, price),
        facts=_facts(reviews),
        rows=rows,
        risky=[row for row in rows if row.review.risks],
        others=others,
        since=since,
        until=until,
        step_s=step_s,
        price=price,
        version=__version__,
    )
    return html


def _head(reviews: Sequence[Review], price: float | None) -> str:
    if not reviews:
        return "No group's past can be compared"
    saved = sum(it.saved_h(it.planner) for it in reviews)
    groups = words.number(len(reviews))
    if saved <= 0:
        return f"{groups} groups: nothing to save"
    return f"{groups} groups: {words.hours(saved)} h to save{_in_money(saved, price)}"


def _facts(reviews: Sequence[Review]) -> tuple[tuple[str, str, str], ...]:
    past = [it.recorded.past for it in reviews]
    planner = [it.planner.totals for it in reviews]

    def change(before: float, after: float) -> str:
        return f"{words.number(before)} → {words.number(after)}"

    hours = f"{words.hours(sum(it.hours for it in past))} → {words.hours(sum(it.hours for it in planner))}"
    late = change(sum(it.late_minutes for it in past), sum(it.late_minutes for it in planner))
    moves = change(sum(it.rebalances for it in past), sum(it.rebalances for it in planner))
    return (
        ("Consumer-hours", hours, "As it was, and under the planner."),
        ("Late minutes", late, "Minutes in which some message waited longer than a minute."),
        ("Rebalances", moves, "As it was: at least, as readings miss what changes back between two of them."),
    )


def _row(index: int, it: Review, price: float | None) -> Row:
    prices, past = it.recorded.scenario.prices, it.recorded.past
    most = max(it.past_cost_h, it.planner.cost_h(prices), it.keda.cost_h(prices), 1e-9)

    def of(name: str, run: Run) -> Column:
        totals, cost = run.totals, run.cost_h(prices)
        return Column(name, totals.hours, totals.rebalances, totals.late_minutes, cost, 100 * cost / most)

    was = Column(
        "as it was", past.hours, past.rebalances, past.late_minutes, it.past_cost_h, 100 * it.past_cost_h / most
    )
    columns = (was, of("planner", it.planner), of("KEDA, tuned", it.keda))
    saved_h = it.saved_h(it.planner)
    return Row(
        review=it,
        columns=columns,
        saves=_saves(saved_h, price),
        saved_h=words.hours(saved_h),
        saved_money="" if price is None else _money(saved_h, price),
        anchor=f"g{index}",
        counts=words.span(past.fewest, past.most),
        tuning=it.keda.tuning,
    )


def _saves(hours: float, price: float | None) -> str:
    if hours < 0:
        return f"the planner costs {words.hours(-hours)} h more{_in_money(-hours, price)}"
    return f"the planner saves {words.hours(hours)} h{_in_money(hours, price)}"


def _in_money(hours: float, price: float | None) -> str:
    return "" if price is None else f", {_money(hours, price)} in money"


def _money(hours: float, price: float) -> str:
    return f"{hours * price:,.2f}"
