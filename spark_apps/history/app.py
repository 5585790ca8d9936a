"""Bring the lag history up to date: raw samples below the data folder to Parquet below the history folder.

    spark-submit spark_apps/history/app.py --data DIR --until TIME --sample-every SECONDS
        [--history URI] [--keep-days N] [--rebuild]

Reads only what has landed since the last run, readings of installations and files of one sample, adds it to the
history, packs the raw samples into the history folder and removes their files; the newest sample of each group stays.
What landed below ``<data>/metrics`` is imported. A file that cannot be used is moved into a folder ``set-aside`` beside
it, and said. Running it twice changes nothing.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from planner.storage.landing import (
    LandedSample,
)
from planner.storage.layout import RunFolder, history_folder, time_name
from planner.storage.run import add_set_aside
from planner.text.printable import one_line
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import (
    VERSION,
    newest_of_groups,
    read_states,
    recover,
    version_of,
)
from spark_apps.common.history_lock import only_run
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, run_stage
from spark_apps.history.day import batches_of, pack_day
from spark_apps.history.landed_samples import find_landed, set_unusable_aside
from spark_apps.history.metrics import import_metrics
from spark_apps.history.packed_samples import Packed, leave_out_packed, remove_all_but_the_newest
from spark_apps.history.rebuild import rebuild
from spark_apps.history.schemas import STATES
from spark_apps.history.transforms import (
    unreadable_samples,
)
from spark_apps.history.unreadable import add_readable
from spark_apps.history.upgrade import upgrade
from spark_apps.history.upkeep import tidy


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
        remove_all_but_the_newest(replace(packed, landed=landed), history)
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
        remove_all_but_the_newest(packed, history)
    return done


def _add(history: Folder, data: Path, until: datetime, sample_every_s: float) -> tuple[Packed, Updated]:
    prepare(history)
    known = newest_of_groups(read_states(history, STATES))
    landed, aside = find_landed(data, time_name(until))
    fresh = leave_out_packed([sample for sample in landed if sample.time_name != known.get(sample.key)], known, history)
    intervals, reasons = 0, dict[str, str]()
    for (day, system), of_day in groupby(sorted(fresh, key=_day_and_system), key=_day_and_system):
        pack = partial(pack_day, history, day, system, sample_every_s=sample_every_s)
        added, unreadable = add_readable(history, list(of_day), pack, partial(_check, history.spark), _location)
        intervals += added or 0
        reasons |= unreadable
    fresh = [sample for sample in fresh if sample.location not in reasons]
    late = sum(sample.time_name < known.get(sample.key, "") for sample in fresh)
    # Last: a run that ends before leaves the files to the next one.
    aside |= set_unusable_aside(data, landed, reasons)
    done = Updated(len(fresh), late, len({sample.key for sample in fresh}), intervals, aside)
    landed, fresh = ([sample for sample in samples if str(sample.path) not in aside] for samples in (landed, fresh))
    return Packed(data, landed, fresh), done


def _check(spark: SparkSession, samples: Sequence[LandedSample]) -> DataFrame:
    return unreadable_samples(batches_of(spark, samples))


def _location(sample: LandedSample) -> str:
    return sample.location


def prepare(history: Folder) -> None:
    """Let the folder be a whole history of this version."""
    version_of(history)  # a newer planner's is left alone, its half-done change too
    recover(history)
    if version_of(history) != VERSION:
        upgrade(history)


def _day_and_system(sample: LandedSample) -> tuple[date, str]:
    return sample.day, sample.key[0]


if __name__ == "__main__":
    finish(main)
