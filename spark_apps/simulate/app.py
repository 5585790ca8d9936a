"""Simulate every useful count of every policy's group under its strategy and the common ones.

    spark-submit spark_apps/simulate/app.py --data DIR --policies DIR --at TIME

Reads ``<data>/runs/<run>/snapshots`` and writes ``<data>/runs/<run>/outcomes/*.parquet``.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.storage.layout import RunFolder
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import TASKS_A_CORE, session
from spark_apps.common.stages import Figures, counting_rows, run_stage
from spark_apps.simulate.transforms import list_candidates, simulate


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    with session("simulate") as spark:
        run_stage(spark, "simulate", lambda: run_simulate(spark, given.data, policies, given.at))


def run_simulate(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> Figures:
    """Simulate every policy's counts; return what was read and written."""
    outcomes = write_outcomes(spark, data, policies, at)
    snapshots = sum(1 for _ in RunFolder.of(data, at).snapshots.glob("*.json"))
    return Figures({"snapshots": snapshots}, {"outcomes": outcomes})


def write_outcomes(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> int:
    """Write the outcomes of a run afresh; return how many that are."""
    run = RunFolder.of(data, at)
    tasks = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    outcomes = policy_frame(spark, policies).transform(list_candidates, run).transform(simulate, run, tasks)
    written, rows = counting_rows(outcomes)
    written.write.mode("overwrite").parquet(str(run.outcomes))
    return rows()


if __name__ == "__main__":
    finish(main)
