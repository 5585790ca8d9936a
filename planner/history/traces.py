"""The intervals of ``planner.history.intervals`` for one queue as whole columns, without a loop over rows.

Times are whole microseconds since 1970 (UTC), offsets and lag whole messages; owners are numbers of a list that the
caller keeps, 0 for nobody. A value that is not known is 0 in its column and False in the column beside it.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.history.intervals import GAP_FACTOR
from planner.history.message_age import REACH

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MICROS = 1_000_000
REACH_MICROS = int(REACH.total_seconds()) * MICROS


@dataclass(frozen=True, slots=True)
class Trace:
    """The samples of one queue, oldest first, each time once."""

    at: Ints
    broker_offset: Ints
    consumer_offset: Ints
    is_committed: Flags
    lag: Ints
    is_lag_known: Flags
    owners: Ints


@dataclass(frozen=True, slots=True)
class TraceState:
    """What the past of a queue shows about its next samples; the last point of the curve is its last sample."""

    curve_at: Ints
    curve_offset: Ints
    consumer_offset: int | None
    lag: int | None
    moved_at: int | None
    known_owners: int


@dataclass(frozen=True, slots=True)
class IntervalColumns:
    """One row an interval, as ``QueueInterval``; NaN where a figure is not known."""

    started_at: Ints
    ended_at: Ints
    broker_offset: Ints
    consumer_offset: Ints
    is_committed: Flags
    lag: Ints
    is_lag_known: Flags
    arrived: Ints
    consumed: Ints
    is_consumed_known: Flags
    is_gap: Flags
    commit_age_s: Floats
    owners: Ints
    moved_from: Ints
    lag_s: Floats
    lag_s_is_least: Flags


def trace_intervals(
    trace: Trace, state: TraceState | None, sample_every_s: float
) -> tuple[IntervalColumns, TraceState | None]:
    """Return the intervals of the samples after ``state``, and the state after them.

    Samples that the state knows already are left out; without any sample at all there is no state.
    """
    past = 0 if state is None else len(state.curve_at)
    whole = _join(trace, state)
    if len(whole.at) == 0:
        return _intervals(whole, past, np.empty(0), whole.owners, _no_ages(0), sample_every_s), None
    moved_at = _moved_at(whole, past, state)
    known_owners = _last_known(whole.owners)
    start, ages = _ages(whole)
    columns = _intervals(whole, max(past, 1), moved_at, known_owners, ages, sample_every_s)
    return columns, TraceState(
        curve_at=whole.at[start:],
        curve_offset=whole.broker_offset[start:],
        consumer_offset=int(whole.consumer_offset[-1]) if whole.is_committed[-1] else None,
        lag=int(whole.lag[-1]) if whole.is_lag_known[-1] else None,
        moved_at=None if np.isnan(moved_at[-1]) else int(moved_at[-1]),
        known_owners=int(known_owners[-1]),
    )


def _join(trace: Trace, state: TraceState | None) -> Trace:
    """Return the state's curve and then what is new; of the curve only the last point was a whole sample."""
    if state is None:
        return trace
    past = len(state.curve_at)
    fresh = trace.at > state.curve_at[-1]
    return Trace(
        at=np.concatenate([state.curve_at, trace.at[fresh]]),
        broker_offset=np.concatenate([state.curve_offset, trace.broker_offset[fresh]]),
        consumer_offset=np.concatenate([_at_end(past, state.consumer_offset), trace.consumer_offset[fresh]]),
        is_committed=np.concatenate([_at_end(past, state.consumer_offset is not None) > 0, trace.is_committed[fresh]]),
        lag=np.concatenate([_at_end(past, state.lag), trace.lag[fresh]]),
        is_lag_known=np.concatenate([_at_end(past, state.lag is not None) > 0, trace.is_lag_known[fresh]]),
        owners=np.concatenate([_at_end(past, state.known_owners), trace.owners[fresh]]),
    )


def _at_end(count: int, value: int | None) -> Ints:
    column = np.zeros(count, dtype=np.int64)
    column[-1] = value or 0
    return column


def _moved_at(whole: Trace, past: int, state: TraceState | None) -> Floats:
    """Return when the consumer offset was last observed to move, or nothing waited; NaN without such a time."""
    moved = (whole.is_lag_known & (whole.lag == 0)) | (np.diff(whole.consumer_offset, prepend=0) != 0)
    moved |= np.diff(whole.is_committed, prepend=False)
    moved[: max(past, 1)] = False
    # Microseconds since 1970 are below 2^53: exact as floats.
    at = np.where(moved, whole.at.astype(np.float64), np.nan)
    if state is not None and state.moved_at is not None:
        at[past - 1] = state.moved_at
    last = np.maximum.accumulate(np.where(np.isnan(at), -1, np.arange(len(at))))
    moved_at: Floats = np.where(last >= 0, at[last], np.nan)
    return moved_at


