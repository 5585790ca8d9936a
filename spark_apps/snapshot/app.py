"""Take one snapshot for each policy from the lag history and the group's newest raw sample.

    spark-submit spark_apps/snapshot/app.py --data DIR --policies DIR --at TIME [--history URI]

Writes ``<data>/runs/<run>/snapshots/<policy>.json``; a policy whose group has no sample gets
``<data>/runs/<run>/<policy>/no-decision.txt`` and a line in the log, and the others go on.
"""

import shutil
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.model.past_load import LONGEST_PAST
from planner.policies.fleet import read_problems
from planner.runs.past_runs import without_former_snapshot
from planner.storage.landing import GroupKey, first_times
from planner.storage.layout import RunFolder, history_folder, time_name
from planner.text.printable import one_line
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import check_version, read_days, read_intervals
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, run_stage
from spark_apps.demand.transforms import minute_loads
from spark_apps.history.schemas import HISTORY
from spark_apps.history.schemas import SAMPLES as PACKED
from spark_apps.snapshot.schemas import GROUP_KEY
from spark_apps.snapshot.transforms import key_of, reach, write_snapshots


def main() -> None:
    """Run with the arguments of the command line."""
    given = arguments.run_parser(__doc__).parse_args()
    policies = read_policies(given.policies)
    location = given.history or str(history_folder(given.data))
    with session("snapshot") as spark:
        run_stage(spark, "snapshot", lambda: run_snapshot(spark, given.data, policies, given.at, location))


def run_snapshot(
    spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime, location: str
) -> Figures:
    """Take every policy's snapshot from the history at ``location``; return what was read and written."""
    missing = take_snapshots(spark, data, policies, at, location)
    for sentence in missing:
        print(one_line(sentence))  # noqa: T201
    return Figures({"policies": len(policies)}, {"snapshots": len(policies) - len(missing)})


def take_snapshots(
    spark: SparkSession,
    data: Path,
    policies: Sequence[ConsumerScalingPolicy],
    at: datetime,
    location: Path | str | None = None,
) -> Sequence[str]:
    """Write the snapshots of a run afresh; return one sentence for each policy that has none."""
    history = Folder.of(spark, location or history_folder(data))
    check_version(history)
    run = RunFolder.of(data, at)
    shutil.rmtree(run.snapshots, ignore_errors=True)
    since = at - reach(policies)
    known = read_intervals(history, HISTORY, since, at)
    packed = packed_samples(history, data, policies, at)
    unread = read_problems(run)
    days = days_before(history, data, due_policies(data, policies, at, packed, unread), at)
    results = write_snapshots(policy_frame(spark, policies), known, days, data, run, at, packed, unread)
    # Sorted here: Spark's own sort would first run everything once more to sample the keys.
    return sorted(row.missing for row in results.where("missing is not null").collect())


def due_policies(
    data: Path,
    policies: Sequence[ConsumerScalingPolicy],
    at: datetime,
    packed: Mapping[GroupKey, str],
    unread: Mapping[str, str],
) -> list[ConsumerScalingPolicy]:
    """Return the policies that get a snapshot of ``at``: their groups were read and have a sample.

    For the others nothing is looked up: one that never gets a snapshot would have each run read a week again.
    """
    oldest, now = first_times(data), time_name(at)
    has_sample = {key for key, first in oldest.items() if first <= now} | packed.keys()
    return [policy for policy in policies if policy.metadata.name not in unread and key_of(policy) in has_sample]


def days_before(
    history: Folder, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime
) -> DataFrame | None:
    """Return the ``minute_loads`` of the week before ``at`` of groups that no run before has a snapshot of.

    The others continue what that knows, so that a week is read once. ``None`` where there are none.
    """
    fresh = without_former_snapshot(data, policies, at)
    if not fresh:
        return None
    keys = policy_frame(history.spark, fresh).select(*GROUP_KEY).distinct()
    since = at - LONGEST_PAST
    rows = read_intervals(history, HISTORY, since, at).where(F.col("ended_at") <= F.lit(at))
    return minute_loads(rows.join(F.broadcast(keys), on=list(GROUP_KEY), how="left_semi"), since)


def packed_samples(
    history: Folder, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime
) -> dict[GroupKey, str]:
    """Return the newest packed document up to ``at`` of groups whose landed samples are all newer: a run repeated."""
    oldest = first_times(data)
    due_keys = [key for key in map(key_of, policies) if oldest.get(key, "") > time_name(at)]
    if not due_keys:
        return {}
    keys = history.spark.createDataFrame(due_keys, list(GROUP_KEY))
    samples = read_days(history, "samples", PACKED, date.min, at.date()).where(F.col("at") <= F.lit(at))
    newest = samples.join(keys, on=list(GROUP_KEY), how="left_semi").groupBy(*GROUP_KEY)
    rows = newest.agg(F.max_by("document", "at").alias("document")).collect()
    return {(row.system, row.cluster, row.group): row.document for row in rows}


if __name__ == "__main__":
    finish(main)
