"""Readers of a history folder up to Spark's own: its version, a change's journal, and what its rows are made of."""

import json
from typing import Final

from planner.documents.data import METRIC_HISTORY, SAMPLE
from spark_apps.common.history_folder import HISTORY_VERSION, HistoryVersion, parse_journal
from spark_apps.history.metrics import rows_of
from spark_apps.history.transforms import traces_of
from tests.fuzz.documents import data_reader, load_json, past_seeds, sample_seeds, sealed
from tests.fuzz.engine import Reader

_URI: Final = "file:///data/history"


def read_rows(data: bytes) -> object:
    """Read a sample or a past out of metrics, and make of it the rows that are written into the history."""
    document = load_json(data)
    if isinstance(document, dict) and document.get("kind") == METRIC_HISTORY.kind:
        return rows_of(METRIC_HISTORY.parse(data, "metrics"))
    return traces_of([SAMPLE.parse(data, "sample")])


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
        seal=sealed,
    ),
)