def _last_known(owners: Ints) -> Ints:
    """Return for each row the newest owners that were not nobody, 0 where there were none yet."""
    last = np.maximum.accumulate(np.where(owners > 0, np.arange(len(owners)), 0))
    known: Ints = owners[last]
    return known


@dataclass(frozen=True, slots=True)
class _Ages:
    lag_s: Floats
    is_least: Flags


def _no_ages(count: int) -> _Ages:
    return _Ages(np.full(count, np.nan), np.zeros(count, dtype=np.bool_))


def _ages(whole: Trace) -> tuple[int, _Ages]:
    """Return where the curve that is still needed starts, and the age of the oldest waiting message in each row."""
    rows = np.arange(len(whole.at))
    resets = np.diff(whole.broker_offset, prepend=whole.broker_offset[:1]) < 0
    since_reset = np.maximum.accumulate(np.where(resets, rows, 0))
    of = np.where(whole.is_committed, whole.consumer_offset, whole.broker_offset)
    before = np.minimum(_last_at_most(whole.broker_offset, of, np.flatnonzero(resets)), rows)
    needed = np.maximum.accumulate(np.where(whole.is_lag_known, before, 0))
    in_reach = np.searchsorted(whole.at, whole.at - REACH_MICROS)
    start = np.maximum(np.maximum(since_reset, in_reach), np.concatenate([[0], needed[:-1]]))
    is_least = whole.is_lag_known & (whole.lag > 0) & (before < start)
    age_s = np.where(is_least, (whole.at - whole.at[start]) / MICROS, _interpolated_s(whole, of, before))
    age_s = np.where(whole.lag == 0, 0.0, age_s)
    return max(int(start[-1]), int(needed[-1])), _Ages(np.where(whole.is_lag_known, age_s, np.nan), is_least)


def _last_at_most(ascending: Ints, limits: Ints, resets: Ints) -> Ints:
    """Return for each row the last row, since the reset before it, at which ``ascending`` is at most ``limits``."""
    row_numbers = np.empty(len(limits), dtype=np.int64)
    borders = [0, *resets.tolist(), len(limits)]
    for first, end in pairwise(borders):
        row_numbers[first:end] = first - 1 + np.searchsorted(ascending[first:end], limits[first:end], side="right")
    return row_numbers


def _interpolated_s(whole: Trace, of: Ints, before: Ints) -> Floats:
    left = np.maximum(before, 0)
    right = np.minimum(left + 1, len(whole.at) - 1)
    arrived = whole.broker_offset[right] - whole.broker_offset[left]
    share = (of - whole.broker_offset[left]) / np.where(arrived == 0, 1, arrived)
    within = whole.at[right] - whole.at[left]
    age_s: Floats = np.rint((whole.at - whole.at[left]) - share * within) / MICROS
    return age_s


def _intervals(
    whole: Trace, first: int, moved_at: Floats, known_owners: Ints, ages: _Ages, sample_every_s: float
) -> IntervalColumns:
    before, after = slice(first - 1 if first else 0, -1), slice(first, None)
    owners, known_before = whole.owners[after], known_owners[before]
    is_moved = (owners > 0) & (known_before > 0) & (owners != known_before)
    is_consumed_known = whole.is_committed[after] & whole.is_committed[before]
    spent = whole.at[after] - whole.at[before]
    return IntervalColumns(
        started_at=whole.at[before],
        ended_at=whole.at[after],
        broker_offset=whole.broker_offset[after],
        consumer_offset=whole.consumer_offset[after],
        is_committed=whole.is_committed[after],
        lag=whole.lag[after],
        is_lag_known=whole.is_lag_known[after],
        arrived=whole.broker_offset[after] - whole.broker_offset[before],
        consumed=whole.consumer_offset[after] - whole.consumer_offset[before],
        is_consumed_known=is_consumed_known,
        is_gap=spent / MICROS > GAP_FACTOR * sample_every_s,
        commit_age_s=(whole.at[after] - moved_at[after]) / MICROS,
        owners=owners,
        moved_from=np.where(is_moved, known_before, 0),
        lag_s=ages.lag_s[after],
        lag_s_is_least=ages.is_least[after],
    )
