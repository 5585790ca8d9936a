"""Bring the lag history up to date: raw samples below ``<data>/samples`` to Parquet below the history folder.

    spark-submit spark_apps/history/app.py --data DIR --until TIME --sample-every SECONDS
        [--history URI] [--keep-days N] [--rebuild]

Reads only what has landed since the last run, adds it to the history, packs the raw samples into the history folder and
removes their files; the newest file of each group stays. What landed below ``<data>/metrics`` is imported. Running it
twice changes nothing.
"""

import argparse
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.errors import StorageError
from planner.storage.landing import GroupKey, LandedSample, landed_samples
from planner.storage.layout import history_folder, samples_folder, time_name, time_of_name
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import (
    STATES_TABLE,
    VERSION,
    Change,
    day_folders,
    day_name,
    day_of,
    files_by_source,
    name_of_micros,
    newest_of_groups,
    read_days,
    read_states,
    recover,
    version_of,
)
from spark_apps.common.history_lock import only_run
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, counting_rows, run_stage
from spark_apps.history.metrics import import_metrics
from spark_apps.history.schemas import BATCHES, GROUP_KEY, HISTORY, SAMPLES, STATES, TRACES
from spark_apps.history.transforms import (
    SAMPLED,
    continue_states,
    derive_intervals,
    read_documents,
    read_traces,
    states_of_history,
)
from spark_apps.history.upgrade import upgrade
from spark_apps.history.upkeep import tidy

FILES_A_BATCH = 200
LAST = "~"
"""Sorts after the name of any time."""


@dataclass(frozen=True, slots=True)
class Updated:
    """How many sample files of how many groups were read, and how many intervals they added to the history.

    ``late`` of them came after a later one of their group was known already: these are packed and not in the history;
    ``rebuild`` puts them in.
    """

    samples: int
    late: int
    groups: int
    intervals: int


def main() -> None:
    """Run with the arguments of the command line."""
    given = _parser().parse_args()
    location = given.history or str(history_folder(given.data))
    settings = given.until, given.sample_every, location, given.keep_days
    with session("history") as spark:
        run_stage(spark, "history", lambda: run_history(spark, given.data, *settings, is_rebuilt=given.rebuild))


def run_history(
    spark: SparkSession,
    data: Path,
    until: datetime,
    sample_every_s: float,
    location: str,
    keep_days: int,
    *,
    is_rebuilt: bool = False,
) -> Figures:
    """Bring the history at ``location`` up to date and tidy it; return what was read and written."""
    history = Folder.of(spark, location)
    done = update(spark, data, until, sample_every_s, location)
    imported = import_metrics(history, data)
    if is_rebuilt:
        rebuild(history, sample_every_s)
    tidy(history, until, keep_days)
    late = f", {done.late} of them too late for it: run the history app with --rebuild to add them" if done.late else ""
    if imported:
        print(f"history: {imported} intervals and points of metrics in {location}")  # noqa: T201
    print(f"history: {done.samples} samples up to {until.isoformat()} in {location}{late}")  # noqa: T201
    return Figures({"samples": done.samples, "groups": done.groups}, {"intervals": done.intervals + imported})


def _parser() -> argparse.ArgumentParser:
    parser = arguments.parser(__doc__)
    parser.add_argument("--until", type=arguments.time, required=True, help="last time of the run, included")
    arguments.add_history_arguments(parser)
    parser.add_argument("--rebuild", action="store_true", help="make the history again from the packed raw samples")
    return parser


def update(
    spark: SparkSession, data: Path, until: datetime, sample_every_s: float, location: Path | str | None = None
) -> Updated:
    """Add the samples that landed up to ``until`` to the history, pack them and remove the files of those read back.

    Continues from the last known state of each queue, however long ago. Nothing is written when a newer planner wrote
    the history or a file is broken. Raises ``StorageError`` while another run changes the history, and where packed
    samples cannot be read back.
    """
    history = Folder.of(spark, location or history_folder(data))
    version_of(history)  # a newer planner's is left alone, without so much as a lock
    with only_run(history):
        return _update(history, data, until, sample_every_s)


