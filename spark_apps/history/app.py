"""Bring the lag history up to date: raw samples below the data folder to Parquet below the history folder.

    spark-submit spark_apps/history/app.py --data DIR --until TIME --sample-every SECONDS
        [--history URI] [--keep-days N] [--rebuild]

Reads only what has landed since the last run, readings of installations and files of one sample, adds it to the
history, packs the raw samples into the history folder and removes their files; the newest sample of each group stays.
What landed below ``<data>/metrics`` is imported. A file that cannot be used is moved into a folder ``set-aside`` beside
it, and said. Running it twice changes nothing.
"""

import argparse
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.errors import StorageError
from planner.storage.files import remove_file
from planner.storage.landing import (
    GroupKey,
    LandedSample,
    landed_at,
    misnamed_files,
    reading_files,
    sample_files,
    samples_of_reading,
    set_aside,
    set_reading_aside,
    take_out,
)
from planner.storage.layout import RunFolder, history_folder, time_name, time_of_name
from planner.storage.run import add_set_aside
from planner.text.printable import one_line
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
from spark_apps.common.parquet_files import read_parquet
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
    unreadable_samples,
)
from spark_apps.history.unreadable import add_readable
from spark_apps.history.upgrade import upgrade
from spark_apps.history.upkeep import tidy

FILES_A_BATCH = 200
LAST = "~"
"""Sorts after the name of any time."""


@dataclass(frozen=True, slots=True)
class Updated:
    """How many samples of how many groups were read, and how many intervals they added to the history.

    ``late`` of them came after a later one of their group was known already: these are packed and not in the history;
    ``rebuild`` puts them in. ``set_aside`` says of files that cannot be used why, by path.
    """

    samples: int
    late: int
    groups: int
    intervals: int
    set_aside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Packed:
    """The samples that had landed below ``data`` when a history was brought up to date, and the ``fresh`` ones."""

    data: Path

    landed: Sequence[LandedSample]
    fresh: Sequence[LandedSample]


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
    packed, figures = add_samples(spark, data, until, sample_every_s, location)
    if is_rebuilt:
        rebuild(Folder.of(spark, location), sample_every_s)
    tidy_history(spark, location, packed, until, keep_days)
    return figures


def add_samples(
    spark: SparkSession, data: Path, until: datetime, sample_every_s: float, location: str
) -> tuple[Packed, Figures]:
    """Bring the history at ``location`` up to date; return what ``tidy_history`` has to know, and what was done.

    No decision waits for the rest: files of packed samples and small files are in nobody's way.
    """
    history = Folder.of(spark, location)
    version_of(history)  # a newer planner's is left alone, without so much as a lock
    with only_run(history):
        packed, done = _add(history, data, until, sample_every_s)
    imported, unreadable = import_metrics(history, data)
    aside = {**done.set_aside, **unreadable}
    add_set_aside(RunFolder.of(data, until), aside)
    for sentence in aside.values():
        print(f"history: {one_line(sentence)}")  # noqa: T201
    late = f", {done.late} of them too late for it: run the history app with --rebuild to add them" if done.late else ""
    if imported:
        print(f"history: {imported} intervals and points of metrics in {location}")  # noqa: T201
    print(f"history: {done.samples} samples up to {until.isoformat()} in {location}{late}")  # noqa: T201
    figures = Figures({"samples": done.samples, "groups": done.groups}, {"intervals": done.intervals + imported})
    return packed, figures


