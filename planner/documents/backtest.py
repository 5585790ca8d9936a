"""Scenario files of ``planner backtest``, and the arrivals that they name."""

import csv
import io
import json
import math
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.backtest.compare import POLICY_NAMES
from planner.backtest.owners import strategy_names
from planner.backtest.scenario import STEP_S, Floats, Prices, Scenario
from planner.documents.events import MOST_EVENTS, EventSpec
from planner.documents.format import document_error
from planner.documents.source import check_path
from planner.errors import BadInputError, DocumentError, MissingExtraError
from planner.model.queues import Queue
from planner.model.systems import system_named
from planner.text.bounded import bounded_json
from planner.text.printable import one_line
from planner.text.words import did_you_mean

ARRIVALS = "arrivals.csv"
COLUMNS = ("second", "topic", "queue", "messages")
MOST_SCENARIO_BYTES = 1_000_000
MOST_ROWS = 5_000_000
MOST_CELLS = 20_000_000
MOST_QUEUES = 1024
MOST_UNPACKED = 2**31
"""Bytes of a Parquet file's rows, as its footer says."""
PARQUET_ROWS = 65_536
"""So many rows of a Parquet file are in memory at a time."""
MOST_PLAYED_S = 100 * 86_400
LARGEST_QUEUE = 1_000_000

