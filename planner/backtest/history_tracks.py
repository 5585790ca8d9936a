"""A group's past out of rows of the lag history, in NumPy alone: a million rows take well below a second."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.backtest.scenario import Floats, Ints
from planner.backtest.tracks import HOLE_FACTOR, GroupTracks, MemberTrack, QueueTrack
from planner.model.queues import Queue

THIN_S: Final = 60.0
"""Spans within so many seconds become a single span: a backtest plays whole minutes."""
JITTER_S: Final = 4.0
"""So much before or after its minute a sample may come and still end that minute."""
NO_SPAN: Final = "the lag history has no interval of its queues in that time: ask for other --days or another --until"
NO_OWNER: Final = "no member owned a queue in all that time: the history counts members by the queues that they own"


@dataclass(frozen=True, slots=True, eq=False)
class HistorySpans:
    """Intervals of one group's queues, in whichever order: every array has one value a row.

    ``queue`` is an index into ``queues``, which are in no order; ``ends`` in seconds since 1970, ``seconds`` how long
    the interval is, ``arrival`` and ``consumption`` in messages per second over it, ``lag`` in messages at its end. NaN
    is unknown.
    """

    queues: Sequence[Queue]
    queue: Ints
    ends: Floats
    seconds: Floats
    arrival: Floats
    consumption: Floats
    lag: Floats


def tracks_of_history(system: str, group: str, spans: HistorySpans, counts: MemberTrack) -> GroupTracks | str:
    """Return what the history shows, at most about one span a minute, or why it shows too little.

    Rates of spans within a minute are means by their time, unknown where any of them is; the lag is the last one's.
    A span of more than ``HOLE_FACTOR`` times the usual one is a hole. ``counts`` may be in any order, too.
    """
    if not len(spans.ends):
        return NO_SPAN
    if not (counts.members > 0).any():
        return NO_OWNER
    newest = float(spans.ends.max())
    thinned = _thin(_sort(spans), newest)
    period_s = float(np.median(thinned.seconds))
    queues = [_track(thinned, rows, HOLE_FACTOR * period_s) for rows in _rows_by_queue(thinned.queue)]
    return GroupTracks(system, group, period_s, queues, _thin_counts(counts, newest, HOLE_FACTOR * period_s))


def _sort(spans: HistorySpans) -> HistorySpans:
    """Return the spans by queue, as the clients sort queues, and time."""
    in_order = sorted(range(len(spans.queues)), key=spans.queues.__getitem__)
    rank_of: Ints = np.empty(len(in_order), dtype=np.intp)
    rank_of[in_order] = np.arange(len(in_order))
    ranks = rank_of[spans.queue]
    order = np.lexsort((spans.ends, ranks))
    queues = [spans.queues[index] for index in in_order]
    return _take_rows(spans, order, queues, ranks[order])


def _take_rows(spans: HistorySpans, rows: Ints, queues: Sequence[Queue], queue: Ints) -> HistorySpans:
    columns = (spans.ends, spans.seconds, spans.arrival, spans.consumption, spans.lag)
    return HistorySpans(queues, queue, *(column[rows] for column in columns))


def _minutes(ends: Floats, newest: float) -> Floats:
    """Return for each time in how many minutes before the newest one it lies."""
    return np.floor((newest - ends + JITTER_S) / THIN_S)


def _thin(spans: HistorySpans, newest: float) -> HistorySpans:
    """Return the sorted spans with those of one queue and minute as one."""
    minutes = _minutes(spans.ends, newest)
    begins = np.flatnonzero(_changes(spans.queue) | _changes(minutes))
    last = np.append(begins[1:], len(minutes)) - 1
    seconds = np.add.reduceat(spans.seconds, begins)
    return HistorySpans(
        queues=spans.queues,
        queue=spans.queue[last],
        ends=spans.ends[last],
        seconds=seconds,
        arrival=np.add.reduceat(spans.arrival * spans.seconds, begins) / seconds,
        consumption=np.add.reduceat(spans.consumption * spans.seconds, begins) / seconds,
        lag=spans.lag[last],
    )


def _changes(values: Floats | Ints) -> NDArray[np.bool_]:
    """Return where a value is another one than that before it; the first one is."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _rows_by_queue(queue: Ints) -> list[slice]:
    begins = np.flatnonzero(_changes(queue)).tolist()
    return [slice(first, last) for first, last in zip(begins, [*begins[1:], len(queue)], strict=True)]


def _track(spans: HistorySpans, rows: slice, hole_s: float) -> QueueTrack:
    queue = spans.queues[int(spans.queue[rows.start])]
    seconds = spans.seconds[rows]
    known = np.where(seconds > hole_s, np.nan, seconds)
    return QueueTrack([queue], spans.ends[rows], known, spans.arrival[rows], spans.consumption[rows], spans.lag[rows])


def _thin_counts(counts: MemberTrack, newest: float, hole_s: float) -> MemberTrack:
    """Return the last count of each minute, in order of time; a hole has no seconds."""
    order = np.argsort(counts.ends, kind="stable")
    ends, seconds, members = counts.ends[order], counts.seconds[order], counts.members[order]
    begins = np.flatnonzero(_changes(_minutes(ends, newest)))
    last = np.append(begins[1:], len(ends)) - 1
    lasted = np.add.reduceat(seconds, begins)
    return MemberTrack(ends[last], np.where(lasted > hole_s, np.nan, lasted), members[last])
