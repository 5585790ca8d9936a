"""One reading of an installation as one file: the samples of all its groups, a line each.

::

    {"group":"orders","sample":{"apiVersion":...,"body":...,"digest":...,"kind":"GroupSample"}}

Lines are sorted by their bytes, so that a group's line is found by bisection, however many groups there are. The file's
name has the reading's time, which all its samples share, and the first digits of the content's digest: the same reading
written again is the same file, and two of one time never replace each other. Two layouts lie side by side: files of one
sample (``samples/``) come from recordings and from planners before this one.
"""

import hashlib
import json
import mmap
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from planner.errors import DocumentError
from planner.storage.files import write_atomically
from planner.storage.layout import cluster_readings, is_time_name, time_name

MOST_READING_BYTES: Final = 16 * 1024 * 1024
"""A reading whose samples are larger becomes several files: so much of it is in memory at a time, about."""

MOST_NAME: Final = 4096
"""So many bytes of a line are searched for its group's name; the longest that a folder can have takes 255."""

_LINE: Final = re.compile(rb'\{"group":("(?:[^"\\\x00-\x1f]|\\.)*"),"sample":')
_NAME: Final = re.compile(r"(?P<time>[^-]+)-[0-9a-f]{12}\.jsonl")


@dataclass(frozen=True, slots=True)
class Line:
    """Where one group's line lies in a reading's file, in bytes, without its line feed."""

    group: str
    start: int
    length: int


def write_reading(data: Path, system: str, cluster: str, at: datetime, documents: Mapping[str, bytes]) -> Path:
    """Write the samples of one reading, documents by group, and return the file. Raises ``StorageError``."""
    lines = sorted(_prefix(group) + document.rstrip(b"\n") + b"}\n" for group, document in documents.items())
    content = b"".join(lines)
    name = f"{time_name(at)}-{hashlib.sha256(content).hexdigest()[:12]}.jsonl"
    return write_atomically(cluster_readings(data, system, cluster) / name, content)


def time_of_reading(path: Path) -> str | None:
    """Return the reading's time as a ``time_name``, ``None`` for a file that is not named like a reading."""
    name = _NAME.fullmatch(path.name)
    return name["time"] if name and is_time_name(name["time"]) else None


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a reading in their order.

    Raises ``DocumentError`` at the first that is none, or is not where bisection would look for it.
    """
    with _mapped(path) as content:
        if not content:
            raise DocumentError(f"{path}: empty, expected the lines of a reading: the file was cut off")
        start, former = 0, b""
        while start < len(content):
            length = _end(content, start) - start
            prefix = content[start : start + min(length, MOST_NAME)]
            line = _LINE.match(prefix)
            if line is None or start + length == len(content):
                raise DocumentError(
                    f"{path}: byte {start} begins no whole line of a reading: the file was cut off or edited"
                )
            if line[0] <= former:
                raise DocumentError(f"{path}: the group at byte {start} is out of order: the file was edited")
            yield Line(_group(line[1], path, start), start, length)
            start, former = start + length + 1, line[0]


def line_of_group(path: Path, group: str) -> Line | None:
    """Return the group's line in a reading, ``None`` where it has none there or the file is gone."""
    prefix = _prefix(group)
    try:
        with _mapped(path) as content:
            low, high = 0, len(content)
            while low < high:
                start = max(low, content.rfind(b"\n", low, (low + high) // 2) + 1)
                end = _end(content, start)
                present = content[start : start + len(prefix)]
                if present == prefix:
                    return Line(group, start, end - start)
                low, high = (end + 1, high) if present < prefix else (low, start)
    except FileNotFoundError:
        pass
    return None


def document_at(path: Path, line: Line, most: int) -> bytes:
    """Return a line's sample as the file of its own would be, of one that is too long ``most`` bytes and more.

    Raises ``DocumentError`` where the file has no such line, ``OSError`` where it cannot be read.
    """
    prefix = _prefix(line.group)
    with path.open("rb") as file:
        file.seek(line.start)
        text = file.read(min(line.length, most + len(prefix) + 1))
    if not text.startswith(prefix) or (len(text) == line.length and not text.endswith(b"}")):
        raise DocumentError(f"{path}: no line of group {line.group} at byte {line.start}: the file was edited")
    return text[len(prefix) : -1] + b"\n"


def _prefix(group: str) -> bytes:
    return b'{"group":' + json.dumps(group, ensure_ascii=False).encode("utf-8", "surrogatepass") + b',"sample":'


def _group(quoted: bytes, path: Path, start: int) -> str:
    try:
        group: str = json.loads(quoted)
    except ValueError as error:
        raise DocumentError(f"{path}: the group's name at byte {start} is no text ({error})") from error
    return group


def _end(content: mmap.mmap | bytes, start: int) -> int:
    end = content.find(b"\n", start)
    return len(content) if end < 0 else end


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """Give the file's bytes without reading those that nobody asks for."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # nothing can be mapped of an empty file
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content
