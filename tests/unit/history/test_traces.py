"""Whole columns say what the loop over samples says, wherever the columns are cut into parts."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.history.intervals import queue_intervals
from planner.history.traces import IntervalColumns, Ints, Trace, TraceState, trace_intervals
from planner.model.intervals import QueueInterval
from planner.model.membership import Member
from planner.model.queues import MessageQueue
from planner.model.routes import RouteTable
from planner.model.samples import GroupSample, QueueOffsets

QUEUE = MessageQueue("orders", "broker-a", 0)
EVERY_S = 30.0
Row = tuple[int, int, int | None, int]
"""Microseconds since the row before, broker offset, consumer offset, owners (0 for nobody)."""

rows = st.lists(
    st.tuples(
        st.sampled_from([1, 29_999_999, 30_000_000, 30_000_001, 75_000_000, 4 * 3_600_000_000]),
        st.sampled_from([0, 1, 2, 30, 31, 100_000]) | st.integers(0, 2**40),
        st.none() | st.sampled_from([0, 1, 2, 15, 30, 99_999]) | st.integers(0, 2**40),
        st.integers(0, 3),
    ),
    max_size=14,
)


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Return rows whose offsets mostly grow: as drawn, or summed up."""
    drawn = draw(rows)
    if draw(st.booleans()):
        return drawn
    grown, broker = [], 0
    for micros, more, consumer, owners in drawn:
        broker += more % 1000
        grown.append((micros, broker, consumer and min(consumer % 3000, broker), owners))
    return grown


def samples_of(rows: list[Row]) -> list[GroupSample]:
    at = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
    samples = []
    for micros, broker, consumer, owners in rows:
        at += timedelta(microseconds=micros)
        member = Member(f"client-{owners}", "", "JAVA", 513, None, (QUEUE,) if owners else ())
        offsets = (QueueOffsets(QUEUE, broker, consumer),)
        samples.append(GroupSample("rocketmq", "c", "g", at, 0.1, RouteTable(()), (member,), offsets))
    return samples


def trace_of(samples: list[GroupSample], rows: list[Row]) -> Trace:
    offsets = [sample.offsets[0] for sample in samples]
    return Trace(
        at=ints([micros(sample.at) for sample in samples]),
        broker_offset=ints([told.broker_offset for told in offsets]),
        consumer_offset=ints([told.consumer_offset or 0 for told in offsets]),
        is_committed=np.array([told.consumer_offset is not None for told in offsets], dtype=np.bool_),
        lag=ints([told.lag or 0 for told in offsets]),
        is_lag_known=np.array([told.lag is not None for told in offsets], dtype=np.bool_),
        owners=ints([owners for *_, owners in rows]),
    )


def ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def time(value: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)


def intervals_of(columns: IntervalColumns) -> list[QueueInterval]:
    def number(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    return [
        QueueInterval(
            queue=QUEUE,
            started_at=time(int(columns.started_at[n])),
            ended_at=time(int(columns.ended_at[n])),
            seconds=(columns.ended_at[n] - columns.started_at[n]) / 1e6,
            broker_offset=int(columns.broker_offset[n]),
            consumer_offset=int(columns.consumer_offset[n]) if columns.is_committed[n] else None,
            lag=int(columns.lag[n]) if columns.is_lag_known[n] else None,
            arrived=int(columns.arrived[n]),
            consumed=int(columns.consumed[n]) if columns.is_consumed_known[n] else None,
            is_gap=bool(columns.is_gap[n]),
            commit_age_s=number(columns.commit_age_s[n]),
            owners=owners_of(int(columns.owners[n])),
            lag_s=number(columns.lag_s[n]),
            lag_s_is_least=bool(columns.lag_s_is_least[n]),
            moved_from=owners_of(int(columns.moved_from[n])),
        )
        for n in range(len(columns.ended_at))
    ]


def owners_of(number: int) -> tuple[str, ...]:
    return (f"client-{number}",) if number else ()


@settings(max_examples=400, deadline=None)
@given(histories(), st.lists(st.integers(0, 14), max_size=3))
def test_columns_in_any_parts_are_the_intervals_of_the_samples(rows: list[Row], cuts: list[int]) -> None:
    samples = samples_of(rows)
    borders = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    state: TraceState | None = None
    found: list[QueueInterval] = []
    for first, end in pairwise(borders):
        # A sample of the part before comes again: it is known and adds nothing.
        again = max(first - 1, 0)
        columns, state = trace_intervals(trace_of(samples[again:end], rows[again:end]), state, EVERY_S)
        found.extend(intervals_of(columns))
    assert found == list(queue_intervals(samples, EVERY_S))


def test_a_state_keeps_no_more_of_the_past_than_waiting_messages_need() -> None:
    rows: list[Row] = [(30_000_000, 100 * n, 100 * n - 10, 1) for n in range(1, 1000)]
    samples = samples_of(rows)
    _, state = trace_intervals(trace_of(samples, rows), None, EVERY_S)
    assert state is not None
    assert len(state.curve_at) == 2
