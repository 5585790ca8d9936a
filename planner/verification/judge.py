"""``judge``: the forecast against what was seen, figure by figure."""

import math
from collections.abc import Iterator
from datetime import datetime

from planner.rollout.plan import Forecast
from planner.simulation.outcome import Messages, Seconds
from planner.verification.seen import Between, Seen
from planner.verification.verdict import Figure, Fit, Verdict

MARGIN = 1e-9
"""Rounding alone is no miss."""


def judge(forecast: Forecast, seen: Seen, at: datetime) -> Verdict:
    """Return the verdict, always with the same figures in the same order.

    A figure is inside when all of what was seen lies in the forecast, outside when none of it does, and unknown where
    nobody can tell. Of utilisation and wait, forecast at the upper rate, only more is a miss.

    Forecast 4 to 7 moved queues: 5 seen is inside, 8 is outside, 6 to 9 is unknown.
    """
    return Verdict(at, tuple(_figure(*one) for one in _pairs(forecast, seen)))


def _pairs(forecast: Forecast, seen: Seen) -> Iterator[tuple[str, str, Between | None, Between | None]]:
    moved, cost = forecast.moved_queues, forecast.cost
    yield "moved queues", "queues", _range(moved.fewest, moved.most), seen.moved_queues
    yield "longest pause", "seconds", _spread(cost.pause_seconds) if cost else None, seen.pause_seconds
    yield "longest stall", "seconds", _spread(cost.stall_seconds) if cost else None, seen.stall_seconds
    yield "duplicates", "messages", _spread(cost.duplicates) if cost else None, seen.duplicates
    yield "settled after", "seconds", _spread(cost.settle_seconds) if cost else None, seen.settle_seconds
    yield "drained after", "seconds", _spread(cost.drained_seconds) if cost else None, seen.drained_seconds
    yield "busiest consumer", "share", _at_most(forecast.utilisation), seen.utilisation
    yield "wait of a new message", "seconds", _at_most(forecast.wait_seconds), seen.wait_seconds


def _figure(name: str, unit: str, forecast: Between | None, seen: Between | None) -> Figure:
    fit = _fit(forecast, seen)
    return Figure(
        name=name,
        unit=unit,
        low=forecast.low if forecast else None,
        high=forecast.high if forecast else None,
        seen_low=seen.low if seen else None,
        seen_high=seen.high if seen and math.isfinite(seen.high) else None,
        fit=fit,
        sentence=f"{name}: forecast {_told(forecast, unit, 'unknown')}, seen {_told(seen, unit, 'not')}",
    )


def _fit(forecast: Between | None, seen: Between | None) -> Fit:
    if forecast is None or seen is None:
        return Fit.UNKNOWN
    low, high = forecast.low - MARGIN, forecast.high + MARGIN
    if seen.low > high or seen.high < low:
        return Fit.OUTSIDE
    return Fit.INSIDE if low <= seen.low and seen.high <= high else Fit.UNKNOWN


def _range(fewest: int | None, most: int | None) -> Between | None:
    return None if fewest is None or most is None else Between(fewest, most)


def _spread(spread: Seconds | Messages | None) -> Between | None:
    return None if spread is None else Between(spread.p05, spread.p95)


def _at_most(value: float | None) -> Between | None:
    return None if value is None else Between(0.0, value)


def _told(figure: Between | None, unit: str, nothing: str) -> str:
    if figure is None:
        return nothing
    if math.isinf(figure.high):
        return f"at least {_number(figure.low)} {unit}"
    low, high = _number(figure.low), _number(figure.high)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"
