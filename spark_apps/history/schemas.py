"""Columns of the history app."""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

QUEUE_KEY = ("system", "cluster", "group", "topic", "broker", "queue_id")

_QUEUE = [
    StructField("system", StringType()),
    StructField("cluster", StringType()),
    StructField("group", StringType()),
    StructField("topic", StringType()),
    StructField("broker", StringType()),
    StructField("queue_id", IntegerType()),
]

PATHS = StructType([StructField("path", StringType(), nullable=False)])

SIGHTINGS = StructType(
    [
        *_QUEUE,
        StructField("at", TimestampType()),
        StructField("broker_offset", LongType()),
        StructField("consumer_offset", LongType()),
        StructField("lag", LongType()),
        StructField("owners", ArrayType(StringType())),
    ]
)
"""One queue in one sample; offsets in messages. A Kafka partition is a ``queue_id`` with an empty ``broker``."""

HISTORY = StructType(
    [
        *_QUEUE,
        StructField("started_at", TimestampType()),
        StructField("ended_at", TimestampType()),
        StructField("seconds", DoubleType()),
        StructField("broker_offset", LongType()),
        StructField("consumer_offset", LongType()),
        StructField("arrived", LongType()),
        StructField("consumed", LongType()),
        StructField("is_gap", BooleanType()),
        StructField("commit_age_s", DoubleType()),
        StructField("owners", ArrayType(StringType())),
        StructField("lag", LongType()),
        StructField("arrival_rate", DoubleType()),
        StructField("consumption_rate", DoubleType()),
        StructField("broker_reset", BooleanType()),
        StructField("consumer_reset", BooleanType()),
        StructField("day", StringType()),
        StructField("hour", StringType()),
    ]
)
"""One queue from one sample to the next, as ``planner.model.intervals.QueueInterval``; version 1.

Offsets and lag in messages as of ``ended_at``, rates in messages per second. Partitioned by ``day`` and ``hour`` (UTC)
of ``ended_at``.
"""
