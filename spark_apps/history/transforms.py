"""From raw samples to the lag history: a group's queues are put together once, then everything is columns."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows
from pyspark.sql.pandas.types import to_arrow_schema

from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.runs.landed import read_sample
from planner.storage.landing import landed_at
from planner.storage.layout import time_of_name
from spark_apps.history.columns import OwnerLists, intervals_of, states_after
from spark_apps.history.schemas import BROKER_TOPIC_KEY, INTERVALS, SAMPLES, STATES, TRACES, UNREADABLE
from spark_apps.history.unreadable import Rows, find_unreadable, table_of

SAMPLED = "sample"
"""The source of intervals that come from samples."""


def read_traces(batches: DataFrame) -> DataFrame:
    """Return what the files of each batch say of each queue: ``TRACES``.

    A file that is not a whole sample stops it by name.
    """
    return batches.mapInArrow(_traces_of_batches, TRACES)


def _traces_of_batches(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        for paths in table["paths"].to_pylist():
            yield from table_of(paths, _traces, TRACES).to_batches()


def _traces(locations: Sequence[str]) -> Rows:
    return traces_of([read_sample(landed_at(location)) for location in locations])


def traces_of(samples: list[GroupSample]) -> Rows:
    """Return one row of ``TRACES`` for each queue in the samples of one group."""
    by_queue: dict[Queue, dict[str, list[object]]] = {}
    lists: dict[Queue, OwnerLists] = {}
    for sample in samples:
        owners = sample.consumers
        for offsets in sample.offsets:
            row = by_queue.setdefault(
                offsets.queue, {name: [] for name in TRACES.names[len(BROKER_TOPIC_KEY) + 1 : -1]}
            )
            number = lists.setdefault(offsets.queue, OwnerLists()).number(owners.get(offsets.queue, ()))
            values = (sample.at, offsets.broker_offset, offsets.consumer_offset, offsets.lag, number)
            for column, value in zip(row.values(), values, strict=True):
                column.append(value)
    return [{**_key(samples[0], queue), **row, "owner_lists": lists[queue].lists} for queue, row in by_queue.items()]


def _key(sample: GroupSample, queue: Queue) -> dict[str, object]:
    return {
        "system": sample.system,
        "cluster": sample.cluster,
        "group": sample.group,
        "topic": queue.topic,
        "broker": queue.broker or "",
        "queue_id": queue.number,
    }


def read_documents(batches: DataFrame) -> DataFrame:
    """Return the files of each batch as they are: ``SAMPLES``."""
    return batches.mapInArrow(_documents_of_batches, SAMPLES)


def _documents_of_batches(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        for paths in table["paths"].to_pylist():
            rows = [_document(path) for path in paths]
            yield from pa.Table.from_pylist(rows, to_arrow_schema(SAMPLES, timezone="UTC")).to_batches()


def _document(location: str) -> dict[str, object]:
    landed = landed_at(location)
    system, cluster, group = landed.key
    text = landed.document().decode()
    return {
        "system": system,
        "cluster": cluster,
        "group": group,
        "at": time_of_name(landed.time_name),
        "document": text,
    }


def unreadable_samples(batches: DataFrame) -> DataFrame:
    """Return the files of the batches that are no whole samples: ``UNREADABLE``."""
    return batches.mapInArrow(_unreadable_of_batches, UNREADABLE)


def _unreadable_of_batches(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return find_unreadable(tables, lambda path: (table_of([path], _traces, TRACES), _document(path)))


def derive_intervals(traces: DataFrame, states: DataFrame, sample_every_s: float) -> DataFrame:
    """Return the intervals that the traces add to the states: ``HISTORY`` without its partition columns.

    ``planner.history.intervals`` gives the same for one group. Samples that a state knows already add nothing.
    """
    by_broker_topic = traces.groupBy(*BROKER_TOPIC_KEY).cogroup(states.groupBy(*BROKER_TOPIC_KEY))
    derive = partial(intervals_of, sample_every_s=sample_every_s)
    return with_rates(by_broker_topic.applyInArrow(derive, INTERVALS), F.lit(SAMPLED))


def with_rates(intervals: DataFrame, source: Column) -> DataFrame:
    """Return ``INTERVALS`` with their rates, resets and source. Negative differences stay and have no rate."""
    return intervals.select(
        *INTERVALS.names,
        _rate("arrived").alias("arrival_rate"),
        _rate("consumed").alias("consumption_rate"),
        (F.col("arrived") < 0).alias("broker_reset"),
        F.coalesce(F.col("consumed") < 0, F.lit(False)).alias("consumer_reset"),
        source.alias("source"),
    )


def _rate(difference: str) -> Column:
    return F.when(F.col(difference) >= 0, F.col(difference) / F.col("seconds"))


def continue_states(traces: DataFrame, states: DataFrame, sample_every_s: float) -> DataFrame:
    """Return the ``STATES`` of all queues after the traces."""
    by_broker_topic = traces.groupBy(*BROKER_TOPIC_KEY).cogroup(states.groupBy(*BROKER_TOPIC_KEY))
    carry_on = partial(states_after, sample_every_s=sample_every_s)
    return by_broker_topic.applyInArrow(carry_on, STATES)


def states_of_history(history: DataFrame) -> DataFrame:
    """Return the ``STATES`` that a history without states ends with: of each queue the newest row."""
    key = STATES.names[:6]
    newest = history.groupBy(*key).agg(
        F.max_by(F.struct(*history.columns), "ended_at").alias("newest"),
        F.min("started_at").alias("first_at"),
        F.max_by(F.when(F.size("owners") > 0, F.col("owners")), F.when(F.size("owners") > 0, F.col("ended_at"))).alias(
            "known_owners"
        ),
    )
    state = F.col("newest")
    age_micros = F.round(state["commit_age_s"] * F.lit(1_000_000)).cast("long")
    return newest.select(
        *key,
        "first_at",
        state["ended_at"].alias("at"),
        state["consumer_offset"].alias("consumer_offset"),
        state["lag"].alias("lag"),
        F.timestamp_micros(F.unix_micros(state["ended_at"]) - age_micros).alias("moved_at"),
        F.coalesce("known_owners", F.array().cast("array<string>")).alias("known_owners"),
        F.array(state["ended_at"]).alias("curve_at"),
        F.array(state["broker_offset"]).alias("curve_offset"),
    ).select(*STATES.names)
