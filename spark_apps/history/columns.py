"""Arrow tables in and out of ``planner.history.traces``: all queues of one topic and broker of one group."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from planner.history.traces import IntervalColumns, Ints, Trace, TraceState, trace_intervals
from spark_apps.history.schemas import BROKER_TOPIC_KEY, INTERVALS, STATES

MICROS = 1_000_000.0
TIME = pa.timestamp("us", tz="UTC")
INTERVALS_ARROW = to_arrow_schema(INTERVALS, timezone="UTC")
STATES_ARROW = to_arrow_schema(STATES, timezone="UTC")


@dataclass(slots=True)
class OwnerLists:
    """Every list of owners once; its number stands for it, and 0 for nobody."""

    lists: list[tuple[str, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[str, ...], int] = field(default_factory=lambda: {(): 0})

    def number(self, owners: Iterable[str]) -> int:
        """Return the number of a list."""
        known = tuple(owners)
        if known not in self.numbers:
            self.numbers[known] = len(self.lists)
            self.lists.append(known)
        return self.numbers[known]

    def arrow(self, numbers: Ints) -> pa.Array:
        """Return the lists behind the numbers."""
        return pa.array(self.lists, pa.list_(pa.string())).take(pa.array(numbers))


@dataclass(frozen=True, slots=True)
class Continued:
    """One queue: its new intervals, and its state after them."""

    queue_id: int
    intervals: IntervalColumns
    state: TraceState
    first_at: int


def intervals_of(traces: pa.Table, states: pa.Table, sample_every_s: float) -> pa.Table:
    """Return the ``INTERVALS`` that the traces of one topic and broker add to its states."""
    owners = OwnerLists()
    queues = list(_continue(traces, states, owners, sample_every_s))
    if not queues:
        return INTERVALS_ARROW.empty_table()
    columns = _interval_arrays([queue.intervals for queue in queues], owners)
    ids = np.repeat([queue.queue_id for queue in queues], [len(queue.intervals.ended_at) for queue in queues])
    return _table(INTERVALS_ARROW, traces if len(traces) else states, ids, columns)


def states_after(traces: pa.Table, states: pa.Table, sample_every_s: float) -> pa.Table:
    """Return the ``STATES`` of one topic and broker after its traces."""
    owners = OwnerLists()
    queues = list(_continue(traces, states, owners, sample_every_s))
    if not queues:
        return STATES_ARROW.empty_table()
    kept = [queue.state for queue in queues]
    columns = {
        "first_at": _times([queue.first_at for queue in queues]),
        "at": _times([state.curve_at[-1] for state in kept]),
        "consumer_offset": pa.array([state.consumer_offset for state in kept], pa.int64()),
        "lag": pa.array([state.lag for state in kept], pa.int64()),
        "moved_at": _times([state.moved_at for state in kept]),
        "known_owners": owners.arrow(np.array([state.known_owners for state in kept])),
        "curve_at": _lists([state.curve_at for state in kept], TIME),
        "curve_offset": _lists([state.curve_offset for state in kept], pa.int64()),
    }
    return _table(STATES_ARROW, traces if len(traces) else states, [queue.queue_id for queue in queues], columns)


def _continue(traces: pa.Table, states: pa.Table, owners: OwnerLists, sample_every_s: float) -> Iterator[Continued]:
    """Yield every queue of the topic and broker by its number, continued from its state."""
    rows_of_queue = _by_queue(traces)
    known = {row["queue_id"]: row for row in states.to_pylist()}
    rows = _TraceRows.of(traces, owners)
    for queue_id in sorted(rows_of_queue.keys() | known.keys()):
        trace = rows.trace(rows_of_queue.get(queue_id, []))
        past = known.get(queue_id)
        intervals, state = trace_intervals(trace, past and _state(past, owners), sample_every_s)
        if state is not None:
            first_at = _micros(past["first_at"]) if past else int(trace.at[0])
            yield Continued(queue_id, intervals, state, first_at)


def _by_queue(traces: pa.Table) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, queue_id in enumerate(traces["queue_id"].to_pylist()):
        rows.setdefault(queue_id, []).append(row)
    return rows


def _state(row: dict[str, Any], owners: OwnerLists) -> TraceState:
    return TraceState(
        curve_at=np.array([_micros(at) for at in row["curve_at"]], dtype=np.int64),
        curve_offset=np.array(row["curve_offset"], dtype=np.int64),
        consumer_offset=row["consumer_offset"],
        lag=row["lag"],
        moved_at=None if row["moved_at"] is None else _micros(row["moved_at"]),
        known_owners=owners.number(row["known_owners"]),
    )


def _micros(at: Any) -> int:
    return int(pa.scalar(at, TIME).value)


@dataclass(frozen=True, slots=True)
class _TraceRows:
    """The lists of a table of traces as plain arrays, and where each row's stretch of them ends."""

    ends: Ints
    whole: Trace

    @classmethod
    def of(cls, traces: pa.Table, owners: OwnerLists) -> "_TraceRows":
        lengths = pc.list_value_length(traces["at"]).to_numpy()
        ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        consumer_offset, is_committed = _known(traces["consumer_offset"])
        lag, is_lag_known = _known(traces["lag"])
        whole = Trace(
            at=_known(traces["at"])[0],
            broker_offset=_known(traces["broker_offset"])[0],
            consumer_offset=consumer_offset,
            is_committed=is_committed,
            lag=lag,
            is_lag_known=is_lag_known,
            owners=_owner_numbers(traces, ends, owners),
        )
        return cls(ends, whole)

    def trace(self, rows: list[int]) -> Trace:
        """Return what the rows hold together, in the order of time and each time once."""
        ranges = [np.arange(self.ends[row], self.ends[row + 1]) for row in rows]
        chosen = np.concatenate(ranges) if ranges else np.empty(0, dtype=np.int64)
        chosen = chosen[np.unique(self.whole.at[chosen], return_index=True)[1]]
        whole = self.whole
        return Trace(
            at=whole.at[chosen],
            broker_offset=whole.broker_offset[chosen],
            consumer_offset=whole.consumer_offset[chosen],
            is_committed=whole.is_committed[chosen],
            lag=whole.lag[chosen],
            is_lag_known=whole.is_lag_known[chosen],
            owners=whole.owners[chosen],
        )


