"""Columns of the snapshot app."""

from pyspark.sql.types import StringType, StructField, StructType

from planner.model.intervals import QueueInterval

GROUP_KEY = ("system", "cluster", "group")

INTERVAL_COLUMNS = ("topic", "broker", "queue_id", *(name for name in QueueInterval.__slots__ if name != "queue"))
"""What of the history makes a ``QueueInterval``."""

RESULTS = StructType(
    [
        StructField("policy", StringType(), nullable=False),
        StructField("missing", StringType()),
    ]
)
"""One row a policy; ``missing`` is a sentence that says why there is no snapshot."""
