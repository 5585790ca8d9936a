"""Decide for every policy from its candidates' outcomes.

    spark-submit spark_apps/decide/app.py --data DIR --policies DIR --at TIME

Reads ``<data>/runs/<run>/outcomes`` and writes ``<data>/runs/<run>/<policy>/decision.yaml`` with the outcomes that it
rests on, ``outcomes.json``.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from planner.documents.policy import ConsumerScalingPolicy, read_policies
from planner.printable import one_line
from planner.storage.layout import RunFolder
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.decide.transforms import write_decisions
from spark_apps.simulate.schemas import OUTCOMES


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    with session("decide") as spark:
        decisions = decide(spark, given.data, policies, given.at)
    for name, reason in decisions.items():
        print(one_line(f"decide: {name}: {reason}"))  # noqa: T201


def decide(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> dict[str, str]:
    """Write every policy's decision; return one sentence for each, by the policy's name."""
    run = RunFolder.of(data, at)
    outcomes = spark.read.schema(OUTCOMES).parquet(str(run.outcomes))
    decisions = write_decisions(policy_frame(spark, policies), outcomes, run)
    # Sorted here: Spark's own sort would first run everything once more to sample the keys.
    return dict(sorted((row.policy, row.reason) for row in decisions.collect()))


if __name__ == "__main__":
    finish(main)
