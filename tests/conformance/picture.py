"""Forecast against observation, one panel a kind of change, as one SVG without script."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.report.extra import vegalite_to_svg
from tests.conformance.report import ENOUGH, Compared, Point

Spec = dict[str, Any]

TITLES = {"pause_s": "longest pause, s", "settle_s": "settled after, s", "duplicates": "duplicates"}
COVERED, MISSED, INTERVAL = "#2166ac", "#d6604d", "#c9ced6"
COLUMNS = 3


def write_picture(compared: Sequence[Compared], measure: str, path: Path) -> None:
    """Write one figure of all transitions: the intervals as bars, what was seen as dots, kinds with few cases left out.

    Within a kind the transitions stand in the order of what was forecast, so that a trend is one of the forecast.
    """
    panels = []
    for kind in sorted({one.record.kind for one in compared}):
        points = [
            point for one in compared for point in one.points if one.record.kind == kind and point.measure == measure
        ]
        if len(points) >= ENOUGH:
            panels.append(_panel(kind, points))
    spec: Spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": TITLES[measure],
        "background": "white",
        "columns": COLUMNS,
        "concat": panels,
        "config": {"aria": False, "font": "sans-serif", "view": {"stroke": None}},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vegalite_to_svg(spec))


def _panel(kind: str, points: Sequence[Point]) -> Spec:
    ordered = sorted(points, key=lambda point: (point.forecast["p50"], point.forecast["p95"], point.record.id))
    values = [
        {"place": place, "low": point.forecast["p05"], "high": point.forecast["p95"], "seen": point.seen}
        | {"colour": COVERED if point.is_covered else MISSED}
        for place, point in enumerate(ordered)
    ]
    x: Spec = {"field": "place", "type": "quantitative", "axis": None}
    covered = sum(point.is_covered for point in points)
    return {
        "title": {"text": f"{kind}: {covered} of {len(points)}", "fontSize": 12, "anchor": "start"},
        "width": 250,
        "height": 130,
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "rule", "color": INTERVAL, "strokeWidth": 3},
                "encoding": {
                    "x": x,
                    "y": {"field": "low", "type": "quantitative", "title": None},
                    "y2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "circle", "size": 16, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": {"field": "seen", "type": "quantitative", "title": None},
                    "color": {"field": "colour", "type": "nominal", "scale": None},
                },
            },
        ],
    }