Seconds = Annotated[float, Field(ge=0, le=MOST_PLAYED_S, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1000)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PricesDocument(_Model):
    """Flat prices in consumer-hours."""

    rebalance_h: Price
    late_minute_h: Price


class ScenarioDocument(_Model):
    """The request of ``planner backtest``: field names and units are fixed.

    ``events`` are spelt as in a policy; ``begins_at`` is then the time of the arrivals' second 0, with its zone.
    """

    arrivals: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(check_path)]
    interval_s: Annotated[int, Field(ge=1, le=86_400)]
    history_s: Annotated[int, Field(ge=0)]
    system: Literal["rocketmq", "kafka"]
    strategy: str
    capacity: Positive
    pod_start_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
    lowest: Annotated[Count, Field(alias="min")]
    highest: Annotated[Count, Field(alias="max")]
    start: Count
    late_after_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
    prices: PricesDocument
    every_s: Annotated[float, Field(ge=STEP_S, le=86_400, multiple_of=STEP_S, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    policies: Annotated[list[str], Field(min_length=1)] = ["planner", "keda", "flink", "optimum"]
    begins_at: Annotated[str, Field(max_length=40)] | None = None
    events: Annotated[list[EventSpec], Field(max_length=MOST_EVENTS)] = []

    @model_validator(mode="after")
    def _times(self) -> Self:
        if (self.begins_at is None) != (not self.events):
            raise ValueError("begins_at, the time of second 0, and events: both or none")
        if self.begins_at is not None:
            _zoned_time(self.begins_at)
        if len({event.name for event in self.events}) < len(self.events):
            raise ValueError("each event with a name of its own")
        return self

    @property
    def played_from(self) -> datetime | None:
        """When the play begins, ``None`` where the scenario does not say."""
        return None if self.begins_at is None else _zoned_time(self.begins_at) + timedelta(seconds=self.history_s)

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"min to be at most max, found {self.lowest} and {self.highest}")
        if not self.lowest <= self.start <= self.highest:
            raise ValueError(f"start from min to max, found {self.start}, not from {self.lowest} to {self.highest}")
        if self.history_s % self.interval_s:
            raise ValueError(f"history_s to be whole intervals of {self.interval_s} s, found {self.history_s}")
        return self

    @model_validator(mode="after")
    def _names(self) -> Self:
        known = strategy_names(self.system)
        if self.strategy not in known:
            close = did_you_mean(self.strategy, known)
            raise ValueError(f"strategy to be one of {', '.join(known)}, found {self.strategy!r}{close}")
        for name in self.policies:
            if name not in POLICY_NAMES:
                close = did_you_mean(name, POLICY_NAMES)
                raise ValueError(f"policies to be among {', '.join(POLICY_NAMES)}, found {name!r}{close}")
        if len(set(self.policies)) < len(self.policies):
            raise ValueError("each of the policies once")
        return self


def _zoned_time(text: str) -> datetime:
    """Return the time in UTC. Raises ``ValueError`` for what is no time, has no zone, or lies beyond the calendar."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None and 1970 <= time.year < 9000:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"begins_at to be a time with its zone such as 2026-11-20T00:00:00Z, found {text!r}")


def read_scenario(path: Path) -> tuple[Scenario, tuple[str, ...]]:
    """Return the scenario of a file, and the names of the policies to play.

    Arrivals are read from the path that the file gives, relative to its folder. Raises ``BadInputError`` with one
    sentence for a file that is missing, too large or wrong.
    """
    document = _parse(_read_bytes(path), str(path))
    queues, messages = read_arrivals(path.parent / document.arrivals, document)
    scenario = Scenario(
        queues=queues,
        messages=messages,
        interval_s=document.interval_s,
        history_s=document.history_s,
        system=document.system,
        strategy=document.strategy,
        capacity=document.capacity,
        pod_start_s=document.pod_start_s,
        lowest=document.lowest,
        highest=document.highest,
        start=document.start,
        late_after_s=document.late_after_s,
        prices=Prices(document.prices.rebalance_h, document.prices.late_minute_h),
        every_s=document.every_s,
        seed=document.seed,
        events=tuple(event.event for event in document.events),
        begins_at=document.played_from,
    )
    return scenario, tuple(document.policies)


def scenario_texts(scenario: Scenario, names: Sequence[str]) -> tuple[str, str]:
    """Return the scenario file of what is played, and its arrivals, which it expects beside it as ``ARRIVALS``.

    Queues of a topic are numbered in their order over all brokers, as the file knows none.
    """
    document = {
        "arrivals": ARRIVALS,
        "interval_s": round(scenario.interval_s),
        "history_s": round(scenario.history_s),
        "system": scenario.system,
        "strategy": scenario.strategy,
        "capacity": scenario.capacity,
        "pod_start_s": scenario.pod_start_s,
        "min": scenario.lowest,
        "max": scenario.highest,
        "start": scenario.start,
        "late_after_s": scenario.late_after_s,
        "prices": {"rebalance_h": scenario.prices.rebalance_h, "late_minute_h": scenario.prices.late_minute_h},
        "every_s": scenario.every_s,
        "seed": scenario.seed,
        "policies": list(names),
    }
    numbers = [number for size in scenario.topic_sizes for number in range(size)]
    topics = [queue.topic for queue in scenario.queues]
    rows = io.StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(COLUMNS)
    for interval, row in enumerate(scenario.messages):
        second = round(interval * scenario.interval_s)
        for topic, number, messages in zip(topics, numbers, row.tolist(), strict=True):
            writer.writerow((second, topic, number, f"{messages:.12g}"))
    return json.dumps(document, indent=1) + "\n", rows.getvalue()


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_SCENARIO_BYTES + 1)
    except FileNotFoundError:
        raise BadInputError(f"scenario file {path} does not exist: check the path") from None
    except IsADirectoryError:
        raise BadInputError(f"{path} is a folder, expected a scenario file: name the JSON file in it") from None
    except OSError as error:
        raise BadInputError(f"scenario file {path} cannot be read ({error.strerror}): check its permissions") from error
    if len(content) > MOST_SCENARIO_BYTES:
        raise BadInputError(
            f"{path}: more than {MOST_SCENARIO_BYTES} bytes, expected a scenario: name the JSON file, not the arrivals"
        )
    return content


@cache
def _schema() -> dict[str, Any]:
    return ScenarioDocument.model_json_schema()


def _parse(content: bytes, where: str) -> ScenarioDocument:
    try:
        document = bounded_json(content)
    except ValueError as error:
        raise DocumentError(f"{where}: not valid JSON ({error}), expected a scenario: correct it") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{where}: found a {type(document).__name__}, expected an object with a scenario's fields")
    try:
        return ScenarioDocument.model_validate(document)
    except ValidationError as error:
        refusal = document_error(error, where, schema=_schema())
        # What several fields together do wrong has no field of its own.
        raise DocumentError(str(refusal).replace("field : ", "")) from error


def read_arrivals(path: Path, document: ScenarioDocument) -> tuple[list[Queue], Floats]:
    """Return the queues, sorted as clients sort them, and their messages; shape (intervals, queues).

    A queue without a row in an interval got no messages in it; an interval without any row is a gap and refused.
    """
    try:
        if path.suffix == ".parquet":
            return _Reader(str(path), document).read(_parquet_rows(path))
        with path.open(newline="", encoding="utf-8") as file:
            return _Reader(str(path), document).read(csv.reader(file))
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

    def __init__(self, where: str, document: ScenarioDocument) -> None:
        self._where, self._document = where, document
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
            missing = (last + 1) * self._document.interval_s
            raise self._fault(line, f"second {second}", f"{missing} first: intervals without rows are gaps, fill them")
        self._intervals.append(interval)
        self._columns.append(self._queue(line, topic, number))
        self._messages.append(self._amount(line, messages))
        return interval

    def _interval(self, line: int, text: str) -> int:
        interval_s = self._document.interval_s
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
        history = self._document.history_s // self._document.interval_s
        if (intervals - history) * self._document.interval_s < STEP_S:
            raise BadInputError(
                f"arrivals {self._where}: found {intervals * self._document.interval_s} s, expected more than the "
                f"history_s of {self._document.history_s}: nothing is left to play, lower history_s"
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
        return system_named(self._document.system).make_queue(topic, "", number)

    def _check_distinct(self, cells: "np.ndarray[Any, np.dtype[np.int64]]", size: int) -> None:
        duplicate = np.flatnonzero(np.bincount(cells, minlength=size)[cells] > 1)
        if len(duplicate):
            row = int(duplicate[1])
            second = self._intervals[row] * self._document.interval_s
            names = list(self._numbers)[self._columns[row]]
            raise BadInputError(
                f"arrivals {self._where}: found queue {names[1]} of topic {names[0]} twice at second {second}, "
                "expected one row: add the rows up"
            )
