"""Files that landed and cannot be used are set aside: one of them never keeps the others from the history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from planner.errors import BadInputError, PlannerError
from planner.storage.landing import landed_at
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import recover
from spark_apps.history.schemas import UNREADABLE

_F = TypeVar("_F")
_T = TypeVar("_T")

Batches = Iterator[pa.RecordBatch]
Rows = list[dict[str, object]]


def add_readable(
    history: Folder,
    files: Sequence[_F],
    add: Callable[[Sequence[_F]], _T],
    check: Callable[[Sequence[_F]], DataFrame],
    location_of: Callable[[_F], str],
) -> tuple[_T | None, Mapping[str, str]]:
    """Return what ``add`` makes of the files, and why some cannot be used, by location; ``None`` where none is left.

    Only where ``add`` fails does ``check`` look at each file by itself (``UNREADABLE``); ``add`` then gets the rest.
    The caller sets aside what is named, and last, as a run that is killed leaves it to the next one. An error that is
    no file's fault goes on.
    """
    try:
        return add(files), {}
    except (PySparkException, Py4JJavaError):
        reasons = {row.path: row.reason for row in check(files).collect()}
        if not reasons:
            raise
    recover(history)  # forgets what the failed change has staged
    rest = [file for file in files if location_of(file) not in reasons]
    return (add(rest) if rest else None), reasons


def table_of(paths: Sequence[str], rows_of: Callable[[Sequence[str]], Rows], schema: StructType) -> pa.Table:
    """Return the rows of the files as Spark takes them from a worker.

    Raises ``BadInputError`` for a figure that its column cannot hold, as an offset of 2^63, and a time before year 1.
    """
    try:
        return pa.Table.from_pylist(rows_of(paths), to_arrow_schema(schema, timezone="UTC"))
    except (pa.ArrowException, OverflowError) as error:
        files = f"{paths[0]}" if len(paths) == 1 else f"one of {len(paths)} files from {paths[0]} on"
        raise BadInputError(f"{files}: a figure or time is beyond what the history can hold ({error})") from error


def find_unreadable(tables: Batches, read: Callable[[str], object]) -> Batches:
    """Yield ``UNREADABLE`` for each location of the batches that ``read`` fails on; a file that is gone is fine."""
    for table in tables:
        for paths in table["paths"].to_pylist():
            rows = [{"path": path, "reason": reason} for path in paths if (reason := _reason(path, read))]
            yield from pa.Table.from_pylist(rows, to_arrow_schema(UNREADABLE, timezone="UTC")).to_batches()


def _reason(location: str, read: Callable[[str], object]) -> str | None:
    try:
        read(location)
    except PlannerError as error:
        reason = str(error).rstrip(".")
    except (OSError, ValueError, OverflowError) as error:
        reason = f"{location} cannot be used ({type(error).__name__}: {error})"
    else:
        return None
    return reason if landed_at(location).path.exists() else None
