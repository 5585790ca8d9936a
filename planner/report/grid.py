"""Every queue as a cell: rows are topic and broker, columns queue ids, each cell says who owns it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from planner.model.queues import Queue
from planner.report import words
from planner.report.case import Case
from planner.report.consumers import NOBODY, Mark

COLUMNS = 16
"""Cells on one line; longer rows go on below."""

MOST_CELLS = 2_000
"""Cells of one grid; topics and brokers beyond are one line each, so that the page stays light."""

MOST_FOLDED = 40
"""Folded lines; what lies beyond is shown as one sum."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One queue: its owner's mark, and who had it before when it moves (``other``, else ``None``)."""

    queue_id: int
    mark: Mark
    other: Mark | None
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """At most ``COLUMNS`` queue ids from ``first`` on; ``None`` where there is no such queue."""

    first: int
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """The queues of one topic on one broker."""

    topic: str
    broker: str
    queues: int
    moved: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """A topic and broker, or several, that are shown in words only."""

    name: str
    queues: int
    moved: int
    owners: int


@dataclass(frozen=True, slots=True)
class Grid:
    """One drawing of ownership."""

    title: str
    columns: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Grids:
    """Ownership before and, where it changes, after; ``folded`` is what neither shows cell by cell."""

    pictures: tuple[Grid, ...]
    folded: tuple[Folded, ...]
    queues: int
    moved: int
    unowned: int
    is_compact: bool


def grids(case: Case) -> Grids:
    """Return the grids of queues and their owners."""
    rows = [
        (location[0], " ".join(location[1:]), list(queues))
        for location, queues in groupby(sorted(case.owners_now), key=lambda queue: queue.place)
    ]
    shown, folded = _fold(rows)
    now, then = case.owners_now, case.owners_then
    columns = min(COLUMNS, max((queue.number + 1 for _, _, queues in shown for queue in queues), default=1))
    pictures = [Grid("Now", columns, _rows(case, shown, now, then, columns))]
    if not case.is_hold:
        pictures.append(Grid("After", columns, _rows(case, shown, then, now, columns)))
    return Grids(
        pictures=tuple(pictures),
        folded=tuple(_describe_folded(case, folded)),
        queues=len(now),
        moved=len(case.moved),
        unowned=sum(owner is None for owner in now.values()),
        is_compact=len(now) > 200,
    )


Group = tuple[str, str, list[Queue]]


def _fold(rows: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """Return the rows that are drawn and those shown in words; rows are never cut."""
    shown: list[Group] = []
    folded: list[Group] = []
    left = MOST_CELLS
    for row in rows:
        if folded or len(row[2]) > left:
            folded.append(row)
        else:
            shown.append(row)
            left -= len(row[2])
    return shown, folded


def _rows(
    case: Case,
    rows: Sequence[Group],
    owners: Mapping[Queue, str | None],
    others: Mapping[Queue, str | None],
    columns: int,
) -> tuple[Row, ...]:
    drawn = []
    for topic, broker, queues in rows:
        cells = {queue.number: _cell(case, queue, owners.get(queue), others.get(queue)) for queue in queues}
        moved = sum(cell.other is not None for cell in cells.values())
        drawn.append(Row(topic, broker, len(queues), moved, _lines(cells, columns)))
    return tuple(drawn)


def _lines(cells: Mapping[int, Cell], columns: int) -> tuple[Line, ...]:
    """Return the lines that hold at least one queue: ids may have wide holes."""
    starts = sorted({queue_id - queue_id % columns for queue_id in cells})
    return tuple(Line(start, tuple(cells.get(start + offset) for offset in range(columns))) for start in starts)


def _cell(case: Case, queue: Queue, owner: str | None, other: str | None) -> Cell:
    mark = case.marks[owner]
    if owner == other:
        return Cell(queue.number, mark, None, f"{queue}: {mark.client}")
    return Cell(queue.number, mark, case.marks[other], f"{queue}: {mark.client}; moves")


def _describe_folded(case: Case, rows: Sequence[Group]) -> list[Folded]:
    named = [
        _sum(f"{topic} on {broker}" if broker else topic, case, queues) for topic, broker, queues in rows[:MOST_FOLDED]
    ]
    rest = [queue for _, _, queues in rows[MOST_FOLDED:] for queue in queues]
    if rest:
        named.append(_sum(f"{len(rows) - MOST_FOLDED} more topics and brokers", case, rest))
    return named


def _sum(name: str, case: Case, queues: Sequence[Queue]) -> Folded:
    owners = {case.owners_then.get(queue) for queue in queues} - {None}
    return Folded(name, len(queues), sum(queue in case.moved for queue in queues), len(owners))


@dataclass(frozen=True, slots=True)
class Person:
    """One consumer in the key: what it owns and carries now and then; a dash where it is not there."""

    mark: Mark
    queues_now: str
    queues_then: str
    rate_then: str
    utilisation_now: str
    utilisation_then: str


def key(case: Case) -> tuple[Person, ...]:
    """Return the consumers that appear in the grids, in the order of their marks."""
    now, then = _counts(case.owners_now), _counts(case.owners_then)
    loads_now = {load.client: load for load in case.staying.loads} if case.staying else {}
    loads_then = {load.client: load for load in case.chosen.loads} if case.chosen else {}
    present = {*case.snapshot.clients, *(loads_then if not case.is_hold else ())}
    people = []
    for mark in case.marks:
        if mark.client not in present:
            continue
        before, after = loads_now.get(mark.client), loads_then.get(mark.client)
        people.append(
            Person(
                mark=mark,
                queues_now=NOBODY.code if mark.is_new else str(now.get(mark.client, 0)),
                queues_then=str(then.get(mark.client, 0)) if after or case.is_hold else NOBODY.code,
                rate_then=words.per_second(after.arrival_rate) if after else NOBODY.code,
                utilisation_now=words.percent(before.utilisation) if before else NOBODY.code,
                utilisation_then=words.percent(after.utilisation) if after else NOBODY.code,
            )
        )
    return tuple(people)


def _counts(owners: Mapping[Queue, str | None]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for owner in owners.values():
        if owner is not None:
            counts[owner] = counts.get(owner, 0) + 1
    return counts
