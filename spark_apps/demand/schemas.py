"""Columns of the demand app."""

from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

GROUP_KEY = ("system", "cluster", "group")

MINUTE_COLUMNS = ("minute", "rate", "averaged")
"""The load of one minute of the clock: its number since 1970, messages per second, whether it is of a longer span."""

STRETCHES = StructType(
    [
        StructField("policy", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("level", DoubleType()),
        StructField("minutes", IntegerType()),
        StructField("rests_on_errors", BooleanType()),
        StructField("from_minutes", IntegerType()),
        StructField("to_minutes", IntegerType()),
        StructField("low", DoubleType()),
        StructField("middle", DoubleType()),
        StructField("high", DoubleType()),
        StructField("forecasts", IntegerType()),
        StructField("inside", IntegerType()),
        StructField("level_miss", DoubleType()),
        StructField("widened", DoubleType()),
        StructField("reason", StringType()),
    ]
)
"""One stretch ahead of one policy's group, as ``planner.demand.outlook``; a group without a forecast has its reason."""
