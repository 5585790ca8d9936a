"""The page of ``planner demand``: the load as it was, what it may be, and how such forecasts did."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import mean

from planner import __version__
from planner.demand.outlook import Outlook, describe_widening
from planner.demand.recent import Span
from planner.report import words
from planner.report.doctor import check_page
from planner.report.extra import load
from planner.report.page import template
from planner.storage.files import write_atomically

TEMPLATE = "demand.html.j2"
FILTERS = ("moment", "number", "percent", "rate", "per_second")

MOST_POINTS = 480
"""More of the past would lie on one pixel."""

AHEAD_SHARE = 0.25
"""The two hours ahead take this part of the chart at least, so that they can be seen beside days of the past."""


@dataclass(frozen=True, slots=True)
class Past:
    """Mean messages per second over a stretch that ends at ``at``; ``None`` where it is not known."""

    at: datetime
    rate: float | None


@dataclass(frozen=True, slots=True)
class Ahead:
    """Possible messages per second at a time to come."""

    at: datetime
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class DemandChart:
    """What the chart shows, all of it in messages per second."""

    now: datetime
    past: tuple[Past, ...]
    ahead: tuple[Ahead, ...]

    @property
    def sentence(self) -> str:
        """The chart in words, for those who cannot see it."""
        last = self.ahead[-1]
        return (
            f"The load since {words.moment(self.past[0].at)}, and in two hours {words.rate(last.low)} to "
            f"{words.rate(last.high)} in four of five cases, {words.rate(last.middle)} in the middle."
        )


def demand_chart(now: datetime, spans: Sequence[Span], outlook: Outlook) -> DemandChart:
    """Return the chart: of the past no more than shows what is ahead at ``AHEAD_SHARE`` of the width."""
    ahead = _ahead(now, outlook)
    longest = (ahead[-1].at - now) * (1 / AHEAD_SHARE - 1)
    shown = [span for span in spans if now - longest <= span.at <= now]
    return DemandChart(now, tuple(_thinned(shown)), ahead)


def _thinned(spans: Sequence[Span]) -> list[Past]:
    together = max(1, -(-len(spans) // MOST_POINTS))
    return [_mean_of(spans[first : first + together]) for first in range(0, len(spans), together)]


def _mean_of(spans: Sequence[Span]) -> Past:
    known = [span.arrival_rate for span in spans if span.arrival_rate is not None]
    return Past(spans[-1].at, mean(known) if len(known) == len(spans) else None)


def _ahead(now: datetime, outlook: Outlook) -> tuple[Ahead, ...]:
    """Return the possible loads: each stretch's figures hold over all of it."""
    level = Ahead(now, outlook.level, outlook.level, outlook.level)
    middles = [
        Ahead(
            now + timedelta(minutes=(stretch.from_minutes + stretch.to_minutes) / 2),
            stretch.low,
            stretch.middle,
            stretch.high,
        )
        for stretch in outlook.stretches
    ]
    last = outlook.stretches[-1]
    return (level, *middles, Ahead(now + timedelta(minutes=last.to_minutes), last.low, last.middle, last.high))


def write_demand_page(path: Path, group: str, now: datetime, spans: Sequence[Span], outlook: Outlook) -> Path:
    """Write the page as one self-contained file and return its path; raises as ``check_page`` does."""
    check_page(path)
    return write_atomically(path, render_demand(group, now, spans, outlook))


def render_demand(group: str, now: datetime, spans: Sequence[Span], outlook: Outlook) -> str:
    """Return the page's HTML; equal loads give equal pages."""
    page = template(TEMPLATE, FILTERS)
    load("vl_convert")
    from planner.report import charts  # noqa: PLC0415  # it needs the extra

    chart = demand_chart(now, spans, outlook)
    known = words.duration(60.0 * outlook.minutes)
    html: str = page.render(
        group=group,
        now=now,
        outlook=outlook,
        known=known,
        first=outlook.stretches[0],
        last=outlook.stretches[-1],
        widening=describe_widening(outlook.stretches),
        told=chart.sentence,
        wide=charts.demand_svg(chart, charts.WIDE),
        narrow=charts.demand_svg(chart, charts.NARROW),
        version=__version__,
    )
    return html
