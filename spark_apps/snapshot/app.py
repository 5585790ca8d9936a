"""Take one snapshot for each policy from the lag history and the group's newest raw sample.

    spark-submit spark_apps/snapshot/app.py --data DIR --policies DIR --at TIME

Writes ``<data>/runs/<run>/snapshots/<policy>.json``; a policy whose group has no sample gets
``<data>/runs/<run>/<policy>/no-decision.txt`` and a line in the log, and the others go on.
"""

import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from planner.documents.policy import ConsumerScalingPolicy, read_policies
from planner.storage.layout import RunFolder, history_folder
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.history_folder import check_version, read_hours
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.history.schemas import HISTORY
from spark_apps.snapshot.transforms import reach, write_snapshots


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    with session("snapshot") as spark:
        missing = take_snapshots(spark, given.data, policies, given.at)
    for sentence in missing:
        print(sentence)  # noqa: T201
    print(f"snapshot: {len(policies) - len(missing)} of {len(policies)} policies as of {given.at.isoformat()}")  # noqa: T201


def take_snapshots(
    spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime
) -> Sequence[str]:
    """Write the snapshots of a run afresh; return one sentence for each policy that has none."""
    history = history_folder(data)
    check_version(history)
    run = RunFolder.of(data, at)
    shutil.rmtree(run.snapshots, ignore_errors=True)
    known = read_hours(spark, history, HISTORY, at - reach(policies), at)
    results = write_snapshots(policy_frame(spark, policies), known, data, run, at)
    # Sorted here: Spark's own sort would first run everything once more to sample the keys.
    return sorted(row.missing for row in results.where("missing is not null").collect())


if __name__ == "__main__":
    finish(main)
