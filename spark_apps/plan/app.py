"""Write the plan of every decision to scale.

    spark-submit spark_apps/plan/app.py --data DIR --policies DIR --at TIME

Reads ``<data>/runs/<run>/<policy>/decision.yaml`` with what it rests on, writes ``plan.yaml`` and ``snapshot.json``
beside it, and what came of every policy into ``<data>/runs/<run>/results.json``.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.storage.run import Decided, DecidedRun, keep_results
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import TASKS_A_CORE, session
from spark_apps.common.stages import Figures, run_stage
from spark_apps.plan.transforms import write_plans


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    with session("plan") as spark:
        run_stage(spark, "plan", lambda: run_plan(spark, given.data, policies, given.at))


def run_plan(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> Figures:
    """Write every policy's plan; return what was read and written."""
    results = plan(spark, data, policies, at)
    decisions = sum(result["to"] is not None for result in results)
    return Figures({"decisions": decisions}, {"plans": sum(result["plan"] is not None for result in results)})


def plan(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> Sequence[Decided]:
    """Write the plan of every decision to scale; return what came of every policy, by its name."""
    run = DecidedRun(data, at)
    tasks = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    rows = write_plans(policy_frame(spark, policies), run, tasks).collect()
    results: list[Decided] = [json.loads(row.result) for row in rows]
    results.sort(key=lambda result: result["policy"])
    keep_results(run.folder, results)
    return results


if __name__ == "__main__":
    finish(main)
