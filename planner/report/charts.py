"""The course as Vega-Lite, rendered to SVG without network or script; colours are CSS variables of the page."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup

from planner.report.backtest import BacktestChart, SettingPoints
from planner.report.demand import DemandChart
from planner.report.extra import vegalite_to_svg
from planner.report.trend import Foreseen, Trend

Spec = dict[str, Any]

INK, SOFT, RULE = "var(--ink)", "var(--soft)", "var(--rule)"
ARRIVAL, CONSUMPTION, LAG = "var(--arrival)", "var(--consumption)", "var(--lag)"
CHOSEN, STAYING, AHEAD = "var(--chosen)", "var(--staying)", "var(--ahead)"
GAP = "url(#gap)"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, sans-serif"

NUMBERS = "datum.value >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')"

WAIT_TICKS = (0, 10, 60, 600, 3600, 36_000, 360_000)
WAITS = (
    "datum.value >= 3600 ? datum.value / 3600 + ' h' : "
    "datum.value >= 60 ? datum.value / 60 + ' min' : datum.value + ' s'"
)

LATE_TICKS = (0, 1, 10, 100, 1000, 10_000)

WIDE, NARROW = 880, 350
"""Widths in CSS pixels of the two versions: a scaled-down picture would have text too small to read."""

AXIS_EXTENT = 38

MOST_NUMBERED = 15
"""Rebalances that carry their number of queues; more would write over each other."""


def trend_svg(trend: Trend, width: int) -> Markup:
    """Return the charts as one inline SVG."""
    return Markup(vegalite_to_svg(trend_spec(trend, width)))  # noqa: S704  # made from our figures, names never enter


def trend_spec(trend: Trend, width: int) -> Spec:
    """Return rates, lag and consumers below each other over one time axis."""
    plot = width - AXIS_EXTENT - 14
    panels = [
        _panel(trend, "Messages per second", [*_rates(trend), _forecast_label(trend)], width=plot, height=130),
        _panel(trend, "Messages waiting", list(_lag(trend)), width=plot, height=170),
        _panel(trend, "Consumers", list(_consumers(trend)), width=plot, height=70, times=True),
    ]
    return below_each_other(panels)


def demand_svg(chart: DemandChart, width: int) -> Markup:
    """Return a load with what it may be as one inline SVG."""
    return Markup(vegalite_to_svg(demand_spec(chart, width)))  # noqa: S704  # made from our figures alone


def demand_spec(chart: DemandChart, width: int) -> Spec:
    """Return the load so far, the band of four of five possible loads, and their middle."""
    past = [{"at": _ms(point.at), "rate": point.rate} for point in chart.past]
    ahead = [{"at": _ms(at.at), "rate": at.middle, "low": at.low, "high": at.high} for at in chart.ahead]
    band = {
        "data": {"values": ahead},
        "mark": {"type": "area", "color": CHOSEN, "opacity": 0.2, "line": False},
        "encoding": {"y": _y("low"), "y2": {"field": "high"}},
    }
    panel = {
        "width": width - AXIS_EXTENT - 14,
        "height": 220,
        "title": "Messages per second",
        "encoding": {
            "x": {
                "field": "at",
                "type": "temporal",
                "scale": {"type": "utc", "nice": False},
                "axis": {"tickCount": max(2, width // 110), "format": "%H:%M", "grid": False},
            }
        },
        "layer": [
            band,
            _line(past, "rate", ARRIVAL),
            _line(ahead, "rate", CHOSEN, strokeDash=[9, 4], strokeWidth=3),
        ],
    }
    return below_each_other([panel])


def backtest_svg(chart: BacktestChart, width: int) -> Markup:
    """Return recorded load and ordered counts as one inline SVG."""
    return Markup(vegalite_to_svg(backtest_spec(chart, width)))  # noqa: S704  # made from our figures alone


def backtest_spec(chart: BacktestChart, width: int) -> Spec:
    """Return the load, below it each policy's counts, and the longest waits, over the hours since the begin."""
    load = [{"at": hour, "most": most, "load": mean} for hour, mean, most in chart.loads]
    most = {
        "data": {"values": load},
        "mark": {"type": "area", "color": ARRIVAL, "opacity": 0.18, "line": False},
        "encoding": {"y": _y("most")},
    }
    panels = [_hours(chart, width, "Load, in consumers", [most, _line(load, "load", ARRIVAL)])]
    for line in chart.lines:
        steps = [{"at": hour, "count": count} for hour, count in line.steps]
        drawn = _line(steps, "count", line.colour, interpolate="step-after")
        panels.append(_hours(chart, width, f"Consumers, {line.policy}", [drawn]))
    if any(line.waits for line in chart.lines):
        panels.append(_hours(chart, width, "Longest wait", list(_waits(chart))))
    return below_each_other(panels)


