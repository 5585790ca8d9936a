"""The course as Vega-Lite, rendered to SVG without network or script; colours are CSS variables of the page."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from markupsafe import Markup

from planner.report.course import Course, Foreseen
from planner.report.extra import vegalite_to_svg

Spec = dict[str, Any]

INK, SOFT, RULE = "var(--ink)", "var(--soft)", "var(--rule)"
ARRIVAL, CONSUMPTION, LAG = "var(--arrival)", "var(--consumption)", "var(--lag)"
CHOSEN, STAYING, AHEAD = "var(--chosen)", "var(--staying)", "var(--ahead)"
GAP = "url(#gap)"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, sans-serif"

NUMBERS = "datum.value >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')"

WIDE, NARROW = 880, 350
"""Widths in CSS pixels of the two versions: a scaled-down picture would have text too small to read."""

AXIS_EXTENT = 38


def course_svg(course: Course, width: int) -> Markup:
    """Return the charts as one inline SVG."""
    return Markup(vegalite_to_svg(course_spec(course, width)))  # noqa: S704  # made from our figures, names never enter


def course_spec(course: Course, width: int) -> Spec:
    """Return rates, lag and consumers below each other over one time axis."""
    plot = width - AXIS_EXTENT - 14
    panels = [
        _panel(course, "Messages per second", list(_rates(course)), width=plot, height=130),
        _panel(course, "Messages waiting", list(_lag(course)), width=plot, height=170),
        _panel(course, "Consumers", list(_consumers(course)), width=plot, height=52, times=True),
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "padding": {"left": 0, "right": 8, "top": 4, "bottom": 4},
        "spacing": 18,
        "vconcat": panels,
        "config": _config(),
    }


def _config() -> Spec:
    return {
        "aria": False,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": SOFT,
            "labelFontSize": 12,
            "domainColor": RULE,
            "tickColor": RULE,
            "gridColor": RULE,
            "title": None,
        },
        "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "frame": "group", "offset": 8},
        "text": {"font": FONT, "fontSize": 12},
    }


def _panel(course: Course, title: str, layers: list[Spec], *, width: int, height: int, times: bool = False) -> Spec:
    return {
        "width": width,
        "height": height,
        "title": title,
        "layer": [_ahead(course), *_gaps(course), *_rebalance_rules(course), *layers, _now(course)],
        "encoding": {"x": _time_axis(course, width, times)},
        "resolve": {"scale": {"y": "shared"}},
    }


def _time_axis(course: Course, width: int, times: bool) -> Spec:
    axis: Spec = {"grid": False, "tickCount": max(3, width // 110), "labels": times, "ticks": True}
    if times:
        is_long = (course.until - course.begins).total_seconds() > 100_000
        axis |= {"format": "%d %b" if is_long else "%H:%M", "labelFlush": True}
    domain = [_ms(course.begins), _ms(course.until)]
    return {"field": "at", "type": "temporal", "scale": {"type": "utc", "domain": domain, "nice": False}, "axis": axis}


def _y(field: str, ticks: int = 4) -> Spec:
    extent = {"minExtent": AXIS_EXTENT, "maxExtent": AXIS_EXTENT}
    axis = {"tickCount": ticks, "labelExpr": NUMBERS, "domain": False, **extent}
    return {"field": field, "type": "quantitative", "scale": {"zero": True, "nice": True}, "axis": axis}


def _line(values: list[Spec], field: str, colour: str, **mark: Any) -> Spec:
    style = {"type": "line", "color": colour, "strokeWidth": 2, "invalid": "break-paths-show-domains", **mark}
    return {"data": {"values": values}, "mark": style, "encoding": {"y": _y(field)}}


def _rates(course: Course) -> Iterator[Spec]:
    values = [{"at": _ms(p.at), "arrival": p.arrival, "consumption": p.consumption} for p in course.measured]
    yield _line(values, "consumption", CONSUMPTION, strokeDash=[6, 3])
    yield _line(values, "arrival", ARRIVAL)
    if course.upper_rate is not None:
        ends = [{"at": _ms(at), "rate": course.upper_rate} for at in (course.now, course.until)]
        yield _line(ends, "rate", ARRIVAL, strokeDash=[2, 3])


def _lag(course: Course) -> Iterator[Spec]:
    values = [{"at": _ms(p.at), "lag": p.lag} for p in course.measured]
    area = {"type": "area", "color": LAG, "opacity": 0.16, "line": False, "invalid": "break-paths-show-domains"}
    yield {"data": {"values": values}, "mark": area, "encoding": {"y": _y("lag")}}
    yield _line(values, "lag", LAG)
    if course.staying:
        yield _line(_ahead_values(course.staying), "lag", STAYING, strokeDash=[2, 4], strokeWidth=2.5)
    if course.chosen:
        yield _line(_ahead_values(course.chosen), "lag", CHOSEN, strokeDash=[9, 4], strokeWidth=3)


def _consumers(course: Course) -> Iterator[Spec]:
    values = [{"at": _ms(p.at), "consumers": p.consumers} for p in course.measured]
    step = {"interpolate": "step-before"}
    yield _line(values, "consumers", INK, **step)
    ends = [{"at": _ms(at), "consumers": course.count_then} for at in (course.now, course.until)]
    yield _line(ends, "consumers", CHOSEN if course.chosen else STAYING, strokeDash=[9, 4] if course.chosen else [2, 4])
    moves = [{"at": _ms(r.at), "moved": r.moved} for r in course.rebalances]
    mark = {"type": "point", "shape": "triangle-down", "filled": True, "color": INK, "size": 70, "opacity": 1}
    yield {"data": {"values": moves}, "mark": mark, "encoding": {"y": {"value": 2}}}


def _ahead_values(line: tuple[Foreseen, ...]) -> list[Spec]:
    return [{"at": _ms(point.at), "lag": round(point.lag, 3)} for point in line]


def _ahead(course: Course) -> Spec:
    values = [{"at": _ms(course.now), "until": _ms(course.until)}]
    return _span(values, AHEAD)


def _gaps(course: Course) -> Iterator[Spec]:
    if course.gaps:
        yield _span([{"at": _ms(start), "until": _ms(end)} for start, end in course.gaps], GAP)


def _span(values: list[Spec], fill: str) -> Spec:
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "color": fill, "opacity": 1, "clip": True},
        "encoding": {"x2": {"field": "until"}},
    }


def _rebalance_rules(course: Course) -> Iterator[Spec]:
    if course.rebalances:
        values = [{"at": _ms(rebalance.at)} for rebalance in course.rebalances]
        yield {"data": {"values": values}, "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1, "opacity": 0.7}}


def _now(course: Course) -> Spec:
    return {"data": {"values": [{"at": _ms(course.now)}]}, "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2}}


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
