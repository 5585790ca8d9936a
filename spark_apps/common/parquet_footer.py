"""What the footer of a Parquet file states, read within bounds.

Sources: ``parquet.thrift`` (``FileMetaData``), ``thrift-compact-protocol.md``. pyarrow (26.0) reads footers too, and
ends the whole process on some of them: its C++ throws where Python cannot catch it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST_ENTRIES: Final = 5_000
"""Of each list in a footer: its row groups, the parts of its schema."""
MOST_VALUES: Final = 500_000
"""Fields and entries of a footer in all: about a second's work."""
_MOST_NESTED: Final = 16
"""Structs and lists in each other: a footer of Parquet has eight."""
_BOOLEANS: Final = {1: True, 2: False}
_BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(3, 14)
Struct = Mapping[int, Any]


class FooterError(ValueError):
    """Bytes that are no footer, or more of it than is read."""


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One column of a row group: values, unpacked bytes, and the bytes of the file that it takes, from where on."""

    values: int
    size: int
    starts_at: int
    packed: int


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that lie together: how many, their unpacked bytes, their columns.

    ``starts_at`` and ``packed`` are what the group itself states beside its columns, ``None`` where it does not.
    """

    rows: int
    size: int
    columns: Sequence[ColumnChunk]
    starts_at: int | None
    packed: int | None


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file states of itself: rows, columns, the most levels of one, row groups."""

    rows: int
    columns: int
    levels: int
    groups: Sequence[RowGroup]


def parse_footer(content: bytes) -> Footer:
    """Return what a footer states. Raises ``FooterError``."""
    try:
        return _footer(_Reader(content).struct())
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise FooterError(f"no footer of Parquet ({error!r})") from error


def _footer(metadata: Struct) -> Footer:
    levels = [level for level, is_column in _levels(metadata[2]) if is_column]
    groups = [_group(group, len(levels)) for group in metadata[4]]
    return Footer(_whole(metadata[3]), len(levels), max(levels, default=0), groups)


def _levels(schema: Sequence[Struct]) -> Iterator[tuple[int, bool]]:
    """Yield of each part of a schema how deep it lies and whether it is a column: a list in the order of its tree."""
    waiting = [1]
    for element in schema:
        while waiting and not waiting[-1]:
            waiting.pop()
        if not waiting:
            raise FooterError("a schema with parts that belong to no other")
        waiting[-1] -= 1
        children = _whole(element.get(5, 0))
        level = len(waiting) - 1
        yield level, not children and level > 0  # the first is the table itself
        waiting.append(children)
    if any(waiting):
        raise FooterError("a schema that lacks parts")


def _group(group: Struct, columns: int) -> RowGroup:
    chunks = [chunk[3] for chunk in group[1]]
    if len(chunks) != columns:
        raise FooterError(f"a row group of {len(chunks)} columns in a table of {columns}")
    starts_at, packed = (None if number not in group else _whole(group[number]) for number in (5, 6))
    return RowGroup(_whole(group[3]), _whole(group[2]), [_chunk(chunk) for chunk in chunks], starts_at, packed)


def _chunk(chunk: Struct) -> ColumnChunk:
    """Return a column: its dictionary, where it has one, lies before its pages (``ColumnMetaData``)."""
    pages, dictionary = _whole(chunk[9]), _whole(chunk.get(11, 0))
    starts_at = dictionary if 0 < dictionary < pages else pages
    return ColumnChunk(_whole(chunk[5]), _whole(chunk[6]), starts_at, _whole(chunk[7]))


def _whole(value: object) -> int:
    if type(value) is not int:
        raise FooterError(f"found {type(value).__name__}, expected a whole number")
    return value


class _Reader:
    """Thrift's compact protocol: a struct is a mapping of its fields' numbers."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at, self._values, self._nested = content, 0, 0, 0
        self._kinds: Mapping[int, Callable[[], Any]] = {
            _BYTE: lambda: self._bytes(1),
            **dict.fromkeys((_I16, _I32, _I64), self._zigzag),
            _DOUBLE: lambda: self._bytes(8),
            _BINARY: lambda: self._bytes(self._varint()),
            **dict.fromkeys((_LIST, _SET), self._list),
            _MAP: self._map,
            _STRUCT: self.struct,
            _UUID: lambda: self._bytes(16),
        }

    def struct(self) -> Struct:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            fields[number] = _BOOLEANS[kind] if kind in _BOOLEANS else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        self._values += 1
        self._nested += 1
        if self._values > MOST_VALUES or self._nested > _MOST_NESTED:
            raise FooterError(f"more than {MOST_VALUES} fields and entries, or {_MOST_NESTED} levels of them")
        value = self._kinds[kind]()
        self._nested -= 1
        return value

    def _list(self) -> list[Any]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        count = self._varint() if count == 15 else count
        return [self._entry(kind) for _ in range(_check_count(count))]

    def _map(self) -> None:
        if count := _check_count(self._varint()):
            kinds = self._byte()
            for _ in range(count):
                self._entry(kinds >> 4)
                self._entry(kinds & 15)

    def _entry(self, kind: int) -> Any:
        return self._value(_BYTE if kind in _BOOLEANS else kind)

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._content):
            raise FooterError("it is cut off")
        return self._content[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift >= 64:
                raise FooterError("a number of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def _check_count(count: int) -> int:
    if count > MOST_ENTRIES:
        raise FooterError(f"a list of {count} entries, {MOST_ENTRIES} are read at most")
    return count