def _waits(chart: BacktestChart) -> Iterator[Spec]:
    """Yield the wait from which a minute is late, and each policy's longest waits, the first policy's on top."""
    rule = {"data": {"values": [{"wait": chart.late_after_s}]}, "mark": {"type": "rule", "color": SOFT}}
    yield rule | {"encoding": {"y": _wait_axis(), "x": {"value": 0}, "x2": {"value": "width"}}}
    for line in reversed(chart.lines):
        values = [{"at": round(hour, 4), "wait": round(wait, 1)} for hour, wait in line.waits]
        mark = {"type": "line", "color": line.colour, "strokeWidth": 1.5, "interpolate": "step-after"}
        yield {"data": {"values": values}, "mark": mark, "encoding": {"y": _wait_axis()}}


def _wait_axis() -> Spec:
    """Return an axis on which waits of seconds and of hours can both be read."""
    extent = {"minExtent": AXIS_EXTENT, "maxExtent": AXIS_EXTENT}
    axis: Spec = {"values": list(WAIT_TICKS), "labelExpr": WAITS, "labelOverlap": "greedy", "domain": False, **extent}
    scale: Spec = {"type": "symlog", "constant": 10, "domainMin": 0, "nice": False}
    return {"field": "wait", "type": "quantitative", "scale": scale, "axis": axis}


def settings_svg(points: Sequence[SettingPoints], width: int) -> Markup:
    """Return what each setting of each policy cost as one inline SVG."""
    return Markup(vegalite_to_svg(settings_spec(points, width)))  # noqa: S704  # made from our figures alone


def settings_spec(points: Sequence[SettingPoints], width: int) -> Spec:
    """Return late minutes over consumer-hours: a point a setting, a line along the best, a dot for the chosen one."""
    layers: list[Spec] = []
    for it in reversed(points):
        frontier = {"type": "line", "color": it.colour, "strokeWidth": 1.2, "opacity": 0.7}
        every = {"type": "point", "color": it.colour, "size": 14, "opacity": 0.55, "filled": True}
        chosen = {"type": "point", "color": it.colour, "size": 90, "opacity": 1, "filled": True}
        layers += [_settings(it.frontier, frontier), _settings(it.all, every)]
        layers += [_settings((it.chosen,), chosen)] if it.chosen else []
    panel = {"width": width - AXIS_EXTENT - 14, "height": 300, "title": "Late minutes", "layer": layers}
    return below_each_other([panel])


def _settings(points: Sequence[tuple[float, int]], mark: Spec) -> Spec:
    extent = {"minExtent": AXIS_EXTENT, "maxExtent": AXIS_EXTENT}
    late: Spec = {"values": list(LATE_TICKS), "labelExpr": NUMBERS, "domain": False, **extent}
    hours: Spec = {"grid": False, "tickCount": 6, "labelExpr": NUMBERS, "title": "consumer-hours", "titleColor": SOFT}
    return {
        "data": {"values": [{"hours": at, "late": minutes} for at, minutes in points]},
        "mark": mark,
        "encoding": {
            "x": {"field": "hours", "type": "quantitative", "scale": {"zero": False, "nice": True}, "axis": hours},
            "y": {
                "field": "late", "type": "quantitative", "axis": late,
                "scale": {"type": "symlog", "constant": 1, "domainMin": 0, "nice": False},
            },
        },
    }  # fmt: skip


