"""The lag history as a folder: which planner can read it, and where its hours lie."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows
from pyspark.sql.types import StructType

from planner.documents.data import DataKind
from planner.errors import DocumentError, NewerVersionError
from planner.storage.files import write_atomically

VERSION = 1
VERSION_FILE = "_version.json"


@dataclass(frozen=True, slots=True)
class HistoryVersion:
    """Which columns the history has; a larger number is a newer planner's."""

    version: int


HISTORY_VERSION: DataKind[HistoryVersion] = DataKind("LagHistory", TypeAdapter(HistoryVersion))


def check_version(history: Path) -> None:
    """Raise ``NewerVersionError`` when a newer planner wrote the folder; one that is not there yet is fine."""
    path = history / VERSION_FILE
    if not path.exists():
        if any(history.glob("day=*")):
            raise DocumentError(
                f"{history}: found days of a history without {VERSION_FILE}: restore that file, or move the folder away"
            )
        return
    found = HISTORY_VERSION.read(path).version
    if found > VERSION:
        raise NewerVersionError(
            f"{history}: found a history of version {found}, this planner reads version {VERSION}: "
            "use the planner version that wrote it, or another data folder"
        )


def mark_version(history: Path) -> None:
    """Write the version file where there is none."""
    path = history / VERSION_FILE
    if not path.exists():
        write_atomically(path, HISTORY_VERSION.dump(HistoryVersion(VERSION)))


def read_hours(spark: SparkSession, history: Path, schema: StructType, first: datetime, last: datetime) -> DataFrame:
    """Return the rows that end within the hours of ``first`` to ``last``, both included; none is an empty frame."""
    folders = [str(folder) for folder in _hour_folders(history, first, last)]
    if not folders:
        return spark.createDataFrame([], schema)
    # Parquet columns are nullable on reading, whatever was promised on writing.
    frame = spark.read.schema(schema).option("basePath", str(history)).parquet(*folders)
    return frame.select(*(F.col(name) for name in schema.fieldNames()))


def _hour_folders(history: Path, first: datetime, last: datetime) -> list[Path]:
    lowest, highest = f"{first:day=%Y-%m-%d/hour=%H}", f"{last:day=%Y-%m-%d/hour=%H}"
    found = (path for path in history.glob("day=*/hour=*") if path.is_dir())
    return sorted(path for path in found if lowest <= path.relative_to(history).as_posix() <= highest)
