"""The history made again from the packed raw samples."""

from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import (
    STATES_TABLE,
    Change,
    day_folders,
    day_of,
    files_by_source,
    recover,
)
from spark_apps.common.history_lock import only_run
from spark_apps.common.parquet_files import read_parquet
from spark_apps.history.day import add_day
from spark_apps.history.schemas import HISTORY, TRACES
from spark_apps.history.transforms import (
    SAMPLED,
    states_of_history,
)


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
