"""Policies as rows, so that a thousand of them spread over the executors."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from planner.documents.policy import ConsumerScalingPolicy

POLICIES = StructType(
    [
        StructField("policy", StringType(), nullable=False),
        StructField("system", StringType(), nullable=False),
        StructField("cluster", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("document", StringType(), nullable=False),
    ]
)


def policy_frame(spark: SparkSession, policies: Sequence[ConsumerScalingPolicy]) -> DataFrame:
    """Return one row a policy: its name, its group, the whole document.

    Handed over as Arrow: of tuples Spark makes an RDD of pickles, which Python workers have to start to read.
    """
    rows = []
    for policy in policies:
        source = policy.spec.source
        document = policy.model_dump_json(by_alias=True)
        rows.append((policy.metadata.name, source.system, source.cluster, source.group, document))
    columns = [pa.array([row[column] for row in rows], pa.string()) for column in range(len(POLICIES))]
    return spark.createDataFrame(pa.Table.from_arrays(columns, POLICIES.fieldNames()), POLICIES)


def policy_of(row: Any) -> ConsumerScalingPolicy:
    """Return the policy of a row of ``policy_frame``."""
    return ConsumerScalingPolicy.model_validate_json(row.document)
