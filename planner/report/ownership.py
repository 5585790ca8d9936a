"""Owners of each queue over time: one line for each queue, a bar for each time that it had the same owners."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from planner.model.queues import Queue
from planner.report.consumers import Mark, Marks

Owners = Mapping[Queue, tuple[str, ...]]

ROW, BAR, TOP = 16, 12, 22
"""Heights in CSS pixels: a queue's line, the bar in it, and the axis above all."""

MOST_QUEUES = 64
"""Lines drawn; queues beyond are shown as a number."""

MOST_TICKS = 7
TICKS_S = (5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


@dataclass(frozen=True, slots=True)
class Bar:
    """So long a queue had these owners; ``left`` and ``width`` in percent of the drawing. No marks: no owner."""

    marks: tuple[Mark, ...]
    left: float
    width: float
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """One queue; ``top`` in pixels."""

    name: str
    top: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Ownership:
    """The drawing; ``ticks`` are (percent, time of day). ``marks`` are all owners in it."""

    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    marks: tuple[Mark, ...]
    height: int
    hidden: int


def ownership(observations: Sequence[tuple[datetime, Owners]], marks: Marks) -> Ownership:
    """Return the drawing of two or more observations, oldest first; each one holds until the next."""
    queues = sorted({queue for _, owners in observations for queue in owners if not queue.is_retry})
    begins, end = observations[0][0], observations[-1][0]
    span_s = max((end - begins).total_seconds(), 1.0)

    def share(at: datetime) -> float:
        return round(100 * (at - begins).total_seconds() / span_s, 3)

    lines = tuple(
        Line(
            str(queue),
            TOP + ROW * number,
            tuple(
                Bar(tuple(marks[name] for name in names), share(since), round(share(until) - share(since), 3), tip)
                for names, since, until in _stretches(observations, queue)
                for tip in [f"{queue}: {' and '.join(names) or 'nobody'} from {since:%H:%M:%S} to {until:%H:%M:%S}"]
            ),
        )
        for number, queue in enumerate(queues[:MOST_QUEUES])
    )
    return Ownership(
        lines=lines,
        ticks=tuple((share(at), f"{at:%H:%M:%S}") for at in _ticks(begins, end)),
        marks=tuple(marks),
        height=TOP + ROW * len(lines),
        hidden=max(0, len(queues) - MOST_QUEUES),
    )


def _stretches(
    observations: Sequence[tuple[datetime, Owners]], queue: Queue
) -> Iterator[tuple[tuple[str, ...], datetime, datetime]]:
    """Yield the queue's owners with the first observation of them and the first one without them."""
    times = [at for at, _ in observations]
    numbered_owners = [(owners.get(queue, ()), number) for number, (_, owners) in enumerate(observations[:-1])]
    for names, together in groupby(numbered_owners, key=lambda pair: pair[0]):
        numbers = [number for _, number in together]
        yield names, times[numbers[0]], times[numbers[-1] + 1]


def _ticks(begins: datetime, end: datetime) -> Iterator[datetime]:
    span_s = (end - begins).total_seconds()
    step = next((s for s in TICKS_S if span_s / s <= MOST_TICKS), TICKS_S[-1])
    first = -(-begins.timestamp() // step) * step
    at = begins + timedelta(seconds=first - begins.timestamp())
    while at <= end:
        yield at
        at += timedelta(seconds=step)
