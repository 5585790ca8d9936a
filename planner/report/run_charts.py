"""A run as Vega-Lite: rates, lag and consumers over one time axis, the plans' steps as bands behind them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from planner.execution.ports import StoredPlan
from planner.report.charts import (
    ARRIVAL,
    AXIS_EXTENT,
    CHOSEN,
    CONSUMPTION,
    INK,
    LAG,
    NARROW,
    NUMBERS,
    SOFT,
    STAYING,
    WIDE,
    Spec,
    below_each_other,
)
from planner.report.extra import vegalite_to_svg
from planner.report.run import Observation, Run

__all__ = ["NARROW", "WIDE", "run_spec", "run_svg"]

RATE_OVER_S = 4.0
"""Rates are means over at least so long: offsets are stored every few seconds, so shorter ones only jump."""

STEP_COLOURS = {
    "startConsumers": "var(--start)",
    "stopConsumers": "var(--stop)",
    "markVictims": "var(--stop)",
    "updateTemplate": "var(--start)",
    "createDeployment": "var(--start)",
    "deleteDeployment": "var(--stop)",
}
WAITING = "var(--ahead)"


def run_svg(run: Run, width: int) -> Markup:
    """Return the charts as one inline SVG."""
    return Markup(vegalite_to_svg(run_spec(run, width)))  # noqa: S704  # made from our figures and words


def run_spec(run: Run, width: int) -> Spec:
    """Return rates, lag and consumers below each other."""
    plot = width - AXIS_EXTENT - 14
    notes = list(_notes(run))
    panels = [
        _panel(run, "Messages per second", [*_rates(run.sights), *notes], width=plot, height=130),
        _panel(run, "Messages waiting", list(_lag(run.sights)), width=plot, height=150),
        _panel(run, "Consumers", list(_consumers(run.sights)), width=plot, height=100, times=True),
    ]
    return below_each_other(panels)


def _panel(run: Run, title: str, layers: list[Spec], *, width: int, height: int, times: bool = False) -> Spec:
    axis: Spec = {"grid": False, "tickCount": max(2, width // 150), "labels": times, "format": "%H:%M:%S"}
    scale = {"type": "utc", "domain": [_ms(run.begins), _ms(run.ends)], "nice": False}
    return {
        "width": width,
        "height": height,
        "title": title,
        "layer": [*_bands(run.plans), *_rules(run), *layers],
        "encoding": {"x": {"field": "at", "type": "temporal", "scale": scale, "axis": axis}},
        "resolve": {"scale": {"y": "shared"}},
    }


def _bands(plans: Sequence[StoredPlan]) -> Iterator[Spec]:
    """Yield one band for each step that has begun, from its begin to its end."""
    for stored in plans:
        for progress in stored.status.steps:
            end = progress.finished_at or progress.undone_at
            if end is not None:
                yield {
                    "data": {"values": [{"at": _ms(progress.started_at), "until": _ms(end)}]},
                    "mark": {"type": "rect", "color": STEP_COLOURS.get(progress.kind, WAITING), "opacity": 1},
                    "encoding": {"x2": {"field": "until"}},
                }


def _rules(run: Run) -> Iterator[Spec]:
    if run.notes:
        values = [{"at": _ms(note.at)} for note in run.notes]
        yield {"data": {"values": values}, "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2}}


def _notes(run: Run) -> Iterator[Spec]:
    if run.notes:
        text = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "color": SOFT, "fontSize": 12}
        values = [{"at": _ms(note.at), "text": note.text} for note in run.notes]
        yield {"data": {"values": values}, "mark": text, "encoding": {"y": {"value": 2}, "text": {"field": "text"}}}


def _rates(sights: Sequence[Observation]) -> Iterator[Spec]:
    values = list(_rate_points(sights))
    yield _line(values, "consumed", CONSUMPTION, strokeDash=[6, 3])
    yield _line(values, "arrived", ARRIVAL)


def _rate_points(sights: Sequence[Observation]) -> Iterator[Spec]:
    begin = sights[0]
    for observation in sights[1:]:
        seconds = (observation.at - begin.at).total_seconds()
        if seconds < RATE_OVER_S:
            continue
        arrived, consumed = (
            (observation.arrived - begin.arrived) / seconds,
            (observation.consumed - begin.consumed) / seconds,
        )
        middle = _ms(begin.at) + round(500 * seconds)
        # Members that leave may take offsets back, for a moment: nothing was consumed then.
        yield {"at": middle, "arrived": round(arrived, 1), "consumed": round(max(0.0, consumed), 1)}
        begin = observation


def _lag(sights: Sequence[Observation]) -> Iterator[Spec]:
    values = [{"at": _ms(observation.at), "lag": observation.lag} for observation in sights]
    area = {"type": "area", "color": LAG, "opacity": 0.16, "line": False}
    yield {"data": {"values": values}, "mark": area, "encoding": {"y": _y("lag")}}
    yield _line(values, "lag", LAG)


def _consumers(sights: Sequence[Observation]) -> Iterator[Spec]:
    values = [
        {
            "at": _ms(observation.at),
            "replicas": observation.replicas,
            "ready": observation.ready,
            "members": len(observation.members),
        }
        for observation in sights
    ]
    most = max(max(observation.replicas, observation.ready, len(observation.members)) for observation in sights)
    for field, colour, style in (
        ("replicas", STAYING, {"strokeDash": [2, 4], "strokeWidth": 2.5}),
        ("ready", CHOSEN, {"strokeWidth": 3}),
        ("members", INK, {"strokeWidth": 1.5}),
    ):
        yield _line(_steps(values, field), field, colour, counts=range(most + 1), interpolate="step-after", **style)


def _steps(values: list[Spec], field: str) -> list[Spec]:
    """Return the first, the last and every point that differs from the one before."""
    changed = [after for before, after in pairwise(values) if after[field] != before[field]]
    return [values[0], *changed, values[-1]]


def _line(values: list[Spec], field: str, colour: str, *, counts: Sequence[int] = (), **mark: Any) -> Spec:
    style = {"type": "line", "color": colour, "strokeWidth": 2, **mark}
    return {"data": {"values": values}, "mark": style, "encoding": {"y": _y(field, counts)}}


def _y(field: str, counts: Sequence[int] = ()) -> Spec:
    extent = {"minExtent": AXIS_EXTENT, "maxExtent": AXIS_EXTENT}
    axis: Spec = {"tickCount": 4, "labelExpr": NUMBERS, "domain": False, "title": None, **extent}
    scale: Spec = {"domainMin": 0, "nice": True}
    if counts:
        axis |= {"values": list(counts)}
        scale = {"domain": [0, max(counts) + 0.6], "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
