"""Packed samples: which ones the history gives back as they are, so that their files can go."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.errors import StorageError
from planner.storage.files import remove_file
from planner.storage.landing import (
    GroupKey,
    LandedSample,
    take_out,
)
from planner.storage.layout import time_of_name
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import (
    day_folders,
    day_of,
    name_of_micros,
    read_days,
)
from spark_apps.history.schemas import GROUP_KEY, SAMPLES

LAST = "~"
"""Sorts after the name of any time."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The samples that had landed below ``data`` when a history was brought up to date, and the ``fresh`` ones."""

    data: Path

    landed: Sequence[LandedSample]
    fresh: Sequence[LandedSample]


def leave_out_packed(
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


def remove_all_but_the_newest(given: Packed, history: Folder) -> None:
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
