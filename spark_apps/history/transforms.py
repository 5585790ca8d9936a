"""From raw samples to intervals, in columns; ``planner.history.intervals`` says the same for one group."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.documents.data import SAMPLE
from planner.history.intervals import GAP_FACTOR
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from spark_apps.history.schemas import HISTORY, QUEUE_KEY, SIGHTINGS

MICROS = 1_000_000.0


def read_sightings(paths: DataFrame) -> DataFrame:
    """Return every queue of every sample file: ``SIGHTINGS``. A file that is not a whole sample stops it by name."""
    return paths.mapInPandas(_sightings_of_files, SIGHTINGS)


def _sightings_of_files(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        rows = [row for path in frame["path"] for row in _sightings(SAMPLE.read(Path(path)))]
        sightings = pd.DataFrame(rows, columns=SIGHTINGS.fieldNames())
        # Nullable whole numbers: a float would round offsets beyond 2^53.
        sightings = sightings.astype({"consumer_offset": "Int64", "lag": "Int64"})
        sightings["at"] = pd.to_datetime(sightings["at"], utc=True)
        yield sightings


def _sightings(sample: GroupSample) -> Iterator[tuple[object, ...]]:
    owners = sample.owners
    for offsets in sample.offsets:
        queue = offsets.queue
        yield (
            sample.system,
            sample.cluster,
            sample.group,
            queue.topic,
            queue.broker if isinstance(queue, MessageQueue) else "",
            queue.number,
            sample.at,
            offsets.broker_offset,
            offsets.consumer_offset,
            offsets.lag,
            list(owners.get(queue, ())),
        )


def newest_states(history: DataFrame) -> DataFrame:
    """Return where the known history of each queue ends: its last sighting, and when its offset last moved."""
    newest = history.groupBy(*QUEUE_KEY).agg(F.max_by(F.struct(*history.columns), "ended_at").alias("newest"))
    state = F.col("newest")
    age_micros = F.round(state["commit_age_s"] * F.lit(MICROS)).cast("long")
    return newest.select(
        *QUEUE_KEY,
        state["ended_at"].alias("at"),
        state["broker_offset"].alias("broker_offset"),
        state["consumer_offset"].alias("consumer_offset"),
        state["lag"].alias("lag"),
        state["owners"].alias("owners"),
        F.timestamp_micros(F.unix_micros(state["ended_at"]) - age_micros).alias("moved_at"),
    )


def continue_from(sightings: DataFrame, states: DataFrame) -> DataFrame:
    """Return the sightings that come after each queue's state, and the state itself as the first of them.

    Column ``moved_at`` is set in states only. Queues without a state keep all their sightings.
    """
    known_until = states.select(*QUEUE_KEY, F.col("at").alias("known_until"))
    fresh = (
        sightings.join(known_until, on=list(QUEUE_KEY), how="left")
        .where(F.col("known_until").isNull() | (F.col("at") > F.col("known_until")))
        .drop("known_until")
        .withColumn("moved_at", F.lit(None).cast("timestamp"))
    )
    return fresh.unionByName(states)


def derive_intervals(sightings: DataFrame, sample_every_s: float) -> DataFrame:
    """Return every interval between consecutive sightings of each queue: ``HISTORY``.

    Takes the columns of ``continue_from``. Negative differences stay and are marked.
    """
    by_time = Window.partitionBy(*QUEUE_KEY).orderBy("at")
    so_far = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    has_committed = ~F.col("consumer_offset").eqNullSafe(F.col("consumer_offset_before"))
    has_moved = F.col("started_at").isNotNull() & (has_committed | F.coalesce(F.col("lag") == 0, F.lit(False)))
    return (
        sightings.withColumn("started_at", F.lag("at").over(by_time))
        .withColumn("broker_offset_before", F.lag("broker_offset").over(by_time))
        .withColumn("consumer_offset_before", F.lag("consumer_offset").over(by_time))
        .withColumn("moved_here_at", F.coalesce(F.when(has_moved, F.col("at")), F.col("moved_at")))
        .withColumn("last_moved_at", F.last("moved_here_at", ignorenulls=True).over(so_far))
        .where(F.col("started_at").isNotNull())
        .withColumn("seconds", _seconds_between("started_at", "at"))
        .withColumn("arrived", F.col("broker_offset") - F.col("broker_offset_before"))
        .withColumn("consumed", F.col("consumer_offset") - F.col("consumer_offset_before"))
        .select(
            *QUEUE_KEY,
            "started_at",
            F.col("at").alias("ended_at"),
            "seconds",
            "broker_offset",
            "consumer_offset",
            "arrived",
            "consumed",
            (F.col("seconds") > F.lit(GAP_FACTOR * sample_every_s)).alias("is_gap"),
            _seconds_between("last_moved_at", "at").alias("commit_age_s"),
            "owners",
            "lag",
            _rate("arrived").alias("arrival_rate"),
            _rate("consumed").alias("consumption_rate"),
            (F.col("arrived") < 0).alias("broker_reset"),
            F.coalesce(F.col("consumed") < 0, F.lit(False)).alias("consumer_reset"),
            F.date_format("at", "yyyy-MM-dd").alias("day"),
            F.date_format("at", "HH").alias("hour"),
        )
    )


def _seconds_between(start: str, end: str) -> Column:
    """Microseconds are whole numbers, so the division gives what ``timedelta.total_seconds`` gives, bit for bit."""
    return (F.unix_micros(end) - F.unix_micros(start)) / F.lit(MICROS)


def _rate(difference: str) -> Column:
    return F.when(F.col(difference) >= 0, F.col(difference) / F.col("seconds"))


def within(history: DataFrame, start: datetime, end: datetime) -> DataFrame:
    """Return the intervals that end from ``start`` up to, not including, ``end``."""
    return history.where((F.col("ended_at") >= F.lit(start)) & (F.col("ended_at") < F.lit(end))).select(
        *HISTORY.fieldNames()
    )


def in_file_order(history: DataFrame) -> DataFrame:
    """Return the rows sorted within partitions, neighbours alike: small files that are quick to filter."""
    return history.sortWithinPartitions("day", "hour", *QUEUE_KEY, "ended_at")
