"""A capture: one recorded stretch of samples, and the source that replays it.

A folder of two files. ``capture.json`` says what was recorded (kind ``Capture``, versioned, with digest);
``samples.jsonl.gz`` holds one ``GroupSample`` body a line, oldest first.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter

from planner.documents.data import MOST_SAMPLE_VALUES, SAMPLE, DataKind
from planner.documents.format import canonical
from planner.errors import BadInputError, DocumentError, UnknownNameError, why_unread
from planner.model.samples import GroupSample
from planner.model.times import check_time
from planner.storage.files import write_atomically
from planner.text.bounded import MOST_BYTES

HEADER_FILE = "capture.json"
SAMPLES_FILE = "samples.jsonl.gz"


@dataclass(frozen=True, slots=True)
class CaptureHeader:
    """What a capture holds: groups, first and last sample's time (UTC), the sampling period in seconds.

    ``samples_sha256`` names the exact content of the samples file, unpacked. ``story`` has for people what was
    going on, ``versions`` which software was recorded.
    """

    groups: tuple[str, ...]
    started_at: datetime
    ended_at: datetime
    sample_every_s: float
    samples: int
    samples_sha256: str
    story: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        check_time("the recording's begin", self.started_at)
        check_time("the recording's end", self.ended_at)


HEADER: DataKind[CaptureHeader] = DataKind("Capture", TypeAdapter(CaptureHeader), MOST_SAMPLE_VALUES)


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture folder whose header was read and checked."""

    folder: Path
    header: CaptureHeader

    def samples(self, group: str | None = None) -> Iterator[GroupSample]:
        """Yield the samples of ``group`` (of all groups when ``None``), oldest first.

        Raises ``UnknownNameError`` for a group that was not recorded, ``DocumentError`` for a file that is cut
        off or edited; the latter is known for certain only after the last sample.
        """
        if group is not None and group not in self.header.groups:
            known = ", ".join(self.header.groups)
            raise UnknownNameError(f"{self.folder}: group {group} is not in this capture, which holds {known}")
        path = self.folder / SAMPLES_FILE
        content = hashlib.sha256()
        count = 0
        for line in _lines(path):
            count += 1
            if count > self.header.samples:
                raise self._edited(path, f"more than {self.header.samples}")
            content.update(line)
            sample = _sample(line, f"{path} line {count}")
            if group is None or sample.group == group:
                yield sample
        if content.hexdigest() != self.header.samples_sha256:
            raise self._edited(path, count)

    def _edited(self, path: Path, samples: object) -> DocumentError:
        return DocumentError(
            f"{path}: found {samples} samples with another digest than {HEADER_FILE} names for its "
            f"{self.header.samples}: the file was edited, take it again from its origin"
        )


def open_capture(folder: Path) -> Capture:
    """Return the capture in ``folder``. Raises ``BadInputError`` when it is missing, wrong or of a newer version."""
    if not folder.is_dir():
        raise BadInputError(f"capture folder {folder} does not exist: check the path")
    return Capture(folder, HEADER.read(folder / HEADER_FILE))


def write_capture(
    folder: Path,
    samples: Iterable[GroupSample],
    sample_every_s: float,
    story: tuple[str, ...],
    versions: tuple[tuple[str, str], ...],
) -> Capture:
    """Write samples, oldest first, as a capture and return it. Equal samples give equal bytes."""
    lines = []
    groups: set[str] = set()
    times: list[datetime] = []
    for sample in samples:
        lines.append(canonical(SAMPLE.body(sample)) + b"\n")
        groups.add(sample.group)
        times.append(sample.at)
    if not times:
        raise BadInputError(f"capture {folder} would be empty: nothing was sampled, so there is nothing to write")
    content = b"".join(lines)
    write_atomically(folder / SAMPLES_FILE, gzip.compress(content, compresslevel=9, mtime=0))
    header = CaptureHeader(
        groups=tuple(sorted(groups)),
        started_at=min(times),
        ended_at=max(times),
        sample_every_s=sample_every_s,
        samples=len(lines),
        samples_sha256=hashlib.sha256(content).hexdigest(),
        story=story,
        versions=versions,
    )
    write_atomically(folder / HEADER_FILE, HEADER.dump(header))
    return Capture(folder, header)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            # A sample is a line, and 184 KB unpack to a line that no memory holds.
            while line := file.readline(MOST_BYTES + 1):
                yield line
    except FileNotFoundError:
        raise BadInputError(f"capture file {path} does not exist: take the capture again from its origin") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DocumentError(f"{path}: cut off or broken ({error}): take the capture again from its origin") from error
    except OSError as error:
        raise BadInputError(f"capture file {path} cannot be read: {why_unread(error)}") from error


def _sample(line: bytes, where: str) -> GroupSample:
    try:
        body = SAMPLE.load_body(line)
    except (ValueError, RecursionError) as error:  # also integers of thousands of digits
        raise DocumentError(f"{where}: not valid JSON ({error}): take the capture again from its origin") from error
    return SAMPLE.validate(body, where)
