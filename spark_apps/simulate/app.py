"""Simulate every useful count of every policy's group under its strategy and the common ones.

    spark-submit spark_apps/simulate/app.py --data DIR --policies DIR --at TIME

Reads ``<data>/runs/<run>/snapshots`` and writes ``<data>/runs/<run>/outcomes/*.parquet``.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from planner.documents.policy import ConsumerScalingPolicy, read_policies
from planner.storage.layout import RunFolder
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.simulate.transforms import list_candidates, simulate

TASKS_A_CORE = 2


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    with session("simulate") as spark:
        write_outcomes(spark, given.data, policies, given.at)
    print(f"simulate: outcomes in {RunFolder.of(given.data, given.at).outcomes}")  # noqa: T201


def write_outcomes(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> None:
    """Write the outcomes of a run afresh."""
    run = RunFolder.of(data, at)
    tasks = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    outcomes = policy_frame(spark, policies).transform(list_candidates, run).transform(simulate, run, tasks)
    outcomes.write.mode("overwrite").parquet(str(run.outcomes))


if __name__ == "__main__":
    finish(main)
