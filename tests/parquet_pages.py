"""Parquet files of one column of doubles whose pages, or what their footer says of them, lie: a few hundred bytes each.

``parquet.thrift``: ``PageHeader``, ``DataPageHeader``, ``DictionaryPageHeader``, ``ColumnMetaData``.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tests.parquet_footers import BINARY, I32, I64, LIST, MAGIC, STRUCT, thrift_list, thrift_struct, varint, zigzag

COLUMN: Final = "seconds"
_DOUBLE, _OPTIONAL = 5, 1
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _DICTIONARY, _RLE = 0, 2, 3
_UNCOMPRESSED, _ZSTD = 0, 6
_BILLION: Final = 2**30


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its content, and what its header states, the truth where nothing else is given."""

    content: bytes
    kind: int = _DATA_PAGE
    values: int = 3
    encoding: int = _PLAIN
    packed: int | None = None
    unpacked: int | None = None

    def with_header(self) -> bytes:
        """Return the page with its header."""
        if self.kind == _DATA_PAGE:
            fields = (self.values, self.encoding, _RLE, _RLE)
            head = 5, STRUCT, thrift_struct(*((n, I32, zigzag(v)) for n, v in enumerate(fields, 1)))
        else:
            head = 7, STRUCT, thrift_struct((1, I32, zigzag(self.values)), (2, I32, zigzag(self.encoding)))
        size = len(self.content)
        unpacked, packed = (size if stated is None else stated for stated in (self.unpacked, self.packed))
        sizes = (1, I32, zigzag(self.kind)), (2, I32, zigzag(unpacked)), (3, I32, zigzag(packed))
        return thrift_struct(*sizes, head) + self.content


@dataclass(frozen=True, slots=True)
class File:
    """A data page, a dictionary before it perhaps, and what the footer states of their chunk where it lies."""

    page: Page
    dictionary: Page | None = None
    codec: int = _UNCOMPRESSED
    starts_at: int | None = None
    packed: int | None = None

    def file(self) -> bytes:
        """Return the file."""
        dictionary = self.dictionary.with_header() if self.dictionary else b""
        pages = dictionary + self.page.with_header()
        footer = self._footer(len(dictionary), len(pages))
        return MAGIC + pages + footer + len(footer).to_bytes(4, "little") + MAGIC

    def _footer(self, dictionary: int, size: int) -> bytes:
        starts_at = len(MAGIC) + dictionary if self.starts_at is None else self.starts_at
        packed = size if self.packed is None else self.packed
        chunk = thrift_struct(
            (1, I32, zigzag(_DOUBLE)),
            (2, LIST, thrift_list(I32, [zigzag(_PLAIN), zigzag(_DICTIONARY), zigzag(_RLE)])),
            (3, LIST, thrift_list(BINARY, [varint(len(COLUMN)) + COLUMN.encode()])),
            (4, I32, zigzag(self.codec)), (5, I64, zigzag(3)), (6, I64, zigzag(size)), (7, I64, zigzag(packed)),
            (9, I64, zigzag(starts_at)), *([(11, I64, zigzag(len(MAGIC)))] if dictionary else []),
        )  # fmt: skip
        columns = thrift_list(STRUCT, [thrift_struct((2, I64, zigzag(0)), (3, STRUCT, chunk))])
        group = thrift_struct((1, LIST, columns), (2, I64, zigzag(size)), (3, I64, zigzag(3)))
        name = varint(len(COLUMN)) + COLUMN.encode()
        schema = [
            thrift_struct((4, BINARY, varint(6) + b"schema"), (5, I32, zigzag(1))),
            thrift_struct((1, I32, zigzag(_DOUBLE)), (3, I32, zigzag(_OPTIONAL)), (4, BINARY, name)),
        ]
        return thrift_struct(
            (1, I32, zigzag(1)), (2, LIST, thrift_list(STRUCT, schema)), (3, I64, zigzag(3)),
            (4, LIST, thrift_list(STRUCT, [group])),
        )  # fmt: skip


def _levels(run: bytes) -> bytes:
    return len(run).to_bytes(4, "little") + run


def _packed_groups(count: int, content: bytes) -> bytes:
    """Return a run of bit-packed groups of eight values that states so many, however few follow."""
    return varint(count << 1 | 1) + content


_DOUBLES: Final = struct.pack("<3d", 1.0, 2.0, 3.0)
_ALL_THERE: Final = _levels(varint(3 << 1) + b"\1")
_PAGE: Final = Page(_ALL_THERE + _DOUBLES)
_BY_NUMBER: Final = Page(_ALL_THERE + b"\2" + _packed_groups(1, b"\x24\0"), encoding=_DICTIONARY)
_VALUES: Final = Page(_DOUBLES, _DICTIONARY_PAGE)

GOOD: Final[Mapping[str, Callable[[], bytes]]] = {
    "plain": File(_PAGE).file,
    "dictionary": File(_BY_NUMBER, _VALUES).file,
}
"""Files that every reader reads as 1, 2, 3."""
MISPLACED: Final[Mapping[str, Callable[[], bytes]]] = {
    "a chunk larger than its file": File(_PAGE, packed=2**31 - 1).file,
    "a chunk of less than nothing": File(_PAGE, packed=-5).file,
    "a chunk beyond its file": File(_PAGE, starts_at=10**9).file,
    "a chunk in the mark": File(_PAGE, starts_at=0).file,
    "a chunk in the footer": File(_PAGE, starts_at=70).file,
}
"""Files whose footer says that a column lies where the file has none."""
LYING: Final[Mapping[str, Callable[[], bytes]]] = {
    "levels in a run of 8 GiB": File(
        replace(_PAGE, content=_levels(_packed_groups(_BILLION // 8, b"\7")) + _DOUBLES)
    ).file,
    "numbers in a run of 8 GiB": File(
        replace(_BY_NUMBER, content=_ALL_THERE + b"\2" + _packed_groups(_BILLION // 8, b"\x24\0")), _VALUES
    ).file,
    "a dictionary of 2^31 values": File(_BY_NUMBER, replace(_VALUES, values=2**31 - 1)).file,
    "a dictionary of 2^30 values": File(_BY_NUMBER, replace(_VALUES, values=2**30)).file,
    "a dictionary of less than nothing": File(_BY_NUMBER, replace(_VALUES, values=-1)).file,
    "a page of 2 GiB unpacked": File(replace(_PAGE, unpacked=2**31 - 1), codec=_ZSTD).file,
    "a page of 1 GiB unpacked": File(replace(_PAGE, unpacked=2**30), codec=_ZSTD).file,
    "a page of 2 GiB": File(replace(_PAGE, packed=2**31 - 1)).file,
    "a page of less than nothing": File(replace(_PAGE, packed=-5, unpacked=-5)).file,
    "a page of many values": File(replace(_PAGE, values=2**31 - 1)).file,
    "a page of random bytes": File(replace(_PAGE, content=bytes(range(200)))).file,
}  # fmt: skip
"""Files with a footer within bounds, whose pages hold something else."""
