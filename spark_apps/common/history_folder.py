"""The lag history as a folder: which planner can read it, where its tables lie, and how it changes.

::

    _version.json                           which planner can read it
    intervals/day=.../system=.../*.parquet  the lag history
    traces/day=.../system=.../*.parquet     raw samples, packed: what each queue's offsets and owners were
    samples/day=.../system=.../*.parquet    raw samples, packed: the documents
    states/*.parquet                        where each queue's history ends
    _staging/                               what is being written, a folder for each run; never read
    _lock                                   who changes it (history_lock.py)
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from planner.documents.data import DataKind
from planner.errors import DocumentError, NewerVersionError, StorageError
from planner.storage.layout import is_time_name, time_name
from spark_apps.common.folder import Folder
from spark_apps.common.parquet_files import FILE_ROWS, read_parquet

VERSION = 2
VERSION_FILE = "_version.json"
DAILY_TABLES = ("intervals", "traces", "samples")
STATES_TABLE = "states"
_ENDS = StructType(
    [
        StructField("system", StringType()),
        StructField("cluster", StringType()),
        StructField("group", StringType()),
        StructField("ended_at", TimestampType()),
    ]
)
"""What of the intervals says up to when each group's history goes."""
EPOCH, MICRO = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class HistoryVersion:
    """Which columns the history has; a larger number is a newer planner's."""

    version: int


HISTORY_VERSION: DataKind[HistoryVersion] = DataKind("LagHistory", TypeAdapter(HistoryVersion))


def version_of(history: Folder) -> int | None:
    """Return the version of the history, ``None`` where there is none yet.

    Raises ``NewerVersionError`` when a newer planner wrote it.
    """
    file = _version_file(history)
    if not file.exists():
        if any(folder.name.startswith("day=") or folder.name in DAILY_TABLES for folder in history.folders()):
            raise DocumentError(
                f"{history.uri}: found days of a history without {VERSION_FILE}: restore that file, or move the folder "
                "away"
            )
        return None
    version = HISTORY_VERSION.parse(file.read(), file.uri).version
    if version > VERSION:
        raise NewerVersionError(
            f"{history.uri}: found a history of version {version}, this planner reads version {VERSION}: "
            "use the planner version that wrote it, or another data folder"
        )
    return version


def _version_file(history: Folder) -> Folder:
    """Return the file that has the version: the staged one where a run ended just before it was in its place."""
    file, journal = history.under(VERSION_FILE), _staging(history).under(_JOURNAL)
    if file.exists() or not journal.exists():
        return file
    moves, _ = parse_journal(journal.read(), history.uri)
    return next((Folder(history.spark, source) for source, target in moves if target == file.uri), file)


def check_version(history: Folder) -> None:
    """Raise ``DocumentError`` unless the folder is a history of this version, or none yet."""
    version = version_of(history)
    if version not in (None, VERSION):
        raise DocumentError(
            f"{history.uri}: found a history of version {version}, expected {VERSION}: run the history app once, "
            "it brings the folder up to date"
        )


def read_states(history: Folder, schema: StructType) -> DataFrame:
    """Return the state of every queue; none is an empty frame."""
    return _read(history, history.under(STATES_TABLE).files(), schema)


def newest_of_groups(states: DataFrame) -> dict[tuple[str, str, str], str]:
    """Return the time, as ``time_name`` writes it, up to which the history of each group reaches."""
    newest = states.groupBy("system", "cluster", "group").agg(F.unix_micros(F.max("at")).alias("micros")).collect()
    return {(row.system, row.cluster, row.group): name_of_micros(row.micros) for row in newest}


def name_of_micros(micros: int) -> str:
    """Return the ``time_name`` of a time in microseconds since 1970 (UTC)."""
    return time_name(EPOCH + micros * MICRO)


def read_days(history: Folder, table: str, schema: StructType, first: date, last: date) -> DataFrame:
    """Return the rows of the days from ``first`` to ``last``, both included; none is an empty frame."""
    folders = [folder for folder in day_folders(history, table) if first <= day_of(folder) <= last]
    return _read(history.under(table), folders, schema)


def read_intervals(history: Folder, schema: StructType, since: datetime, until: datetime) -> DataFrame:
    """Return the intervals that ended after ``since`` and on no later day than ``until``; none is an empty frame.

    The name of a run's file says when its last row ended, so that older ones are not even opened.
    """
    folders = [folder for folder in day_folders(history, "intervals") if since.date() <= day_of(folder) <= until.date()]
    files = [file for folder in folders for file in folder.files() if not _ended_before(file, since)]
    return _read(history.under("intervals"), files, schema).where(F.col("ended_at") > F.lit(since))


def newest_end(history: Folder, keys: DataFrame) -> datetime | None:
    """Return when the last interval of the groups with these keys ended, ``None`` where there is none.

    The newest day is read first, and no day before one that has such an interval.
    """
    names = keys.columns
    micros = F.unix_micros(F.max("ended_at")).alias("micros")
    for day in sorted({day_of(folder) for folder in day_folders(history, "intervals")}, reverse=True):
        rows = read_days(history, "intervals", _ENDS, day, day).join(F.broadcast(keys), on=names, how="left_semi")
        (row,) = rows.agg(micros).collect()
        if row.micros is not None:
            return EPOCH + int(row.micros) * MICRO
    return None


def _ended_before(file: Folder, since: datetime) -> bool:
    last = file.name.split("-")[1]
    return is_time_name(last) and last < time_name(since)


