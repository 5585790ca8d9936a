"""A group's past out of metrics becomes rows of the lag history, where the history knows nothing yet."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows
from pyspark.sql.types import StructType

from planner.documents.data import METRIC_HISTORY
from planner.model.intervals import QueueInterval
from planner.model.points import GroupPoint, MetricHistory
from planner.storage.files import remove_file
from planner.storage.landing import set_aside
from planner.storage.layout import metrics_folder
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import Change, day_folders, recover
from spark_apps.common.history_lock import only_run
from spark_apps.common.parquet_files import read_parquet
from spark_apps.history.schemas import BATCHES, GROUP_KEY, HISTORY, UNREADABLE
from spark_apps.history.transforms import SAMPLED
from spark_apps.history.unreadable import Rows, add_readable, find_unreadable, table_of

METRICS = "metrics"
"""What the names of files begin with whose rows come from metrics."""
ROWS = StructType([field for field in HISTORY if field.name != "day"])


def import_metrics(history: Folder, data: Path) -> tuple[int, Mapping[str, str]]:
    """Add what landed of metrics to the history and remove the files.

    Returns how many rows that were, and why files that cannot be used were set aside, by path.

    Of each group only what ends before the first row of the history is new; without samples of it also what begins
    after the last row. Where samples are missing their intervals have the true means already.
    """
    if not any(metrics_folder(data).glob("*/*/*/*.json")):
        return 0, {}
    with only_run(history):
        return _import(history, data)


def _import(history: Folder, data: Path) -> tuple[int, Mapping[str, str]]:
    recover(history)
    paths = sorted(metrics_folder(data).glob("*/*/*/*.json"))
    if not paths:
        return 0, {}
    # Last: a run that ends before leaves the files to the next one.
    added, reasons = add_readable(history, paths, partial(_add, history), partial(_check, history), str)
    return added or 0, {path: set_aside(Path(path), reason) for path, reason in reasons.items()}


def _check(history: Folder, paths: Sequence[Path]) -> DataFrame:
    return _batches(history, paths).mapInArrow(_unreadable_of_batches, UNREADABLE)


def _unreadable_of_batches(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return find_unreadable(tables, lambda path: table_of([path], _rows, ROWS))


def _batches(history: Folder, paths: Sequence[Path]) -> DataFrame:
    return history.spark.createDataFrame([([str(path)],) for path in paths], BATCHES).repartition(len(paths))


def _add(history: Folder, paths: Sequence[Path]) -> int:
    batches = _batches(history, paths)
    rows = _unknown_yet(batches.mapInArrow(_rows_of_batches, ROWS), history)
    rows = rows.withColumn("day", F.date_format("ended_at", "yyyy-MM-dd")).dropDuplicates(_IDENTITY).persist()
    change = Change(history)
    try:
        for day, system in sorted(rows.select("day", "system").distinct().collect()):
            of_day = rows.where((F.col("day") == day) & (F.col("system") == system)).drop("day", "system")
            change.write(of_day.coalesce(1), "intervals", f"day={day}", f"system={system}", source=METRICS)
        added = rows.count()
        change.commit()
    finally:
        rows.unpersist()
    for path in paths:
        remove_file(path)
    return added


_IDENTITY = [*GROUP_KEY, "topic", "broker", "queue_id", "ended_at"]


def _unknown_yet(rows: DataFrame, history: Folder) -> DataFrame:
    folders = day_folders(history, "intervals")
    if not folders:
        return rows
    known = (
        read_parquet(folders, HISTORY, history.under("intervals"))
        .groupBy(*GROUP_KEY)
        .agg(
            F.min("started_at").alias("first"),
            F.max("ended_at").alias("last"),
            F.max(F.col("source") == SAMPLED).alias("is_sampled"),
        )
    )
    is_later = ~F.col("is_sampled") & (F.col("started_at") >= F.col("last"))
    is_new = F.col("first").isNull() | (F.col("ended_at") <= F.col("first")) | is_later
    return rows.join(F.broadcast(known), on=list(GROUP_KEY), how="left").where(is_new).select(*ROWS.names)


def _rows_of_batches(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        for paths in table["paths"].to_pylist():
            yield from table_of(paths, _rows, ROWS).to_batches()


def _rows(paths: Sequence[str]) -> Rows:
    return [row for path in paths for row in rows_of(METRIC_HISTORY.read(Path(path)))]


def rows_of(history: MetricHistory) -> Rows:
    """Return the rows of one group: of its queues where metrics tell them apart, else of its topics, else its own."""
    group = {"system": history.system, "cluster": history.cluster, "group": history.group, "source": history.source}
    if history.intervals:
        return [group | _of_queue(interval) for interval in history.intervals]
    return [group | _of_point(point) for point in history.by_topic or history.points]


def _of_queue(interval: QueueInterval) -> dict[str, object]:
    queue = interval.queue
    figures = {name: getattr(interval, name) for name in HISTORY.names if hasattr(interval, name)}
    broker = queue.broker or ""
    return figures | {"topic": queue.topic, "broker": broker, "queue_id": queue.number}


def _of_point(point: GroupPoint) -> dict[str, object]:
    """Rates without offsets: which queue they belong to is unknown."""
    figures = {name: getattr(point, name) for name in HISTORY.names if hasattr(point, name)}
    return figures | {"started_at": point.at - timedelta(seconds=point.seconds), "ended_at": point.at}
