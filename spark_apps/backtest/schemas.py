"""Columns of the backtest app."""

from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

GROUP_KEY = ("system", "cluster", "group")

QUEUE_KEY = ("topic", "broker", "queue_id")

SPAN_COLUMNS = (*QUEUE_KEY, "ends", "seconds", "arrival", "consumption", "lag")
"""What of the history a backtest plays; ``ends`` in seconds since 1970."""

RUNS = StructType(
    [
        StructField("policy", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("rule", StringType()),
        StructField("tuning", StringType()),
        StructField("every_s", DoubleType()),
        StructField("rebalance_h", DoubleType()),
        StructField("late_after_s", DoubleType()),
        StructField("hours", DoubleType()),
        StructField("rebalances", IntegerType()),
        StructField("moved", IntegerType()),
        StructField("duplicates", DoubleType()),
        StructField("late_minutes", IntegerType()),
        StructField("worst_wait_s", DoubleType()),
        StructField("cost_h", DoubleType()),
        StructField("cheapest", BooleanType()),
        StructField("reason", StringType()),
    ]
)
"""One run of one policy's group, as ``planner.backtest.sweep.SweptRun``; a group that is not played has its reason."""

TOTALS = ("hours", "rebalances", "late_minutes", "cost_h")
"""What the table adds up over all groups."""