def _update(history: Folder, data: Path, until: datetime, sample_every_s: float) -> Updated:
    prepare(history)
    known = newest_of_groups(read_states(history, STATES))
    landed = [sample for sample in landed_samples(samples_folder(data)) if sample.time_name <= time_name(until)]
    fresh = _not_packed([sample for sample in landed if sample.time_name != known.get(sample.key)], known, history)
    intervals = 0
    for (day, system), of_day in groupby(sorted(fresh, key=_day_and_system), key=_day_and_system):
        intervals += _pack(history, day, system, list(of_day), sample_every_s)
    _forget_all_but_the_newest(landed, fresh, history)
    late = sum(sample.time_name < known.get(sample.key, "") for sample in fresh)
    return Updated(len(fresh), late, len({sample.key for sample in fresh}), intervals)


def _not_packed(
    samples: Sequence[LandedSample], known: Mapping[GroupKey, str], history: Folder
) -> Sequence[LandedSample]:
    """Return the samples that the history does not hold: a task that is tried again lands them again."""
    # What comes after all that is known cannot be packed; so nothing has to be looked up as a rule.
    doubtful = [sample for sample in samples if sample.time_name < known.get(sample.key, LAST)]
    if not doubtful:
        return samples
    days = [sample.day for sample in doubtful]
    keys = history.spark.createDataFrame(list({sample.key for sample in doubtful}), list(GROUP_KEY))
    packed = read_days(history, "samples", SAMPLES, min(days), max(days)).join(keys, list(GROUP_KEY), "left_semi")
    rows = packed.select(*GROUP_KEY, F.unix_micros("at").alias("micros")).distinct().collect()
    names = {((row.system, row.cluster, row.group), name_of_micros(row.micros)) for row in rows}
    return [sample for sample in samples if (sample.key, sample.time_name) not in names]


def prepare(history: Folder) -> None:
    """Let the folder be a whole history of this version."""
    version_of(history)  # a newer planner's is left alone, its half-done change too
    recover(history)
    if version_of(history) != VERSION:
        upgrade(history)


def _day_and_system(sample: LandedSample) -> tuple[date, str]:
    return sample.day, sample.key[0]


def _pack(history: Folder, day: date, system: str, samples: Sequence[LandedSample], sample_every_s: float) -> int:
    """Add one day's samples of one system, and let the history hold them from now on; return how many intervals."""
    batches = _batches(history.spark, samples)
    traces = read_traces(batches).persist()
    change = Change(history)
    last = max(sample.time_name for sample in samples)
    intervals = add_day(change, day, system, traces, sample_every_s, f"{SAMPLED}-{last}")
    change.write(traces.drop("system"), "traces", *_folder(day, system), source=SAMPLED)
    change.write(read_documents(batches).drop("system"), "samples", *_folder(day, system), source=SAMPLED)
    change.commit()
    traces.unpersist()
    return intervals


def add_day(
    change: Change, day: date, system: str, traces: DataFrame, sample_every_s: float, source: str = SAMPLED
) -> int:
    """Let a change add what one day's traces of one system say; return how many intervals that are."""
    states = read_states(change.history, STATES)
    intervals, rows = counting_rows(derive_intervals(traces, states.where(F.col("system") == system), sample_every_s))
    change.write(intervals.drop("system"), "intervals", *_folder(day, system), source=source)
    change.delete(change.history.under(STATES_TABLE).files())
    change.write(continue_states(traces, states, sample_every_s), STATES_TABLE, source=SAMPLED)
    return rows()


def _folder(day: date, system: str) -> tuple[str, str]:
    return day_name(day), f"system={system}"


