"""Our reader of Parquet footers says what pyarrow says, of files as real writers make them."""

import io
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.errors import StorageError
from spark_apps.common.parquet_files import check_footer, footer_length
from spark_apps.common.parquet_footer import Footer
from tests import parquet_footers
from tests.parquet_pages import GOOD, LYING, MISPLACED

NESTED = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])


def table(rows: int) -> pa.Table:
    """Return a column of each shape that a footer tells apart."""
    columns: dict[str, Any] = {
        "at": pa.array([[1, None]] * rows, pa.list_(pa.int64())),
        "lists": pa.array([[["x"], []]] * rows, pa.list_(pa.list_(pa.string()))),
        "nested": pa.array([{"a": 1, "b": {"c": "x"}}] * rows, NESTED),
        "is_gap": pa.array([True] * rows),
        "nothing": pa.nulls(rows),
    }
    return pa.table(columns)


def read_footer(content: bytes) -> Footer:
    """Return what a file states, as it is read before Spark reads the rows."""
    length = footer_length("x", len(content), content)
    return check_footer("x", content[-length - 8 : -8], len(content))


@pytest.mark.parametrize(("rows", "is_checked"), [*product((0, 1, 1_000), (False, True))])
def test_a_footer_states_what_pyarrow_reads_in_it(rows: int, is_checked: bool) -> None:
    buffer = io.BytesIO()
    options = {"write_statistics": is_checked, "write_page_index": is_checked, "write_page_checksum": is_checked}
    pq.write_table(table(rows), buffer, compression="zstd", row_group_size=40, **options)
    content = buffer.getvalue()
    footer, other = read_footer(content), pq.read_metadata(buffer)
    numbers = range(other.num_columns)
    assert (footer.rows, footer.columns) == (other.num_rows, other.num_columns)
    assert footer.levels == max(other.schema.column(number).path.count(".") + 1 for number in numbers)
    assert len(footer.groups) == other.num_row_groups
    for group, same in zip(footer.groups, map(other.row_group, range(other.num_row_groups)), strict=True):
        assert (group.rows, group.size) == (same.num_rows, same.total_byte_size)
        expected = [(same.column(n).num_values, same.column(n).total_uncompressed_size) for n in numbers]
        assert [(column.values, column.size) for column in group.columns] == expected
        packed = [same.column(n).total_compressed_size for n in numbers]
        assert [column.packed for column in group.columns] == packed
        assert group.packed in (None, sum(packed))


@pytest.mark.parametrize("name", MISPLACED)
def test_a_column_lies_within_its_file(name: str) -> None:
    """Spark reads no row of two of these, and says nothing; of the others it says that they are damaged."""
    with pytest.raises(StorageError, match="a column that lies where the file has none"):
        read_footer(MISPLACED[name]())


def test_a_row_group_lies_within_its_file() -> None:
    group = parquet_footers.RowGroup(packed=10**9)
    with pytest.raises(StorageError, match="a column that lies where the file has none"):
        read_footer(parquet_footers.Footer([group]).file())


@pytest.mark.parametrize("name", [*GOOD, *LYING])
def test_a_footer_knows_nothing_of_its_pages(name: str) -> None:
    assert read_footer((GOOD | LYING)[name]()).rows == 3
