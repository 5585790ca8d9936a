"""Columns of the simulate app."""

from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

CANDIDATES = StructType(
    [
        StructField("policy", StringType(), nullable=False),
        StructField("position", IntegerType(), nullable=False),
        StructField("strategy", StringType(), nullable=False),
        StructField("count", IntegerType(), nullable=False),
    ]
)
"""What is to be simulated; ``position`` is the index in ``planner.pipeline.candidates``."""

COSTS = (
    ("pause_s", DoubleType()),
    ("stall_s", DoubleType()),
    ("duplicates", LongType()),
    ("burst_messages", LongType()),
    ("settle_s", DoubleType()),
    ("drained_s", DoubleType()),
)
"""The figures of ``Transition``; each has one column for each level, as ``pause_s_p05``."""

LEVELS = ("p05", "p50", "p95")

OUTCOMES = StructType(
    [
        *CANDIDATES.fields,
        StructField("utilisation", DoubleType()),
        StructField("wait_s", DoubleType()),
        StructField("drain_s", DoubleType()),
        StructField("moved_fewest", IntegerType()),
        StructField("moved_most", IntegerType()),
        StructField("keeps_up", BooleanType()),
        *(StructField(f"{name}_{level}", kind) for name, kind in COSTS for level in LEVELS),
        StructField("outcome", StringType(), nullable=False),
    ]
)
"""One simulated candidate: its headline figures as in ``CandidateOutcome``, and all of it as canonical JSON."""
