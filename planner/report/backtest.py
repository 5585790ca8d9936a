"""The page of ``planner backtest``: what each policy cost, which counts it ordered for which load, who waited."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from pathlib import Path

import numpy as np

from planner import __version__
from planner.backtest.moments import Moment, lost_hours
from planner.backtest.play import Run
from planner.backtest.recorded import RecordedGroup
from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Scenario
from planner.report import words
from planner.report.doctor import check_page
from planner.report.extra import load
from planner.report.page import template
from planner.storage.files import write_atomically

TEMPLATE = "backtest.html.j2"
FILTERS = ("number", "duration", "rate", "hours")
PLANNER = "planner"

MOST_POINTS = 600
"""More of the load would lie on one pixel."""
MOST_STEPS = 2000
"""More changes of one policy would be a block of colour; of so many only the first are drawn, and the page says so."""
COLOURS = ("var(--chosen)", "var(--staying)", "var(--lag)", "var(--consumption)")
"""Of the policies in their order; what is beyond has its line in the table, and grey points, alone."""
COLOUR_OF_OTHERS = "var(--soft)"
HOURS_DRAWN = 2.5
"""Settings that take so many times the hours of the cheapest policy would press the others together."""


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """What a policy did: hours since the begin, and the count from then on, or the longest wait in seconds."""

    policy: str
    colour: str
    steps: tuple[tuple[float, int], ...]
    waits: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class BacktestChart:
    """Load in consumers by hour since the begin (its mean, and its most within each stretch), counts, and waits.

    A minute counts as late in which some message waits longer than ``late_after_s``.
    """

    hours: float
    late_after_s: float
    loads: tuple[tuple[float, float, float], ...]
    lines: tuple[PolicyLine, ...]


@dataclass(frozen=True, slots=True)
class SettingPoints:
    """Consumer-hours and late minutes of one policy's settings: all, those that none is better than, and the chosen.

    ``chosen`` is ``None`` where it takes too many hours to be drawn.
    """

    policy: str
    colour: str
    all: tuple[tuple[float, int], ...]
    frontier: tuple[tuple[float, int], ...]
    chosen: tuple[float, int] | None


@dataclass(frozen=True, slots=True)
class Row:
    """One policy's line: its run, cost in consumer-hours, cost over the least, and a bar (0 to 100)."""

    run: Run
    cost_h: float
    over: float
    bar: float
    share_late: float


def backtest_chart(scenario: Scenario, runs: Sequence[Run]) -> BacktestChart:
    """Return the chart's figures."""
    hours = scenario.steps * STEP_S / SECONDS_AN_HOUR
    lines = [
        PolicyLine(run.policy, colour, _steps(scenario.start, run, hours), _waits(run, hours))
        for run, colour in zip(runs, COLOURS, strict=False)
    ]
    return BacktestChart(hours, scenario.late_after_s, tuple(_loads(scenario)), tuple(lines))


def _steps(start: int, run: Run, hours: float) -> tuple[tuple[float, int], ...]:
    ordered = [(second / SECONDS_AN_HOUR, count) for second, count in run.changes[:MOST_STEPS]]
    last = ordered[-1][1] if ordered else start
    return ((0.0, start), *ordered, *([(hours, last)] if len(run.changes) <= MOST_STEPS else []))


def _waits(run: Run, hours: float) -> tuple[tuple[float, float], ...]:
    waits = run.longest_waits
    begins = [hours * stretch / len(waits) for stretch in range(len(waits))]
    return (*zip(begins, waits, strict=True), *((hours, wait) for wait in waits[-1:]))


def _loads(scenario: Scenario) -> list[tuple[float, float, float]]:
    totals = scenario.played.sum(axis=1) / scenario.interval_s / scenario.capacity
    edges = np.unique(np.linspace(0, len(totals), min(MOST_POINTS, len(totals)) + 1).astype(int)).tolist()
    hour = scenario.interval_s / SECONDS_AN_HOUR
    return [
        (round(last * hour, 4), round(float(totals[first:last].mean()), 3), round(float(totals[first:last].max()), 3))
        for first, last in pairwise(edges)
    ]


