"""Arrivals that a scenario of ``planner backtest`` names: a CSV or a Parquet file, checked row by row."""

import csv
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from planner.backtest.scenario import STEP_S, Floats
from planner.errors import BadInputError, MissingExtraError
from planner.model.queues import Queue
from planner.model.systems import system_named
from planner.text.printable import one_line

COLUMNS = ("second", "topic", "queue", "messages")
MOST_ROWS = 5_000_000
MOST_CELLS = 20_000_000
MOST_QUEUES = 1024
MOST_UNPACKED = 2**31
"""Bytes of a Parquet file's rows, as its footer says."""
PARQUET_ROWS = 65_536
"""So many rows of a Parquet file are in memory at a time."""
MOST_PLAYED_S = 100 * 86_400
LARGEST_QUEUE = 1_000_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a scenario says of its arrivals: seconds of an interval and of what is known beforehand, and the system."""

    interval_s: int
    history_s: int
    system: str


def read_arrivals(path: Path, recorded: Recorded) -> tuple[list[Queue], Floats]:
    """Return the queues, sorted as clients sort them, and their messages; shape (intervals, queues).

    A queue without a row in an interval got no messages in it; an interval without any row is a gap and refused.
    """
    try:
        if path.suffix == ".parquet":
            return _Reader(str(path), recorded).read(_parquet_rows(path))
        with path.open(newline="", encoding="utf-8") as file:
            return _Reader(str(path), recorded).read(csv.reader(file))
    except FileNotFoundError:
        raise BadInputError(f"arrivals {path} do not exist: correct the field arrivals of the scenario") from None
    except IsADirectoryError:
        raise BadInputError(f"arrivals {path} is a folder, expected a CSV file: name the file in it") from None
    except OSError as error:
        raise BadInputError(f"arrivals {path} cannot be read ({error.strerror}): check its permissions") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInputError(f"arrivals {path}: no CSV in UTF-8 ({error}): write them as CSV") from error


def _parquet_rows(path: Path) -> Iterator[list[str]]:
    """Yield the names of the columns, then each row, as text: one check serves CSV and Parquet.

    Raises ``BadInputError`` for a file that is no Parquet, and where nobody installed what reads it.
    """
    try:
        parquet, fault = import_module("pyarrow.parquet"), import_module("pyarrow").ArrowException
    except ImportError as error:
        raise MissingExtraError("reading arrivals out of Parquet", "spark") from error
    with path.open("rb") as file:
        try:
            table = parquet.ParquetFile(file)
            _check_size(path, table.metadata)
            names = table.schema_arrow.names
            yield names
            if sorted(names) != sorted(COLUMNS):
                return  # the reader has refused the names
            for batch in table.iter_batches(PARQUET_ROWS):
                columns = [batch.column(name).to_pylist() for name in names]
                yield from ([str(value) for value in row] for row in zip(*columns, strict=True))
        except (fault, OSError, UnicodeDecodeError) as error:
            raise BadInputError(
                f"arrivals {path}: no readable Parquet ({one_line(str(error))}): write it anew"
            ) from error


def _check_size(path: Path, footer: Any) -> None:
    """Raise ``BadInputError`` for a file that says of itself that it is too large, before any of its rows is read."""
    unpacked = sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))
    if footer.num_rows > MOST_ROWS or unpacked > MOST_UNPACKED:
        raise BadInputError(
            f"arrivals {path}: found {footer.num_rows:,} rows of {unpacked:,} bytes, expected at most {MOST_ROWS:,} of "
            f"{MOST_UNPACKED:,}: use longer intervals or fewer days"
        )


class _Reader:
    """Reads the rows of one file; every fault is named with its line, in Parquet the row behind the names."""

    def __init__(self, where: str, recorded: Recorded) -> None:
        self._where, self._recorded = where, recorded
        self._numbers: dict[tuple[str, int], int] = {}
        self._intervals, self._columns, self._messages = array("q"), array("q"), array("d")

    def read(self, rows: Iterator[list[str]]) -> tuple[list[Queue], Floats]:
        order = self._order(next(rows, []))
        last = -1
        for line, row in enumerate(rows, 2):
            if not row:
                continue
            last = self._add(line, row, order, last)
        return self._queues_and_messages(last + 1)

    def _order(self, header: list[str]) -> list[int]:
        """Return the indexes of the columns, which may stand in any order."""
        names = [name.strip().removeprefix("\ufeff") for name in header]
        if sorted(names) != sorted(COLUMNS):
            raise self._fault(1, f"columns {', '.join(names) or 'nothing'}", ", ".join(COLUMNS))
        return [names.index(name) for name in COLUMNS]

    def _add(self, line: int, row: list[str], order: list[int], last: int) -> int:
        if len(row) != len(COLUMNS):
            raise self._fault(line, f"{len(row)} values", f"{len(COLUMNS)}")
        if line > MOST_ROWS + 1:
            raise self._fault(line, "still more rows", f"at most {MOST_ROWS:,}, which needs fewer queues or days")
        second, topic, number, messages = (row[index] for index in order)
        interval = self._interval(line, second)
        if interval < last:
            raise self._fault(line, f"second {second} after a later one", "rows in the order of their seconds")
        if interval > last + 1:
            missing = (last + 1) * self._recorded.interval_s
            raise self._fault(line, f"second {second}", f"{missing} first: intervals without rows are gaps, fill them")
        self._intervals.append(interval)
        self._columns.append(self._queue(line, topic, number))
        self._messages.append(self._amount(line, messages))
        return interval

    def _interval(self, line: int, text: str) -> int:
        interval_s = self._recorded.interval_s
        value = self._number(text)
        if value is None or value < 0 or value % interval_s:
            raise self._fault(line, f"second {text!r}", f"a multiple of interval_s ({interval_s}) from 0")
        if value > MOST_PLAYED_S:
            raise self._fault(line, f"second {text}", f"at most {MOST_PLAYED_S:,}")
        return int(value // interval_s)

    def _queue(self, line: int, topic: str, number: str) -> int:
        if not topic:
            raise self._fault(line, "an empty topic", "a topic's name")
        if not (number.isascii() and number.isdecimal()) or int(number[:12]) > LARGEST_QUEUE:
            raise self._fault(line, f"queue {number!r}", f"a whole number from 0 to {LARGEST_QUEUE:,}")
        key = (topic, int(number))
        if key not in self._numbers and len(self._numbers) == MOST_QUEUES:
            raise self._fault(line, f"queue number {MOST_QUEUES + 1}", f"at most {MOST_QUEUES} queues")
        return self._numbers.setdefault(key, len(self._numbers))

    def _amount(self, line: int, text: str) -> float:
        value = self._number(text)
        if value is None or not 0 <= value <= 1e12:
            raise self._fault(line, f"messages {text!r}", "a number from 0 to 1e12")
        return value

    @staticmethod
    def _number(text: str) -> float | None:
        """Return the number that a text is, ``None`` where it is none, or no finite one."""
        try:
            value = float(text)
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def _fault(self, line: int, actual: str, expected: str) -> BadInputError:
        return BadInputError(f"arrivals {self._where}, line {line}: found {actual}, expected {expected}")

    def _queues_and_messages(self, intervals: int) -> tuple[list[Queue], Floats]:
        history = self._recorded.history_s // self._recorded.interval_s
        if (intervals - history) * self._recorded.interval_s < STEP_S:
            raise BadInputError(
                f"arrivals {self._where}: found {intervals * self._recorded.interval_s} s, expected more than the "
                f"history_s of {self._recorded.history_s}: nothing is left to play, lower history_s"
            )
        if intervals * len(self._numbers) > MOST_CELLS:
            raise BadInputError(
                f"arrivals {self._where}: found {intervals} intervals of {len(self._numbers)} queues, expected at most "
                f"{MOST_CELLS:,} values: use longer intervals or fewer days"
            )
        queues = [self._named(*key) for key in self._numbers]
        order = sorted(range(len(queues)), key=lambda index: queues[index])
        ranks = np.empty(len(queues), dtype=np.intp)
        ranks[order] = np.arange(len(queues))
        cells = (
            np.frombuffer(self._intervals, dtype=np.int64) * len(queues)
            + ranks[np.frombuffer(self._columns, dtype=np.int64)]
        )
        self._check_distinct(cells, intervals * len(queues))
        messages = np.zeros(intervals * len(queues))
        messages[cells] = np.frombuffer(self._messages)
        return [queues[index] for index in order], messages.reshape(intervals, len(queues))

    def _named(self, topic: str, number: int) -> Any:
        return system_named(self._recorded.system).make_queue(topic, "", number)

    def _check_distinct(self, cells: "np.ndarray[Any, np.dtype[np.int64]]", size: int) -> None:
        duplicate = np.flatnonzero(np.bincount(cells, minlength=size)[cells] > 1)
        if len(duplicate):
            row = int(duplicate[1])
            second = self._intervals[row] * self._recorded.interval_s
            names = list(self._numbers)[self._columns[row]]
            raise BadInputError(
                f"arrivals {self._where}: found queue {names[1]} of topic {names[0]} twice at second {second}, "
                "expected one row: add the rows up"
            )