def _known(lists: pa.ChunkedArray) -> tuple[Ints, Any]:
    """Return all values of a column of lists, 0 for those that are null, and which of them are not."""
    values = pc.list_flatten(lists).cast(pa.int64())
    return values.fill_null(0).to_numpy(), values.is_valid().to_numpy()


def _owner_numbers(traces: pa.Table, ends: Ints, owners: OwnerLists) -> Ints:
    numbers, _ = _known(traces["owners"])
    all_numbers = np.zeros(len(numbers), dtype=np.int64)
    for row, lists in enumerate(traces["owner_lists"].to_pylist()):
        span = slice(ends[row], ends[row + 1])
        all_numbers[span] = np.array([owners.number(names) for names in lists], dtype=np.int64)[numbers[span]]
    return all_numbers


def _interval_arrays(tables: list[IntervalColumns], owners: OwnerLists) -> dict[str, pa.Array]:
    def joined(name: str) -> Any:
        return np.concatenate([getattr(table, name) for table in tables])

    started_at, ended_at = joined("started_at"), joined("ended_at")
    moved_from = joined("moved_from")
    return {
        "started_at": _times(started_at),
        "ended_at": _times(ended_at),
        "seconds": pa.array((ended_at - started_at) / MICROS),
        "broker_offset": pa.array(joined("broker_offset")),
        "consumer_offset": pa.array(joined("consumer_offset"), mask=~joined("is_committed")),
        "arrived": pa.array(joined("arrived")),
        "consumed": pa.array(joined("consumed"), mask=~joined("is_consumed_known")),
        "is_gap": pa.array(joined("is_gap")),
        "commit_age_s": pa.array(joined("commit_age_s"), from_pandas=True),
        "owners": owners.arrow(joined("owners")),
        "lag": pa.array(joined("lag"), mask=~joined("is_lag_known")),
        "lag_s": pa.array(joined("lag_s"), from_pandas=True),
        "lag_s_is_least": pa.array(joined("lag_s_is_least")),
        "moved_from": owners.arrow(moved_from),
    }


def _times(micros: Any) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(TIME)


def _lists(lists: list[Ints], of_type: pa.DataType) -> pa.Array:
    ends = np.concatenate([[0], np.cumsum([len(numbers) for numbers in lists])])
    values = pa.array(np.concatenate(lists), pa.int64()).cast(of_type)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _table(schema: pa.Schema, broker_topic: pa.Table, queue_ids: Any, columns: dict[str, pa.Array]) -> pa.Table:
    """Return the columns with the names of group, topic and broker before them."""
    names = {name: pa.repeat(broker_topic[name][0], len(queue_ids)) for name in BROKER_TOPIC_KEY}
    ids = pa.array(queue_ids, pa.int32())
    return pa.table({**names, "queue_id": ids, **columns}).select(schema.names).cast(schema)