def _batches(spark: SparkSession, samples: Sequence[LandedSample]) -> DataFrame:
    """Return the files in batches of one group each, spread over the executors."""
    rows: list[tuple[list[str]]] = []
    for _, of_group in groupby(sorted(samples, key=lambda sample: (sample.key, sample.time_name)), key=_group):
        paths = [str(sample.path) for sample in of_group]
        rows.extend((paths[first : first + FILES_A_BATCH],) for first in range(0, len(paths), FILES_A_BATCH))
    tasks = max(spark.sparkContext.defaultParallelism, len(samples) // FILES_A_BATCH)
    return spark.createDataFrame(rows, BATCHES).repartition(min(tasks, len(rows)))


def _group(sample: LandedSample) -> GroupKey:
    return sample.key


def _forget_all_but_the_newest(landed: Sequence[LandedSample], fresh: Sequence[LandedSample], history: Folder) -> None:
    """Remove sample files that the history gives back as they are; a snapshot starts from the newest of its group.

    One that was packed by an earlier run may be of a day that the history does not keep any more.
    """
    newest = {sample.key: sample for sample in sorted(landed, key=lambda sample: sample.time_name)}
    older = [sample for sample in landed if newest[sample.key] != sample]
    packed, new = _find_packed(older, history), set(fresh)
    kept_days = {day_of(folder) for folder in day_folders(history, "samples")}
    lost = []
    for sample in older:
        is_outdated = sample not in new and sample.day not in kept_days
        if is_outdated or (sample.key, sample.time_name, _fingerprint(sample.path)) in packed:
            sample.path.unlink(missing_ok=True)
        else:
            lost.append(sample)
    if lost:
        raise StorageError(
            f"{lost[0].path} was packed and the history does not give it back as it is ({len(lost)} like this): the "
            "files are kept. Run again; if it stays, move them elsewhere and run with --rebuild"
        )


def _find_packed(samples: Sequence[LandedSample], history: Folder) -> set[tuple[GroupKey, str, str]]:
    """Return which samples the history gives back on the days of these: group, time and fingerprint."""
    if not samples:
        return set()
    days = [sample.day for sample in samples]
    keys = history.spark.createDataFrame(list({sample.key for sample in samples}), list(GROUP_KEY))
    first, last = (time_of_name(bound(sample.time_name for sample in samples)) for bound in (min, max))
    rows = read_days(history, "samples", SAMPLES, min(days), max(days)).where(F.col("at").between(first, last))
    packed_rows = rows.join(keys, list(GROUP_KEY), "left_semi").select(
        *GROUP_KEY, F.unix_micros("at").alias("micros"), F.sha2("document", 256).alias("fingerprint")
    )
    return {
        ((row.system, row.cluster, row.group), name_of_micros(row.micros), row.fingerprint)
        for row in packed_rows.distinct().collect()
    }


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rebuild(history: Folder, sample_every_s: float) -> None:
    """Make the history again from the packed raw samples, day by day; rows from elsewhere stay."""
    with only_run(history):
        _rebuild(history, sample_every_s)


def _rebuild(history: Folder, sample_every_s: float) -> None:
    recover(history)
    _forget_sampled(history)
    for folder in sorted(day_folders(history, "traces"), key=lambda folder: (day_of(folder), folder.uri)):
        system = folder.name.removeprefix("system=")
        traces = history.spark.read.schema(TRACES).option("basePath", history.under("traces").uri).parquet(folder.uri)
        change = Change(history)
        add_day(change, day_of(folder), system, traces.select(*TRACES.names), sample_every_s)
        change.commit()


def _forget_sampled(history: Folder) -> None:
    change = Change(history)
    kept: list[Folder] = []
    for folder in day_folders(history, "intervals"):
        files = files_by_source(folder)
        change.delete(files.pop(SAMPLED, []))
        kept.extend(file for rest in files.values() for file in rest)
    change.delete(history.under(STATES_TABLE).files())
    if kept:
        rows = history.spark.read.schema(HISTORY).option("basePath", history.under("intervals").uri)
        sampled = rows.parquet(*(file.uri for file in kept)).where(F.col("source") == SAMPLED)
        change.write(states_of_history(sampled), STATES_TABLE, source=SAMPLED)
    change.commit()


if __name__ == "__main__":
    finish(main)
