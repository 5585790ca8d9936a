"""Decide for every policy from its candidates' outcomes.

    spark-submit spark_apps/decide/app.py --data DIR --policies DIR --at TIME

Reads ``<data>/runs/<run>/outcomes`` and writes ``<data>/runs/<run>/<policy>/decision.yaml`` with the outcomes that it
rests on, ``outcomes.json``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.storage.layout import RunFolder
from planner.text.printable import one_line
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.parquet_files import read_parquet
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, counting_rows, run_stage
from spark_apps.decide.transforms import write_decisions
from spark_apps.simulate.schemas import OUTCOMES


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    with session("decide") as spark:
        run_stage(spark, "decide", lambda: run_decide(spark, given.data, policies, given.at))


@dataclass(frozen=True, slots=True)
class Decisions:
    """One sentence for each policy, by its name, and how many outcomes were read."""

    reasons: Mapping[str, str]
    outcomes: int


def run_decide(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> Figures:
    """Decide for every policy; return what was read and written."""
    run, made = RunFolder.of(data, at), decide(spark, data, policies, at)
    for name, reason in made.reasons.items():
        print(one_line(f"decide: {name}: {reason}"))  # noqa: T201
    decisions = sum(run.policy(name).decision.exists() for name in made.reasons)
    return Figures({"policies": len(policies), "outcomes": made.outcomes}, {"decisions": decisions})


def decide(spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime) -> Decisions:
    """Write every policy's decision, or why there is none."""
    run = RunFolder.of(data, at)
    outcomes, rows = counting_rows(read_outcomes(spark, run))
    decisions = write_decisions(policy_frame(spark, policies), outcomes, run)
    # Sorted here: Spark's own sort would first run everything once more to sample the keys.
    return Decisions(dict(sorted((row.policy, row.reason) for row in decisions.collect())), rows())


def read_outcomes(spark: SparkSession, run: RunFolder) -> DataFrame:
    """Return the outcomes of the run; raises ``StorageError`` for a file that is beyond a bound."""
    folder = Folder.of(spark, run.outcomes)
    return read_parquet([folder], OUTCOMES, folder)


if __name__ == "__main__":
    finish(main)
