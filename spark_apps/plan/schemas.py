"""Columns of the plan app."""

from pyspark.sql.types import StringType, StructField, StructType

RESULTS = StructType([StructField("result", StringType(), nullable=False)])
"""One row a policy: what came of it, ``planner.storage.run.Decided`` as JSON."""
