"""Keep the history small and quick to read: few files a day, and no days beyond the wanted ones."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

from pyspark.sql.types import StructType

from planner.history.message_age import REACH
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import DAILY_TABLES, Change, day_folders, day_of, files_by_source, recover
from spark_apps.common.history_lock import only_run
from spark_apps.common.parquet_files import FILE_ROWS, read_footer, read_parquet
from spark_apps.history.schemas import HISTORY, QUEUE_KEY, SAMPLES, TRACES

FILE_BYTES = 128 * 1024 * 1024
"""How large compaction lets a file become, roughly."""

LEAST_DAYS = 3
"""Days that are kept whatever is asked for: the longest window, a day, reaches back over gaps so far."""

_WITHIN_A_DAY = {"intervals": HISTORY, "traces": TRACES, "samples": SAMPLES}
_ORDER = {
    "intervals": (*QUEUE_KEY[1:], "ended_at"),
    "traces": QUEUE_KEY[1:],
    "samples": ("cluster", "group", "at"),
}
"""Neighbours alike: small files, and a reader of one group can skip the others."""


def tidy(history: Folder, until: datetime, keep_days: int) -> None:
    """Merge the small files of closed days, and drop the days that are more than ``keep_days`` before ``until``.

    ``LEAST_DAYS`` are always kept. A day is closed when nobody needs its newest hours for a snapshot any more. The
    state of a queue is never dropped.
    """
    with only_run(history):
        recover(history)
        _tidy(history, until, keep_days)


def _tidy(history: Folder, until: datetime, keep_days: int) -> None:
    change = Change(history)
    first_kept = until.date() - timedelta(days=max(keep_days, LEAST_DAYS))
    for table in DAILY_TABLES:
        old = [folder for folder in day_folders(history, table) if day_of(folder) < first_kept]
        change.delete(old)
    change.commit()
    for table in DAILY_TABLES:
        for folder in day_folders(history, table):
            if day_of(folder) < (until - REACH).date():
                compact(history, table, folder)


def compact(history: Folder, table: str, folder: Folder) -> None:
    """Merge the files of a day's folder, those of each source by themselves, where there are more than it needs."""
    change = Change(history)
    for source, files in files_by_source(folder).items():
        needed = _files_needed(files) if len(files) > 1 else 1
        if len(files) > needed:
            _merge(change, table, folder, source, files, needed)
    if change.moves:
        change.commit()


def _files_needed(files: Sequence[Folder]) -> int:
    size, rows = sum(file.size() for file in files), sum(read_footer(file).rows for file in files)
    return max(ceil(size / FILE_BYTES), ceil(rows / FILE_ROWS))


def _merge(change: Change, table: str, folder: Folder, source: str, files: Sequence[Folder], needed: int) -> None:
    schema = StructType([field for field in _WITHIN_A_DAY[table] if field.name not in ("day", "system")])
    order = _ORDER[table]
    rows = read_parquet(files, schema, folder)
    merged = rows.coalesce(1) if needed == 1 else rows.repartitionByRange(needed, *order)
    day, system = folder.uri.split("/")[-2:]
    change.write(merged.sortWithinPartitions(*order), table, day, system, source=source)
    change.delete(files)
