"""Columns of the history's tables; ``docs/history.md`` says what each of them means."""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

GROUP_KEY = ("system", "cluster", "group")
BROKER_TOPIC_KEY = (*GROUP_KEY, "topic", "broker")
QUEUE_KEY = (*BROKER_TOPIC_KEY, "queue_id")


def _columns(**types: DataType) -> list[StructField]:
    return [StructField(name, of_type) for name, of_type in types.items()]


TEXT, TIME, WHOLE, FLAG, FRACTION = StringType(), TimestampType(), LongType(), BooleanType(), DoubleType()
TEXTS = ArrayType(TEXT)
GROUP = _columns(system=TEXT, cluster=TEXT, group=TEXT)
QUEUE = [*GROUP, *_columns(topic=TEXT, broker=TEXT, queue_id=IntegerType())]

BATCHES = StructType([StructField("paths", ArrayType(TEXT), nullable=False)])
"""Where the samples lie that one task reads in one go, all of one group: files, or lines of readings."""

UNREADABLE = StructType([StructField("path", TEXT, nullable=False), StructField("reason", TEXT, nullable=False)])
"""A file or line that landed and cannot be used, and why, in a sentence."""

SAMPLES = StructType([*GROUP, *_columns(at=TIME, document=TEXT)])
"""One sample of one group, packed: the whole document, byte for byte; ``at`` to the millisecond."""

TRACES = StructType(
    [
        *QUEUE,
        *_columns(
            at=ArrayType(TIME),
            broker_offset=ArrayType(WHOLE),
            consumer_offset=ArrayType(WHOLE),
            lag=ArrayType(WHOLE),
            owners=ArrayType(IntegerType()),
            owner_lists=ArrayType(TEXTS),
        ),
    ]
)
"""One queue over a stretch of time, packed: the n-th values of all lists are one sighting.

``owners`` are places in ``owner_lists``. A Kafka partition is a ``queue_id`` with an empty ``broker``.
"""

STATES = StructType(
    [
        *QUEUE,
        *_columns(
            first_at=TIME,
            at=TIME,
            consumer_offset=WHOLE,
            lag=WHOLE,
            moved_at=TIME,
            known_owners=TEXTS,
            curve_at=ArrayType(TIME),
            curve_offset=ArrayType(WHOLE),
        ),
    ]
)
"""Where the history of one queue begins and ends, and what the next interval needs of the past."""

INTERVALS = StructType(
    [
        *QUEUE,
        *_columns(
            started_at=TIME,
            ended_at=TIME,
            seconds=FRACTION,
            broker_offset=WHOLE,
            consumer_offset=WHOLE,
            arrived=WHOLE,
            consumed=WHOLE,
            is_gap=FLAG,
            commit_age_s=FRACTION,
            owners=TEXTS,
            lag=WHOLE,
            lag_s=FRACTION,
            lag_s_is_least=FLAG,
            moved_from=TEXTS,
        ),
    ]
)
"""One queue from one sighting to the next, as ``planner.model.intervals.QueueInterval``."""

HISTORY = StructType(
    [
        *INTERVALS,
        *_columns(
            arrival_rate=FRACTION,
            consumption_rate=FRACTION,
            broker_reset=FLAG,
            consumer_reset=FLAG,
            source=TEXT,
            day=TEXT,
        ),
    ]
)
"""The lag history, version 2: intervals with their rates. Partitioned by ``day`` (UTC, of ``ended_at``) and ``system``.

Offsets and lag in messages as of ``ended_at``, rates in messages per second. Version 1 had no ``lag_s``,
``lag_s_is_least``, ``moved_from`` and ``source``: they are null in rows that it wrote.
"""
