"""Bring the lag history up to date: raw samples below ``<data>/samples`` to Parquet below ``<data>/history``.

    spark-submit spark_apps/history/app.py --data DIR --since TIME --until TIME --sample-every SECONDS

Whole hours are computed again from the raw samples and replaced, from the hour of ``since`` to the hour of
``until``; the other hours stay as they are. Running it twice changes nothing.
"""

import argparse
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from planner.errors import DocumentError
from planner.snapshot.build import RECENT
from planner.storage.layout import history_folder, samples_folder, time_name
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.history_folder import check_version, mark_version, read_hours
from spark_apps.common.session import session
from spark_apps.history.schemas import HISTORY, PATHS
from spark_apps.history.transforms import (
    continue_from,
    derive_intervals,
    in_file_order,
    newest_states,
    read_sightings,
    within,
)

HOUR = timedelta(hours=1)
LOOK_BACK = timedelta(minutes=10)
"""How far before the first hour raw samples are read: a queue's very first sighting leaves no row in the history."""
FILES_A_TASK = 200
_SAMPLE_NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z\.json")


def main() -> None:
    """Run with the arguments of the command line."""
    given = _parser().parse_args()
    with session("history") as spark:
        files = update(spark, given.data, given.since, given.until, given.sample_every)
    print(f"history: {files} samples up to {given.until.isoformat()} in {history_folder(given.data)}")  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = arguments.parser(__doc__)
    parser.add_argument("--since", type=arguments.time, required=True, help="first time of the interval")
    parser.add_argument("--until", type=arguments.time, required=True, help="last time of the interval, included")
    parser.add_argument("--sample-every", type=float, required=True, help="sampling period in seconds")
    return parser


def update(spark: SparkSession, data: Path, since: datetime, until: datetime, sample_every_s: float) -> int:
    """Compute the hours from ``since`` to ``until`` again; return how many sample files were read.

    Continues from the last known state of each queue, at most ``RECENT`` before the first hour, so that gaps and
    commit ages reach over the hour. Nothing is written when a newer planner wrote the folder or a file is broken.
    """
    history = history_folder(data)
    check_version(history)
    start, end = _hour_of(since), _hour_of(until) + HOUR
    paths = [str(path) for path in sample_files(samples_folder(data), start - LOOK_BACK, end)]
    if not paths:
        return 0
    tasks = max(spark.sparkContext.defaultParallelism, len(paths) // FILES_A_TASK)
    files = spark.createDataFrame([(path,) for path in paths], PATHS).repartition(min(tasks, len(paths)))
    earlier = read_hours(spark, history, HISTORY, start - RECENT, start - HOUR)
    intervals = (
        read_sightings(files)
        .transform(continue_from, newest_states(earlier))
        .transform(derive_intervals, sample_every_s)
        .transform(within, start, end)
        .transform(in_file_order)
    )
    mark_version(history)
    intervals.write.mode("overwrite").partitionBy("day", "hour").parquet(str(history))
    return len(paths)


def sample_files(samples: Path, start: datetime, end: datetime) -> Iterator[Path]:
    """Yield the sample files of all groups taken from ``start`` up to, not including, ``end``, by their names."""
    first, last = time_name(start), time_name(end)
    for path in sorted(samples.glob("*/*/*/*.json")):
        if path.name.startswith("."):
            continue
        if not _SAMPLE_NAME.fullmatch(path.name):
            raise DocumentError(f"{path}: found among samples, but not named like one: move it elsewhere")
        if first <= path.stem < last:
            yield path


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


if __name__ == "__main__":
    finish(main)
