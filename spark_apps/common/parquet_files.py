"""Parquet is read here alone, and only files whose footer states no more than a history can hold.

A Parquet file packs: a few hundred bytes can state 10⁹ rows, or a row group of a TiB. Spark goes by the footer, so it
is bounded before a row is read. What pages hold beyond its word is bounded by the memory of Spark's Java alone: even
the lengths of runs within a page are stated (``errors.lost_java`` says what a reader then sees).
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from planner.errors import StorageError
from spark_apps.common.errors import REMEDY, unreadable_parquet
from spark_apps.common.folder import Folder
from spark_apps.common.parquet_footer import Footer, FooterError, parse_footer

FILE_ROWS: Final = 50_000_000
"""Most rows of a file that we write."""
MOST_ROWS: Final = 2 * FILE_ROWS
MOST_VALUES: Final = 100_000_000
"""Of one column in a row group, as a row may hold a list of them: more than fit into the 128 MiB of a group of ours."""
MOST_GROUP_BYTES: Final = 2 * 1024**3
"""Of one row group, unpacked. Spark looks at its size every 100 rows: so many large samples may be in one."""
MOST_BYTES: Final = 64 * 1024**3
"""Of one file, as it lies there, and of its row groups together, unpacked."""
MOST_FOOTER_BYTES: Final = 4 * 1024**2
MOST_COLUMNS: Final = 1_000
MOST_LEVELS: Final = 16
MAGIC: Final = b"PAR1"
_TAIL: Final = 8
"""Bytes after a footer: its length and ``PAR1``."""
_FIRST_BYTES: Final = 32 * 1024
"""How much of a file's last bytes is fetched at first: most footers are shorter."""
_AT_ONCE: Final = 8
"""How many footers are fetched at the same time: a far store answers slowly."""


def read_parquet(files: Sequence[Folder], schema: StructType, base: Folder) -> DataFrame:
    """Return the rows of the files and folders, with the columns that folder names below ``base`` state.

    Raises ``StorageError``, before any row is read, for a file that is no Parquet or beyond a bound.
    """
    spark = base.spark
    frame = spark.read.schema(schema).option("basePath", base.uri).parquet(*(file.uri for file in files))
    # What Spark listed, folders within folders too, is what it will read.
    check_files([_file_at(spark, uri) for uri in frame.inputFiles()])
    return frame


def check_files(files: Sequence[Folder]) -> None:
    """Raise ``StorageError`` for the first of the files that is no Parquet or beyond a bound."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(read_footer, files):
            pass


def read_footer(file: Folder) -> Footer:
    """Return what a file within bounds states of itself; raises ``StorageError``."""
    size = file.size()
    end = file.read_end(min(size, _FIRST_BYTES))
    length = footer_length(file.uri, size, end)
    if length + _TAIL > len(end):
        end = file.read_end(length + _TAIL)
    return check_footer(file.uri, end[-length - _TAIL : -_TAIL], size)


def footer_length(name: str, size: int, end: bytes) -> int:
    """Return of how many bytes the footer is, by the ``end`` of a file of ``size`` bytes; raises ``StorageError``."""
    length = int.from_bytes(end[-_TAIL : -len(MAGIC)], "little")
    if size < len(MAGIC) + _TAIL or not end.endswith(MAGIC) or length > size - len(MAGIC) - _TAIL:
        raise unreadable_parquet(name)
    _check(name, "a footer of", length, MOST_FOOTER_BYTES, "bytes")
    _check(name, "a file of", size, MOST_BYTES, "bytes")
    return length


def check_footer(name: str, content: bytes, size: int) -> Footer:
    """Return what a footer within bounds states, of a file of ``size`` bytes; raises ``StorageError`` that names it."""
    try:
        footer = parse_footer(content)
    except FooterError as error:
        raise unreadable_parquet(name, f" (its footer: {error})") from error
    for subject, count, most, unit in _figures(footer):
        _check(name, subject, count, most, unit)
    last = size - _TAIL - len(content)
    if not all(len(MAGIC) <= start <= end <= last for start, end in _spans(footer)):
        raise unreadable_parquet(name, " (its footer: a column that lies where the file has none)")
    return footer


def _figures(footer: Footer) -> Iterator[tuple[str, int, int, str]]:
    """Yield what a footer states, and the most that it may."""
    yield "a table of", footer.columns, MOST_COLUMNS, "columns"
    yield "a column of", footer.levels, MOST_LEVELS, "levels"
    yield "a file of", footer.rows, MOST_ROWS, "rows"
    for group in footer.groups:
        yield "a row group of", group.rows, MOST_ROWS, "rows"
        yield "a row group of", group.size, MOST_GROUP_BYTES, "unpacked bytes"
        for column in group.columns:
            yield "a column in a row group of", column.values, MOST_VALUES, "values"
            yield "a column in a row group of", column.size, MOST_GROUP_BYTES, "unpacked bytes"
    yield "row groups of", sum(group.rows for group in footer.groups), MOST_ROWS, "rows"
    yield "row groups of", sum(group.size for group in footer.groups), MOST_BYTES, "unpacked bytes"


def _spans(footer: Footer) -> Iterator[tuple[int, int]]:
    """Yield from where to where each column lies, and each row group's middle, by the footer.

    Spark reads no row of a group whose middle lies outside of the file, and says nothing
    (``ParquetMetadataConverter.filterFileMetaDataByMidpoint``).
    """
    for group in footer.groups:
        if not group.rows:
            continue  # nobody reads it, and pyarrow states no place of its columns
        starts = [column.starts_at for column in group.columns]
        yield from ((column.starts_at, column.starts_at + column.packed) for column in group.columns)
        for start in [*starts[:1], *([group.starts_at] if group.starts_at else [])]:  # some writers leave a 0
            middle = start + (group.packed or 0) // 2
            yield middle, middle


def _check(name: str, subject: str, count: int, most: int, unit: str) -> None:
    if not 0 <= count <= most:
        raise StorageError(
            f"{name} states {subject} {count} {unit}, expected 0 to {most}: the planner writes no such file; {REMEDY}"
        )


def _file_at(spark: SparkSession, uri: str) -> Folder:
    """Return the file at one of Spark's own URIs, which are percent-encoded."""
    java = cast("Any", spark.sparkContext._jvm)
    return Folder(spark, java.org.apache.hadoop.fs.Path(java.java.net.URI(uri)).toString())
