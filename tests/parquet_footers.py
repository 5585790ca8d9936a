"""Parquet files made by hand of nothing but a footer: they state what their maker likes, in a few hundred bytes.

The footer is Thrift's compact protocol (apache/parquet-format, ``parquet.thrift``: ``FileMetaData``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
MAGIC: Final = b"PAR1"
_INT32: Final = 1
"""Parquet's type ``INT32``."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """What one row group states of itself."""

    rows: int = 1
    bytes: int = 100
    values: int = 1
    packed: int | None = None


@dataclass(frozen=True, slots=True)
class Footer:
    """A table of ``columns`` whole numbers, each below ``depth`` - 1 structs; its row groups may have others."""

    groups: Sequence[RowGroup] = field(default=(RowGroup(),))
    columns: int = 1
    depth: int = 1
    rows: int | None = None
    group_columns: int | None = None

    def file(self) -> bytes:
        """Return the file: no pages, the footer, its length."""
        footer = self._metadata()
        return MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC

    def _metadata(self) -> bytes:
        rows = sum(group.rows for group in self.groups) if self.rows is None else self.rows
        schema = [_element("schema", children=self.columns)]
        for number in range(self.columns):
            schema += [_element("s", children=1)] * (self.depth - 1) + [_element(f"c{number}")]
        groups = [self._group(group) for group in self.groups]
        return thrift_struct(
            (1, I32, zigzag(2)), (2, LIST, thrift_list(STRUCT, schema)), (3, I64, zigzag(rows)),
            (4, LIST, thrift_list(STRUCT, groups)),
        )  # fmt: skip

    def _group(self, group: RowGroup) -> bytes:
        count = self.columns if self.group_columns is None else self.group_columns
        columns = [self._chunk(group, number) for number in range(count)]
        packed = [(6, I64, zigzag(group.packed))] if group.packed is not None else []
        return thrift_struct(
            (1, LIST, thrift_list(STRUCT, columns)),
            (2, I64, zigzag(group.bytes)),
            (3, I64, zigzag(group.rows)),
            *packed,
        )

    def _chunk(self, group: RowGroup, number: int) -> bytes:
        path = [_text(name) for name in ["s"] * (self.depth - 1) + [f"c{number}"]]
        metadata = thrift_struct(
            (1, I32, zigzag(_INT32)), (2, LIST, thrift_list(I32, [zigzag(0)])), (3, LIST, thrift_list(BINARY, path)),
            (4, I32, zigzag(0)), (5, I64, zigzag(group.values)), (6, I64, zigzag(group.bytes)),
            (7, I64, zigzag(0)), (9, I64, zigzag(4)),
        )  # fmt: skip
        return thrift_struct((2, I64, zigzag(4)), (3, STRUCT, metadata))


def _element(name: str, children: int | None = None) -> bytes:
    optional, label = (3, I32, zigzag(1)), (4, BINARY, _text(name))
    if children is None:
        return thrift_struct((1, I32, zigzag(_INT32)), optional, label)
    return thrift_struct(optional, label, (5, I32, zigzag(children)))


def thrift_struct(*fields: tuple[int, int, bytes]) -> bytes:
    """Return a struct of fields: number, kind, content."""
    made, before = b"", 0
    for number, kind, content in fields:
        made += bytes([(number - before) << 4 | kind]) + content
        before = number
    return made + b"\0"


def thrift_list(kind: int, items: Sequence[bytes]) -> bytes:
    """Return a list of things of one kind."""
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))
    return head + b"".join(items)


def _text(text: str) -> bytes:
    return varint(len(text)) + text.encode()


def zigzag(number: int) -> bytes:
    """Return a whole number as Thrift writes it."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def varint(number: int) -> bytes:
    """Return a number of zero or more, seven bits a byte."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])
