"""Readers of a history folder up to Spark's own: its version, a change's journal, and what its rows are made of."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from planner.documents.data import METRIC_HISTORY, SAMPLE
from spark_apps.common.history_folder import HISTORY_VERSION, HistoryVersion, parse_journal
from spark_apps.common.parquet_files import MAGIC, check_footer, footer_length
from spark_apps.history.metrics import ROWS, rows_of
from spark_apps.history.schemas import TRACES
from spark_apps.history.transforms import traces_of
from spark_apps.history.unreadable import table_of
from tests.fuzz.damage import damaged_bytes, json_or_bytes
from tests.fuzz.documents import data_reader, load_json, past_seeds, sample_seeds, sealed
from tests.fuzz.engine import Reader
from tests.parquet_footers import Footer, RowGroup

_URI: Final = "file:///data/history"


def read_rows(data: bytes) -> object:
    """Read a sample or a past out of metrics, and make of it the rows that Spark takes into the history."""
    document = load_json(data)
    path = [Path("landed.json")]
    if isinstance(document, dict) and document.get("kind") == METRIC_HISTORY.kind:
        return table_of(path, lambda _: rows_of(METRIC_HISTORY.parse(data, "metrics")), ROWS)
    return table_of(path, lambda _: traces_of([SAMPLE.parse(data, "sample")]), TRACES)


_FIGURES: Final[tuple[Any, ...]] = (
    *(0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 0.5, 1e-9, 1e15, 1e308, None),
    *("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-11-21T10:00:00.0000001Z", "9999-12-31T23:59:59Z"),
)


def damage_rows(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a sample or past with figures and times at the limits of columns, rows twice or in another order."""
    try:
        body = json.loads(data)["body"]
        name = chance.choice([name for name, value in body.items() if isinstance(value, list) and value])
        rows = body[name]
        row = chance.choice(rows)
        if chance.random() < 0.3:
            rows.insert(chance.randint(0, len(rows)), json.loads(json.dumps(row)))
            chance.shuffle(rows)
        if isinstance(row, dict):
            row = chance.choice([row, *(value for value in row.values() if isinstance(value, dict) and value)])
            row[chance.choice(list(row))] = chance.choice((*_FIGURES, *row.values()))
        return json.dumps({**json.loads(data), "body": body}).encode()
    except (ValueError, RecursionError, TypeError, KeyError, IndexError, AttributeError):
        return json_or_bytes(chance, data, others)


def damage_half_of_rows(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage figures as above in one half of the cases, anything in the other."""
    return (damage_rows if chance.random() < 0.5 else json_or_bytes)(chance, data, others)


def read_footer(data: bytes) -> object:
    """Read the footer of a Parquet file as it is read before Spark reads the rows."""
    length = footer_length("part-0.parquet", len(data), data)
    return check_footer("part-0.parquet", data[-length - 8 : -8], len(data))


def footer_seeds() -> list[bytes]:
    """Return a file with rows as pyarrow writes it, and footers made by hand."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"at": [[1, 2]], "owners": [["a", None]], "lag_s": [0.5]}), buffer, compression="zstd")
    made = Footer(), Footer([]), Footer([RowGroup(2, 50, 3)] * 20, columns=2, depth=3)
    return [buffer.getvalue(), *(footer.file() for footer in made)]


def with_length(data: bytes) -> bytes:
    """Return the file with the length of the footer that it has: all between its marks."""
    footer = data[len(MAGIC) : -8]
    return MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC


def journal_seeds() -> list[bytes]:
    """Return the journal of a change."""
    target = f"{_URI}/intervals/day=2026-11-21/system=kafka/sample-part-0.parquet"
    moves = [[f"{_URI}/_staging/1/part-0.parquet", target]]
    return [json.dumps({"moves": moves, "deletes": [f"{_URI}/states/sample-part-0.parquet"]}).encode()]


READERS: Final = (
    data_reader("history version", HISTORY_VERSION, lambda: [HISTORY_VERSION.dump(HistoryVersion(2))]),
    Reader("history journal", lambda data: parse_journal(data, _URI), journal_seeds, ("spark_apps.common",)),
    Reader(
        "history rows",
        read_rows,
        lambda: [*sample_seeds(), *past_seeds()],
        ("spark_apps.history", "planner.model"),
        damage_half_of_rows,
        seal=sealed,
    ),
    Reader(
        "parquet footer",
        read_footer,
        footer_seeds,
        ("spark_apps.common.parquet_",),
        damaged_bytes,
        seal=with_length,
    ),
)