def _hours(chart: BacktestChart, width: int, title: str, layers: list[Spec]) -> Spec:
    scale = {"domain": [0, chart.hours], "nice": False}
    axis: Spec = {"grid": False, "tickCount": max(3, width // 110)}
    return {
        "width": width - AXIS_EXTENT - 14,
        "height": 90,
        "title": title,
        "layer": layers,
        "encoding": {"x": {"field": "at", "type": "quantitative", "scale": scale, "axis": axis}},
    }


def below_each_other(panels: Sequence[Spec]) -> Spec:
    """Return one chart of several ones over a common time axis."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "padding": {"left": 0, "right": 8, "top": 4, "bottom": 4},
        "spacing": 18,
        "vconcat": list(panels),
        "config": theme(),
    }


def theme() -> Spec:
    """Return fonts and colours that all charts share."""
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


def _panel(trend: Trend, title: str, layers: list[Spec], *, width: int, height: int, times: bool = False) -> Spec:
    return {
        "width": width,
        "height": height,
        "title": title,
        "layer": [_ahead(trend), *_gaps(trend), *_rebalance_rules(trend), *layers, _now(trend)],
        "encoding": {"x": _time_axis(trend, width, times)},
        "resolve": {"scale": {"y": "shared"}},
    }


def _time_axis(trend: Trend, width: int, times: bool) -> Spec:
    axis: Spec = {"grid": False, "tickCount": max(4, width // 110), "labels": times, "ticks": True}
    if times:
        is_long = (trend.until - trend.begins).total_seconds() > 100_000
        axis |= {"format": "%d %b" if is_long else "%H:%M", "labelFlush": True}
    domain = [_ms(trend.begins), _ms(trend.until)]
    return {"field": "at", "type": "temporal", "scale": {"type": "utc", "domain": domain, "nice": False}, "axis": axis}


def _y(field: str, counts: Sequence[int] = ()) -> Spec:
    """Return a vertical axis from 0; ``counts``, where given, are its only ticks and leave room above."""
    extent = {"minExtent": AXIS_EXTENT, "maxExtent": AXIS_EXTENT}
    axis: Spec = {"tickCount": 4, "labelExpr": NUMBERS, "domain": False, **extent}
    scale: Spec = {"domainMin": 0, "nice": True}
    if counts:
        axis |= {"values": sorted({0, *counts}), "labelOverlap": "greedy"}
        scale = {"domain": [0, 1.6 * max(1, *counts)], "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def _line(values: list[Spec], field: str, colour: str, *, counts: Sequence[int] = (), **mark: Any) -> Spec:
    style = {"type": "line", "color": colour, "strokeWidth": 2, "invalid": "break-paths-show-domains", **mark}
    return {"data": {"values": values}, "mark": style, "encoding": {"y": _y(field, counts)}}


def _rates(trend: Trend) -> Iterator[Spec]:
    values = [{"at": _ms(p.at), "arrival": p.arrival, "consumption": p.consumption} for p in trend.measured]
    yield _line(values, "consumption", CONSUMPTION, strokeDash=[6, 3])
    yield _line(values, "arrival", ARRIVAL)
    if trend.upper_rate is not None:
        end_points = [{"at": _ms(at), "rate": trend.upper_rate} for at in (trend.now, trend.until)]
        yield _line(end_points, "rate", ARRIVAL, strokeDash=[2, 3])


def _floor(trend: Trend) -> Spec:
    """Return an unseen point at 10 messages: an axis needs a height where nothing ever waited."""
    return {
        "data": {"values": [{"at": _ms(trend.now), "lag": 10}]},
        "mark": {"type": "point", "color": LAG, "opacity": 0},
    } | {"encoding": {"y": _y("lag")}}


def _lag(trend: Trend) -> Iterator[Spec]:
    yield _floor(trend)
    values = [{"at": _ms(p.at), "lag": p.lag} for p in trend.measured]
    area = {"type": "area", "color": LAG, "opacity": 0.16, "line": False, "invalid": "break-paths-show-domains"}
    yield {"data": {"values": values}, "mark": area, "encoding": {"y": _y("lag")}}
    yield _line(values, "lag", LAG)
    if trend.staying:
        yield _line(_ahead_values(trend.staying), "lag", STAYING, strokeDash=[2, 4], strokeWidth=2.5)
    if trend.chosen:
        yield _line(_ahead_values(trend.chosen), "lag", CHOSEN, strokeDash=[9, 4], strokeWidth=3)


def _consumers(trend: Trend) -> Iterator[Spec]:
    most = max((point.consumers or 0 for point in trend.measured), default=0)
    counts = (trend.count_now, trend.count_then, most)
    values = [{"at": _ms(p.at), "consumers": p.consumers} for p in trend.measured]
    yield _line(values, "consumers", INK, counts=counts, interpolate="step-before")
    end_points = [{"at": _ms(at), "consumers": trend.count_then} for at in (trend.now, trend.until)]
    yield _line(end_points, "consumers", CHOSEN, counts=counts, strokeDash=[9, 4], strokeWidth=3)
    yield from _moves(trend)


def _moves(trend: Trend) -> Iterator[Spec]:
    """Yield triangles, and numbers while they have room."""
    moves = {"values": [{"at": _ms(r.at), "moved": r.moved} for r in trend.rebalances]}
    mark = {"type": "point", "shape": "triangle-down", "filled": True, "color": INK, "size": 60, "opacity": 1}
    yield {"data": moves, "mark": mark, "encoding": {"y": {"value": 4}}}
    if len(trend.rebalances) <= MOST_NUMBERED:
        text = {"type": "text", "align": "left", "dx": 7, "color": INK}
        yield {"data": moves, "mark": text, "encoding": {"y": {"value": 5}, "text": {"field": "moved"}}}


def _ahead_values(line: tuple[Foreseen, ...]) -> list[Spec]:
    return [{"at": _ms(point.at), "lag": round(point.lag, 3)} for point in line]


def _forecast_label(trend: Trend) -> Spec:
    text = {"type": "text", "text": "forecast", "align": "left", "dx": 4, "color": SOFT, "fontSize": 11}
    return {"data": {"values": [{"at": _ms(trend.now)}]}, "mark": text, "encoding": {"y": {"value": 120}}}


def _ahead(trend: Trend) -> Spec:
    values = [{"at": _ms(trend.now), "until": _ms(trend.until)}]
    return _span(values, AHEAD)


def _gaps(trend: Trend) -> Iterator[Spec]:
    if trend.gaps:
        yield _span([{"at": _ms(max(start, trend.begins)), "until": _ms(end)} for start, end in trend.gaps], GAP)


def _span(values: list[Spec], fill: str) -> Spec:
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "color": fill, "opacity": 1},
        "encoding": {"x2": {"field": "until"}},
    }


def _rebalance_rules(trend: Trend) -> Iterator[Spec]:
    if trend.rebalances:
        values = [{"at": _ms(rebalance.at)} for rebalance in trend.rebalances]
        yield {"data": {"values": values}, "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1, "opacity": 0.7}}


def _now(trend: Trend) -> Spec:
    return {"data": {"values": [{"at": _ms(trend.now)}]}, "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2}}


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