def _read(base: Folder, folders: Sequence[Folder], schema: StructType) -> DataFrame:
    if not folders:
        return base.spark.createDataFrame([], schema)
    # Parquet columns are nullable on reading, whatever was promised on writing.
    return read_parquet(folders, schema, base).select(*(F.col(name) for name in schema.fieldNames()))


def day_folders(history: Folder, table: str) -> list[Folder]:
    """Return the folders of a table that hold files: one for each day and system."""
    days = (day for day in history.under(table).folders() if day.name.startswith("day="))
    return [system for day in days for system in day.folders()]


def day_of(folder: Folder) -> date:
    """Return the day of one of the ``day_folders``."""
    return date.fromisoformat(folder.uri.rpartition("/")[0].rpartition("day=")[2])


@dataclass(slots=True)
class Change:
    """New files that are written aside and then made visible at once, with what they replace.

    Until ``commit`` nothing is changed. A run that ends within ``commit`` is carried on by ``recover``. Only one run at
    a time may make changes (``only_run``).
    """

    history: Folder
    moves: list[tuple[str, str]] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    written: int = 0
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, frame: DataFrame, *folder: str, source: str) -> None:
        """Write the frame for a folder of the history; files are named after what their rows come from.

        After a ``source`` and ``-`` may follow the ``time_name`` of the last row.
        """
        staged = _staging(self.history).under(self.run, str(self.written), *folder)
        self.written += 1
        frame.write.option("compression", "zstd").option("maxRecordsPerFile", FILE_ROWS).parquet(staged.uri)
        for file in staged.files():
            target = self.history.under(*folder, f"{source}-{file.name}")
            self.moves.append((file.uri, target.uri))

    def write_version(self) -> None:
        """Let the history be of this planner's version."""
        staged = _staging(self.history).under(self.run, VERSION_FILE)
        staged.write(HISTORY_VERSION.dump(HistoryVersion(VERSION)))
        self.moves.append((staged.uri, self.history.under(VERSION_FILE).uri))

    def delete(self, targets: Sequence[Folder]) -> None:
        """Let files or folders go with this change."""
        self.deletes.extend(target.uri for target in targets)

    def commit(self) -> None:
        """Make the change visible: first written down as a whole, then carried out."""
        journal = {"moves": self.moves, "deletes": self.deletes}
        _staging(self.history).under(_JOURNAL).write(json.dumps(journal).encode())
        recover(self.history)


_JOURNAL = "journal.json"


@dataclass(frozen=True, slots=True)
class _Journal:
    """What a change moves from where to where, and what it deletes."""

    moves: list[tuple[str, str]]
    deletes: list[str]


_JOURNAL_TYPE: TypeAdapter[_Journal] = TypeAdapter(_Journal)


def recover(history: Folder) -> None:
    """Carry on a change that an earlier run had written down, and forget one that it had not.

    Raises ``StorageError``, before anything is removed, where a file of the change is neither staged nor at its target.
    """
    staging = _staging(history)
    journal = staging.under(_JOURNAL)
    if journal.exists():
        moves, deletes = parse_journal(journal.read(), history.uri)
        for source, target in moves:
            _carry_on(Folder(history.spark, source), Folder(history.spark, target))
        for _, target in moves:
            Folder(history.spark, target).flush()  # what they replace goes now, and sample files soon
        for uri in deletes:
            Folder(history.spark, uri).delete()
    staging.delete()


def parse_journal(text: bytes, uri: str) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
    """Return what the journal of the history at ``uri`` moves and deletes.

    Raises ``DocumentError`` for what is none, and for a place outside of the history: whoever may write into the folder
    may not have anything else moved or deleted.
    """
    try:
        journal = _JOURNAL_TYPE.validate_json(text)
    except ValidationError as error:
        raise DocumentError(
            f"{uri}/_staging/{_JOURNAL}: found no journal of a change ({error.error_count()} faults): a change to the "
            "history is lost, and its sample files are still below readings/ and samples/ of the data folder. Move the "
            "file elsewhere, then run again: they are packed anew"
        ) from error
    locations = [location for move in journal.moves for location in move] + journal.deletes
    for location in locations:
        if not location.startswith(f"{uri}/") or {"", ".", ".."} & set(location.removeprefix(f"{uri}/").split("/")):
            raise DocumentError(
                f"{uri}/_staging/{_JOURNAL}: names {location}, expected a place below {uri}: somebody has edited it; "
                "move it elsewhere, then run again"
            )
    return journal.moves, journal.deletes


def _carry_on(staged: Folder, target: Folder) -> None:
    if staged.exists():
        staged.move_to(target)
    elif not target.exists():
        raise StorageError(
            f"{staged.uri} is gone and {target.uri} is not there: a change to the history is lost. Its sample files "
            "are still below readings/ and samples/ of the data folder. Move _staging/journal.json of the history "
            "elsewhere, then run again: they are packed anew"
        )


def _staging(history: Folder) -> Folder:
    return history.under("_staging")


def files_by_source(folder: Folder) -> dict[str, list[Folder]]:
    """Return the files of a folder by the source that their names begin with."""
    by_source: dict[str, list[Folder]] = {}
    for file in folder.files():
        by_source.setdefault(file.name.partition("-")[0], []).append(file)
    return by_source


def day_name(at: datetime | date) -> str:
    """Return the name of a day's folder."""
    return f"{at:day=%Y-%m-%d}"
