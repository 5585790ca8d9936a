"""``judge``: the forecast against what was observed, figure by figure."""

import math
from collections.abc import Iterator
from datetime import datetime

from planner.rollout.plan import Forecast
from planner.simulation.outcome import Messages, Seconds
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.verdict import Figure, Fit, Verdict

MARGIN = 1e-9
"""Rounding alone is no miss."""


def judge(forecast: Forecast, observed: ObservedChange, at: datetime) -> Verdict:
    """Return the verdict, always with the same figures in the same order.

    A figure is inside when all of what was observed lies in the forecast, outside when none of it does, and unknown
    where it cannot be decided. Of utilisation and wait, forecast at the upper rate, only more is a miss.

    Forecast 4 to 7 moved queues: 5 observed is inside, 8 is outside, 6 to 9 is unknown.
    """
    return Verdict(at, tuple(_figure(*pair) for pair in _pairs(forecast, observed)))


def _pairs(forecast: Forecast, observed: ObservedChange) -> Iterator[tuple[str, str, Between | None, Between | None]]:
    moved, cost = forecast.moved_queues, forecast.cost
    yield "moved queues", "queues", _range(moved.fewest, moved.most), observed.moved_queues
    yield "longest pause", "seconds", _middle_range(cost.pause_seconds) if cost else None, observed.pause_seconds
    yield "longest stall", "seconds", _middle_range(cost.stall_seconds) if cost else None, observed.stall_seconds
    yield "duplicates", "messages", _middle_range(cost.duplicates) if cost else None, observed.duplicates
    yield "settled after", "seconds", _middle_range(cost.settle_seconds) if cost else None, observed.settle_seconds
    yield "drained after", "seconds", _middle_range(cost.drained_seconds) if cost else None, observed.drained_seconds
    yield "busiest consumer", "share", _at_most(forecast.utilisation), observed.utilisation
    yield "wait of a new message", "seconds", _at_most(forecast.wait_seconds), observed.wait_seconds


def _figure(name: str, unit: str, forecast: Between | None, observed: Between | None) -> Figure:
    fit = _fit(forecast, observed)
    return Figure(
        name=name,
        unit=unit,
        low=forecast.low if forecast else None,
        high=forecast.high if forecast else None,
        seen_low=observed.low if observed else None,
        seen_high=observed.high if observed and math.isfinite(observed.high) else None,
        fit=fit,
        sentence=f"{name}: forecast {_figure_text(forecast, unit, 'unknown')}, "
        f"seen {_figure_text(observed, unit, 'not')}",
    )


def _fit(forecast: Between | None, observed: Between | None) -> Fit:
    if forecast is None or observed is None:
        return Fit.UNKNOWN
    low, high = forecast.low - MARGIN, forecast.high + MARGIN
    if observed.low > high or observed.high < low:
        return Fit.OUTSIDE
    return Fit.INSIDE if low <= observed.low and observed.high <= high else Fit.UNKNOWN


def _range(fewest: int | None, most: int | None) -> Between | None:
    return None if fewest is None or most is None else Between(fewest, most)


def _middle_range(trials: Seconds | Messages | None) -> Between | None:
    return None if trials is None else Between(trials.p05, trials.p95)


def _at_most(value: float | None) -> Between | None:
    return None if value is None else Between(0.0, value)


def _figure_text(figure: Between | None, unit: str, nothing: str) -> str:
    if figure is None:
        return nothing
    if math.isinf(figure.high):
        return f"at least {_number(figure.low)} {unit}"
    low, high = _number(figure.low), _number(figure.high)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"
