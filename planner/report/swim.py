"""Where everything stands in the drawing of the lanes: across as shares of its width, down in CSS pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.report.consumers import Mark
from planner.report.lanes import Band, Lane, Lanes

ROW, BAR, GAP, TOP = 15, 9, 10, 24
"""A row, the bar in it, the room between lanes, and the axis above them."""

BEFORE = 0.08
"""What is shown before the change, as a share of what is shown after it."""

Rows = dict[tuple[str, Band], float]
"""The middle of each band's row on a member's lane."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of one row: ``owns`` (a member delivers), ``waits`` (nobody does) or ``both`` (two do)."""

    kind: str
    mark: Mark
    left: float
    width: float
    top: float


@dataclass(frozen=True, slots=True)
class Link:
    """A band's line from the row that it leaves to the row that it comes to."""

    left: float
    top: float
    right: float
    bottom: float
    is_doubled: bool


@dataclass(frozen=True, slots=True)
class Stripe:
    """The ground of one lane."""

    lane: Lane
    top: float
    height: float


@dataclass(frozen=True, slots=True)
class Swim:
    """The drawing: ``ticks`` are positions and labels of the axis."""

    height: float
    ticks: tuple[tuple[float, str], ...]
    stripes: tuple[Stripe, ...]
    bars: tuple[Bar, ...]
    links: tuple[Link, ...]


def swim(lanes: Lanes) -> Swim:
    """Return where everything stands."""
    stripes = tuple(_stripes(lanes.lanes))
    rows = {
        (stripe.lane.mark.client, band): stripe.top + ROW * (number + 0.5)
        for stripe in stripes
        for number, band in enumerate((*stripe.lane.leaving, *stripe.lane.coming))
    }
    return Swim(
        height=stripes[-1].top + stripes[-1].height + GAP if stripes else TOP,
        ticks=tuple((_share(lanes, tick), f"{tick:g} s") for tick in lanes.ticks),
        stripes=stripes,
        bars=tuple(bar for band in lanes.bands for bar in _bars(lanes, band, rows)),
        links=tuple(_link(lanes, band, rows) for band in lanes.bands),
    )


def _stripes(lanes: Sequence[Lane]) -> Iterator[Stripe]:
    top = float(TOP)
    for lane in lanes:
        height = float(ROW * max(lane.rows, 2))
        yield Stripe(lane, top, height)
        top += height + GAP


def _bars(lanes: Lanes, band: Band, rows: Rows) -> Iterator[Bar]:
    old, new = rows[band.old.client, band], rows[band.new.client, band]
    yield _bar(lanes, "owns", band.old, -_before(lanes), band.dropped_s, old)
    if band.overlaps:
        yield _bar(lanes, "owns", band.new, band.taken_s, lanes.until_s, new)
        yield _bar(lanes, "both", band.new, band.taken_s, band.dropped_s, new)
        return
    if band.taken_s > band.dropped_s:
        yield _bar(lanes, "waits", band.new, band.dropped_s, band.taken_s, new)
    yield _bar(lanes, "owns", band.new, band.taken_s, lanes.until_s, new)


def _bar(lanes: Lanes, kind: str, mark: Mark, begins_s: float, ends_s: float, middle: float) -> Bar:
    left = _share(lanes, begins_s)
    return Bar(kind, mark, left, round(_share(lanes, ends_s) - left, 3), middle - BAR / 2)


def _link(lanes: Lanes, band: Band, rows: Rows) -> Link:
    return Link(
        _share(lanes, band.dropped_s),
        rows[band.old.client, band],
        _share(lanes, band.taken_s),
        rows[band.new.client, band],
        band.is_doubled,
    )


def _share(lanes: Lanes, seconds: float) -> float:
    before = _before(lanes)
    return round(100.0 * (seconds + before) / (lanes.until_s + before), 3)


def _before(lanes: Lanes) -> float:
    """Return how many seconds before the change are shown."""
    return BEFORE * lanes.until_s
