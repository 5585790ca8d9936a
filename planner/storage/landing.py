"""Samples that have landed below the data folder and are not yet packed into the history: own files, and readings."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from planner.errors import BadInputError, PlannerError
from planner.storage.files import write_atomically
from planner.storage.layout import (
    cluster_readings,
    group_folder,
    is_time_name,
    name_of_file,
    readings_folder,
    samples_folder,
    time_of_name,
)
from planner.storage.readings import Line, document_at, line_of_group, lines_of, time_of_reading
from planner.text.bounded import MOST_BYTES

SET_ASIDE: Final = "set-aside"
"""The folder for files that cannot be used, beside those that can."""

GroupKey = tuple[str, str, str]
"""System, cluster, group."""

_LOCATION: Final = re.compile(r"(?P<path>.+\.jsonl)#(?P<start>\d{1,19})\+(?P<length>\d{1,19})#(?P<group>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LandedSample:
    """One sample of one group, as far as path and line show: a file of its own, or a line of a reading.

    ``time_name`` is when it was taken, to the millisecond, as a name that sorts by time.
    """

    path: Path
    key: GroupKey
    time_name: str
    line: Line | None = None

    @property
    def day(self) -> date:
        """The day (UTC) on which it was taken."""
        return time_of_name(self.time_name).date()

    @property
    def location(self) -> str:
        """Where it lies, as text that ``landed_at`` reads."""
        return (
            str(self.path) if self.line is None else f"{self.path}#{self.line.start}+{self.line.length}#{self.key[2]}"
        )

    def document(self) -> bytes:
        """Return its document, byte for byte as a file of its own has it, of one that is too long the first bytes.

        Raises ``BadInputError`` where the line is another by now, ``OSError`` where the file cannot be read.
        """
        if self.line is not None:
            return document_at(self.path, self.line, MOST_BYTES)
        with self.path.open("rb") as file:
            return file.read(MOST_BYTES + 1)


def landed_at(location: str) -> LandedSample:
    """Return the landed sample whose ``location`` this is. Raises ``BadInputError`` for what is no location."""
    of_reading = _LOCATION.fullmatch(location)
    if of_reading is None:
        return _of_file(Path(location))
    line = Line(of_reading["group"], int(of_reading["start"]), int(of_reading["length"]))
    return _of_line(Path(of_reading["path"]), line)


def _of_file(path: Path) -> LandedSample:
    *_, system, cluster, group, _ = path.parts
    return LandedSample(path, (name_of_file(system), name_of_file(cluster), name_of_file(group)), path.stem)


def _of_line(path: Path, line: Line) -> LandedSample:
    *_, system, cluster, _ = path.parts
    time = time_of_reading(path)
    if time is None:
        raise BadInputError(f"{path} is not named like a reading: move it elsewhere")
    return LandedSample(path, (name_of_file(system), name_of_file(cluster), line.group), time, line)


def sample_files(data: Path) -> Iterator[LandedSample]:
    """Yield the files of one sample each, by path; those that are not named like one are ``misnamed_files``."""
    return (_of_file(path) for path in _files(data) if is_time_name(path.stem))


def reading_files(data: Path) -> Iterator[Path]:
    """Yield the files of readings by path, named like one."""
    return (path for path in _readings(data) if time_of_reading(path) is not None)


def misnamed_files(data: Path) -> Iterator[Path]:
    """Yield the files among samples and readings that are not named like one, by path."""
    yield from (path for path in _files(data) if not is_time_name(path.stem))
    yield from (path for path in _readings(data) if time_of_reading(path) is None)


def _files(data: Path) -> Iterator[Path]:
    # Names with a dot in front are files that are being written.
    return (path for path in sorted(samples_folder(data).glob("*/*/*/*.json")) if not path.name.startswith("."))


def _readings(data: Path) -> Iterator[Path]:
    return (path for path in sorted(readings_folder(data).glob("*/*/*.jsonl")) if not path.name.startswith("."))


def samples_of_reading(path: Path) -> tuple[list[LandedSample], str | None]:
    """Return the samples of a reading, and why what follows them in its file cannot be used, if so."""
    samples: list[LandedSample] = []
    try:
        for line in lines_of(path):
            samples.append(_of_line(path, line))
    except FileNotFoundError:
        return samples, None  # another run has packed it
    except (PlannerError, OSError) as error:
        return samples, str(error).rstrip(".")
    return samples, None


def samples_of_group(data: Path, key: GroupKey, until: str) -> Iterator[LandedSample]:
    """Yield one group's landed samples up to the ``time_name`` ``until``, the newest first."""
    system, cluster, group = key
    own = ((path.stem, path) for path in group_folder(data, *key).glob("*.json") if is_time_name(path.stem))
    readings = ((time_of_reading(path), path) for path in cluster_readings(data, system, cluster).glob("*.jsonl"))
    times = [(time, path) for time, path in (*own, *readings) if time is not None and time <= until]
    for _, path in sorted(times, reverse=True):
        if path.suffix == ".json":
            yield _of_file(path)
        elif (line := line_of_group(path, group)) is not None:
            yield _of_line(path, line)


def first_times(data: Path) -> dict[GroupKey, str]:
    """Return the time, as a ``time_name``, of the oldest landed sample of each group that has one."""
    oldest: dict[GroupKey, str] = {}
    for sample in _all(data):
        oldest[sample.key] = min(sample.time_name, oldest.get(sample.key, sample.time_name))
    return oldest


def _all(data: Path) -> Iterator[LandedSample]:
    yield from sample_files(data)
    for path in reading_files(data):
        yield from samples_of_reading(path)[0]


def files_before(data: Path, before: str) -> Iterator[Path]:
    """Yield the files whose samples were all taken before the ``time_name`` ``before``."""
    yield from (sample.path for sample in sample_files(data) if sample.time_name < before)
    yield from (path for path in reading_files(data) if (time_of_reading(path) or before) < before)


def take_out(data: Path, samples: Iterable[LandedSample]) -> None:
    """Give each of these lines of readings a file of its own, unless there is one: then nothing is lost with a reading.

    Raises ``StorageError`` where one cannot be written.
    """
    for sample in samples:
        path = group_folder(data, *sample.key) / f"{sample.time_name}.json"
        if not path.exists():
            write_atomically(path, sample.document())


def set_aside(path: Path, reason: str) -> str:
    """Move a file that cannot be used into the folder ``set-aside`` beside it; return the sentence that says so.

    One that cannot be moved stays, and its sentence says why.
    """
    target = path.parent / SET_ASIDE / path.name
    try:
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
    except OSError as error:
        return f"{reason}. It is passed over and cannot be moved ({error.strerror}): move it elsewhere"
    return f"{reason}. It is passed over from now on and lies in {target.parent}: remove it, or put a whole one back"


def set_reading_aside(data: Path, path: Path, whole: Iterable[LandedSample], reason: str) -> str:
    """Move a reading that cannot be used as it is aside, as ``set_aside`` does.

    Its ``whole`` samples get files of their own before. Raises ``StorageError`` where one cannot be written.
    """
    take_out(data, whole)
    return set_aside(path, reason)
