"""Columns of the decide app."""

from pyspark.sql.types import StringType, StructField, StructType

DECISIONS = StructType(
    [
        StructField("policy", StringType(), nullable=False),
        StructField("reason", StringType(), nullable=False),
    ]
)
"""One row a policy: its decision, or why there is none, as one sentence."""