def tidy_history(spark: SparkSession, location: str, packed: Packed, until: datetime, keep_days: int) -> Figures:
    """Remove the files of samples that the history gives back as they are, merge small files, drop days.

    Returns how many sample files there were and how many stay. A run that ends before leaves them to the next one.
    Raises ``StorageError`` while another run changes the history, and where packed samples cannot be read back.
    """
    history = Folder.of(spark, location)
    with only_run(history):
        recover(history)
        files = {sample.path for sample in packed.landed}
        present = {path for path in files if path.exists()}  # another run may have removed some meanwhile
        landed = [sample for sample in packed.landed if sample.path in present]
        _forget_all_but_the_newest(replace(packed, landed=landed), history)
    tidy(history, until, keep_days)
    return Figures({"sample files": len(files)}, {"sample files left": sum(path.exists() for path in files)})


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

    Continues from the last known state of each queue, however long ago. A file that cannot be used is set aside, beside
    the others. Nothing is written when a newer planner wrote the history. Raises ``StorageError`` while another run
    changes the history, and where packed samples cannot be read back.
    """
    history = Folder.of(spark, location or history_folder(data))
    version_of(history)  # a newer planner's is left alone, without so much as a lock
    with only_run(history):
        packed, done = _add(history, data, until, sample_every_s)
        _forget_all_but_the_newest(packed, history)
    return done


def _add(history: Folder, data: Path, until: datetime, sample_every_s: float) -> tuple[Packed, Updated]:
    prepare(history)
    known = newest_of_groups(read_states(history, STATES))
    landed, aside = _find_landed(data, time_name(until))
    fresh = _not_packed([sample for sample in landed if sample.time_name != known.get(sample.key)], known, history)
    intervals, reasons = 0, dict[str, str]()
    for (day, system), of_day in groupby(sorted(fresh, key=_day_and_system), key=_day_and_system):
        pack = partial(_pack, history, day, system, sample_every_s=sample_every_s)
        added, unreadable = add_readable(history, list(of_day), pack, partial(_check, history.spark), _location)
        intervals += added or 0
        reasons |= unreadable
    fresh = [sample for sample in fresh if sample.location not in reasons]
    late = sum(sample.time_name < known.get(sample.key, "") for sample in fresh)
    # Last: a run that ends before leaves the files to the next one.
    aside |= _set_aside(data, landed, reasons)
    done = Updated(len(fresh), late, len({sample.key for sample in fresh}), intervals, aside)
    landed, fresh = ([sample for sample in samples if str(sample.path) not in aside] for samples in (landed, fresh))
    return Packed(data, landed, fresh), done


def _find_landed(data: Path, until: str) -> tuple[list[LandedSample], dict[str, str]]:
    """Return the samples that landed up to ``until``, and why files were set aside, by path."""
    aside = {str(path): set_aside(path, f"{path} is not named like a sample") for path in misnamed_files(data)}
    landed: list[LandedSample] = []
    for path in reading_files(data):
        samples, fault = samples_of_reading(path)
        if fault is not None:
            aside[str(path)] = set_reading_aside(data, path, samples, fault)
        else:
            landed.extend(samples)
    landed.extend(sample_files(data))  # with those that had to leave a reading just now
    return [sample for sample in landed if sample.time_name <= until], aside


def _set_aside(data: Path, landed: Sequence[LandedSample], reasons: Mapping[str, str]) -> Mapping[str, str]:
    """Set files aside that cannot be used, or that hold what cannot be; return why, by path."""
    by_path: dict[Path, list[str]] = {}
    for location, reason in reasons.items():
        by_path.setdefault(landed_at(location).path, []).append(reason)
    sentences = {}
    for path, of_path in by_path.items():
        more = f" (one of {len(of_path)})" if len(of_path) > 1 else ""
        of_reading = [sample for sample in landed if sample.path == path and sample.line is not None]
        whole = [sample for sample in of_reading if sample.location not in reasons]
        sentences[str(path)] = set_reading_aside(data, path, whole, f"{of_path[0]}{more}")
    return sentences


def _check(spark: SparkSession, samples: Sequence[LandedSample]) -> DataFrame:
    return unreadable_samples(_batches(spark, samples))


def _location(sample: LandedSample) -> str:
    return sample.location


def _not_packed(
    samples: Sequence[LandedSample], known: Mapping[GroupKey, str], history: Folder
) -> Sequence[LandedSample]:
    """Return the samples that the history does not hold: a task that is tried again lands them again."""
    # What comes after all that is known cannot be packed; so nothing has to be looked up as a rule.
    doubtful = [sample for sample in samples if sample.time_name < known.get(sample.key, LAST)]
    packed = _find_packed(doubtful, history)
    if not packed:
        return samples
    repeats = {sample for sample in doubtful if _identity(sample) in packed}
    return [sample for sample in samples if sample not in repeats]


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
    try:
        intervals = add_day(change, day, system, traces, sample_every_s, f"{SAMPLED}-{last}")
        change.write(traces.drop("system"), "traces", *_folder(day, system), source=SAMPLED)
        change.write(read_documents(batches).drop("system"), "samples", *_folder(day, system), source=SAMPLED)
        change.commit()
    finally:
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
    """Return where the samples lie, in batches of one group each, spread over the executors."""
    rows: list[tuple[list[str]]] = []
    for _, of_group in groupby(sorted(samples, key=lambda sample: (sample.key, sample.time_name)), key=_group):
        paths = [sample.location for sample in of_group]
        rows.extend((paths[first : first + FILES_A_BATCH],) for first in range(0, len(paths), FILES_A_BATCH))
    tasks = max(spark.sparkContext.defaultParallelism, len(samples) // FILES_A_BATCH)
    return spark.createDataFrame(rows, BATCHES).repartition(min(tasks, len(rows)))


def _group(sample: LandedSample) -> GroupKey:
    return sample.key


def _forget_all_but_the_newest(given: Packed, history: Folder) -> None:
    """Remove samples that the history gives back as they are; a snapshot starts from the newest of its group.

    One that was packed by an earlier run may be of a day that the history does not keep any more. A reading goes whole:
    what has to stay of it gets a file of its own.
    """
    newest: dict[GroupKey, str] = {}
    for sample in given.landed:
        newest[sample.key] = max(sample.time_name, newest.get(sample.key, ""))
    older = [sample for sample in given.landed if sample.time_name < newest[sample.key]]
    packed, new = _find_packed(older, history), set(given.fresh)
    kept_days = {day_of(folder) for folder in day_folders(history, "samples")}
    outdated = {sample for sample in older if sample not in new and sample.day not in kept_days}
    lost = {sample for sample in older if sample not in outdated and _identity(sample) not in packed}
    _remove(given, set(older) - lost, keep={sample.path for sample in lost})
    if lost:
        raise StorageError(
            f"{min(sample.path for sample in lost)} was packed and the history does not give it back as it is "
            f"({len(lost)} like this): the files are kept. Run again; if it stays, move them elsewhere and run with "
            "--rebuild"
        )


def _remove(given: Packed, samples: Collection[LandedSample], keep: Collection[Path]) -> None:
    """Remove the files of these samples, but none of those to ``keep``."""
    by_path: dict[Path, list[LandedSample]] = {}
    for sample in given.landed:
        by_path.setdefault(sample.path, []).append(sample)
    for path in sorted({sample.path for sample in samples} - set(keep)):
        take_out(given.data, [sample for sample in by_path[path] if sample not in samples])
        remove_file(path)


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


def _identity(sample: LandedSample) -> tuple[GroupKey, str, str]:
    return sample.key, sample.time_name, hashlib.sha256(sample.document()).hexdigest()


def rebuild(history: Folder, sample_every_s: float) -> None:
    """Make the history again from the packed raw samples, day by day; rows from elsewhere stay."""
    with only_run(history):
        _rebuild(history, sample_every_s)


def _rebuild(history: Folder, sample_every_s: float) -> None:
    recover(history)
    _forget_sampled(history)
    for folder in sorted(day_folders(history, "traces"), key=lambda folder: (day_of(folder), folder.uri)):
        system = folder.name.removeprefix("system=")
        traces = read_parquet([folder], TRACES, history.under("traces"))
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
        rows = read_parquet(kept, HISTORY, history.under("intervals"))
        sampled = rows.where(F.col("source") == SAMPLED)
        change.write(states_of_history(sampled), STATES_TABLE, source=SAMPLED)
    change.commit()


if __name__ == "__main__":
    finish(main)
