"""Policies as rows, so that a thousand of them spread over the executors."""

from collections.abc import Sequence
from typing import Any

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
    """Return one row a policy: its name, its group, the whole document."""
    rows = []
    for policy in policies:
        source = policy.spec.source
        document = policy.model_dump_json(by_alias=True)
        rows.append((policy.metadata.name, source.system, source.cluster, source.group, document))
    return spark.createDataFrame(rows, POLICIES)


def policy_of(row: Any) -> ConsumerScalingPolicy:
    """Return the policy of a row of ``policy_frame``."""
    return ConsumerScalingPolicy.model_validate_json(row.document)