def setting_points(runs: Sequence[Run], most_hours: float) -> list[SettingPoints]:
    """Return each policy's settings with at most so many consumer-hours, in the order of ``runs``."""
    colours = chain(COLOURS, repeat(COLOUR_OF_OTHERS))
    return [_points(run, colour, most_hours) for run, colour in zip(runs, colours, strict=False)]


def _points(run: Run, colour: str, most_hours: float) -> SettingPoints:
    settings = {(round(it.hours, 2), it.late_minutes) for it in (*run.settings, run.totals) if it.hours <= most_hours}
    frontier: list[tuple[float, int]] = []
    for hours, late in sorted(settings):
        if not frontier or late < frontier[-1][1]:
            frontier.append((hours, late))
    chosen = (round(run.totals.hours, 2), run.totals.late_minutes)
    return SettingPoints(
        run.policy, colour, tuple(sorted(settings)), tuple(frontier), chosen if chosen in settings else None
    )


def write_backtest_page(
    path: Path, scenario: Scenario, runs: Sequence[Run], recorded: RecordedGroup | None = None
) -> Path:
    """Write the page as one self-contained file and return its path; raises as ``check_page`` does."""
    check_page(path)
    return write_atomically(path, render_backtest(scenario, runs, recorded))


def render_backtest(scenario: Scenario, runs: Sequence[Run], recorded: RecordedGroup | None = None) -> str:
    """Return the page's HTML; equal runs give equal pages. ``recorded`` is the real group whose load was played."""
    page = template(TEMPLATE, FILTERS)
    load("vl_convert")
    from planner.report import charts  # noqa: PLC0415  # it needs the extra

    chart = backtest_chart(scenario, runs)
    rows = _rows(scenario, runs)
    cheapest = min(rows, key=lambda row: row.cost_h)
    points = setting_points(runs, HOURS_DRAWN * cheapest.run.totals.hours)
    html: str = page.render(
        head=f"{words.duration(scenario.steps * STEP_S)} of load under {words.number(len(runs))} policies",
        scenario=scenario,
        rows=rows,
        recorded=recorded,
        least=min(row.cost_h / row.over for row in rows),
        cheapest=cheapest.run.policy,
        lost=_lost(scenario, runs),
        chart=chart,
        points=points,
        others=[run.policy for run in runs[len(COLOURS) :]],
        beyond=[it.policy for it in points if it.chosen is None],
        settings_wide=charts.settings_svg(points, charts.WIDE),
        settings_narrow=charts.settings_svg(points, charts.NARROW),
        cut=[run.policy for run in runs[: len(COLOURS)] if len(run.changes) > MOST_STEPS],
        told=_sentence(rows, cheapest),
        wide=charts.backtest_svg(chart, charts.WIDE),
        narrow=charts.backtest_svg(chart, charts.NARROW),
        version=__version__,
    )
    return html


@dataclass(frozen=True, slots=True)
class Lost:
    """Where the planner lost against the cheapest of the others."""

    other: str
    moments: tuple[Moment, ...]


def _lost(scenario: Scenario, runs: Sequence[Run]) -> Lost | None:
    """Return the hours in which the planner cost most over the best of the others, if both were played."""
    own = next((run for run in runs if run.policy == PLANNER), None)
    others = [run for run in runs if run.policy != PLANNER]
    if own is None or not others:
        return None
    best = min(others, key=lambda run: run.cost_h(scenario.prices))
    return Lost(best.policy, tuple(lost_hours(own, best, scenario.prices)))


def _rows(scenario: Scenario, runs: Sequence[Run]) -> list[Row]:
    costs = [run.cost_h(scenario.prices) for run in runs]
    least, most = max(min(costs), 1e-9), max(*costs, 1e-9)
    late_h = scenario.prices.late_minute_h
    return [
        Row(run, cost, cost / least, 100 * cost / most, 100 * late_h * run.totals.late_minutes / most)
        for run, cost in zip(runs, costs, strict=True)
    ]


def _sentence(rows: Sequence[Row], cheapest: Row) -> str:
    others = ", ".join(f"{row.run.policy} {row.over:.2f}" for row in rows if row is not cheapest)
    return f"The load in consumers, and the counts that policies ordered. {cheapest.run.policy} costs least; {others}."
