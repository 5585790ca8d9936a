"""What the check half says of the forecasts: coverage, error and width, by system and kind of change."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from planner.documents.forecast import forecast
from tests.conformance.record import Document, Record

MEASURES = ("pause_s", "stall_s", "duplicates", "settle_s")
STALLS = "stall_s > 0"
"""Of the transitions in which a queue that stays did stall: zeros are easily forecast and hide how those fare."""
ENOUGH = 20
"""Fewer cases than these are shown, and judged by nobody."""
LATE_S = (0.01, 0.03, 0.1)
"""Bounds of how late a machine woke a sleeper: what a table tells apart."""
WANTED_COVERAGE = (0.85, 0.95)
WANTED_WIDTH = 1.5


@dataclass(frozen=True, slots=True)
class Point:
    """One figure of one transition: what was forecast and what was seen."""

    record: Record
    measure: str
    forecast: Mapping[str, float]
    seen: float

    @property
    def is_covered(self) -> bool:
        """True when it lies in the 90 % interval; both are written with milliseconds at best.

        A stall of nothing is one that no log of deliveries shows: anything shorter than ``unseen_s``.
        """
        most = unseen_s(self.record) if self.measure == "stall_s" and self.seen == 0 else self.seen
        return self.forecast["p05"] - 5e-4 <= most and self.seen <= self.forecast["p95"] + 5e-4

    @property
    def error(self) -> float:
        """How far the median was off."""
        return abs(self.forecast["p50"] - self.seen)

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.forecast["p95"] - self.forecast["p05"]


@dataclass(frozen=True, slots=True)
class Compared:
    """One transition beside its forecast."""

    record: Record
    answer: Document
    points: tuple[Point, ...]

    @property
    def is_moved_right(self) -> bool:
        """True when all queues moved that surely do, and others only that may: those have ``moves_in`` in the answer.

        How many moved lies in the forecast's interval. Where no queue has ``moves_in``, exactly those named moved.
        """
        may = {tuple(queue["queue"]) for queue in self.answer["queues"] if "moves_in" in queue}
        shown, seen = _as_set(self.answer["moved"]), _as_set(self.record.observed["moved"])
        count = self.answer["total"]["moved_queues"]
        return shown - may <= seen <= shown | may and (not may or count["p05"] <= len(seen) <= count["p95"])


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one system, kind of change and measure; widths and errors are medians, ``None`` without cases."""

    system: str
    kind: str
    measure: str
    cases: int
    coverage: float
    seen: float
    error: float
    width: float

    @property
    def relative_width(self) -> float:
        """Median width by median value; infinite where mostly nothing was seen and the interval is not empty."""
        if self.width == 0:
            return 0.0
        return self.width / self.seen if self.seen else math.inf


def unseen_s(record: Record) -> float:
    """Return the longest stall that is taken for none: ``QueueLog.stall_s`` wants a wait of two spacings.

    It takes half a spacing off a wait, so that is one and a half spacings of the queue that gets most.
    """
    request = record.request
    queues = request["queues"] if "queues" in request else [q for of in request["partitions"].values() for q in of]
    return 1.5 / max(queue["rate"] for queue in queues)


def compare(record: Record, ask: Callable[[Document], Document] = forecast) -> Compared:
    """Return the record beside the forecast of its request, which ``ask`` gives."""
    answer = ask(record.request)
    return Compared(record, answer, tuple(_points(record, answer)))


def _points(record: Record, answer: Document) -> Iterator[Point]:
    """Yield the figures that both tell; the pause of no queue is no figure."""
    seen = record.observed["total"]
    for measure in MEASURES:
        expected = answer["total"][measure]
        if expected is not None and seen[measure] is not None:
            yield Point(record, measure, expected, seen[measure])


def rows(compared: Iterable[Compared]) -> list[Row]:
    """Return one row for each system, kind and measure, kinds with most cases first."""
    found: dict[tuple[str, str], list[Compared]] = {}
    for one in compared:
        found.setdefault((one.record.system, one.record.kind), []).append(one)
    order = sorted(found, key=lambda key: (key[0], -len(found[key]), key[1]))
    return [
        _row(*key, measure, points)
        for key in order
        for measure in (*MEASURES, STALLS)
        if (points := [point for one in found[key] for point in one.points if _belongs(point, measure)])
    ]


def _belongs(point: Point, measure: str) -> bool:
    if measure == STALLS:
        return point.measure == "stall_s" and point.seen > 0
    return point.measure == measure


def _row(system: str, kind: str, measure: str, points: Sequence[Point]) -> Row:
    return Row(
        system,
        kind,
        measure,
        len(points),
        sum(point.is_covered for point in points) / len(points),
        median(point.seen for point in points),
        median(point.error for point in points),
        median(point.width for point in points),
    )


def markdown(compared: Sequence[Compared]) -> str:
    """Return the table of each system, and how often exactly the right queues were forecast to move."""
    systems = sorted({one.record.system for one in compared})
    tables = [f"{system}\n\n{table([one for one in compared if one.record.system == system])}" for system in systems]
    right = sum(one.is_moved_right for one in compared)
    stalls = [point for one in compared for point in one.points if _belongs(point, STALLS)]
    covered = sum(point.is_covered for point in stalls)
    return "\n\n".join(
        [
            *tables,
            f"Of {len(stalls)} stalls longer than nothing {covered} are covered.",
            f"The forecast queues moved, and no others, in {right} of {len(compared)} transitions.",
        ]
    )


def table(compared: Sequence[Compared]) -> str:
    """Return coverage, error and width of one system's transitions, by kind of change and figure."""
    lines = (
        "| Change | Figure | Cases | Covered | Median seen | Median error | Median width | Width / value |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *map(_line, rows(compared)),
    )
    return "\n".join(lines)


def lateness_table(compared: Sequence[Compared]) -> str:
    """Return how many stalls are covered by how late the machine woke a sleeper meanwhile, where that was noted."""
    lines = [
        "| The machine woke sleepers late by | Cases | Covered | Longer than nothing | Covered |",
        "|---|---:|---:|---:|---:|",
    ]
    for least, most in zip((0.0, *LATE_S), (*LATE_S, math.inf), strict=True):
        points = [
            point
            for one in compared
            for point in one.points
            if point.measure == "stall_s" and least <= one.record.setup["late_s"] < most
        ]
        stalls = [point for point in points if _belongs(point, STALLS)]
        span = f"{least * 1000:g} to {most * 1000:g} ms" if math.isfinite(most) else f"{least * 1000:g} ms or more"
        lines.append(f"| {span} | {len(points)} | {_share(points)} | {len(stalls)} | {_share(stalls)} |")
    return "\n".join(lines)


def _share(points: Sequence[Point]) -> str:
    return f"{sum(point.is_covered for point in points) / len(points):.0%}" if points else "–"


def _line(row: Row) -> str:
    few = "" if row.cases >= ENOUGH else " (few)"
    cells = (
        row.kind,
        row.measure,
        f"{row.cases}{few}",
        f"{row.coverage:.0%}",
        *(f"{value:.3g}" for value in (row.seen, row.error, row.width, row.relative_width)),
    )
    return f"| {' | '.join(cells)} |"


def _as_set(queues: Iterable[Sequence[Any]]) -> set[tuple[Any, ...]]:
    return {tuple(queue) for queue in queues}
