"""Fields of Kafka's binary protocol, written and read: big-endian numbers, and lengths as variable-size numbers.

Each API has *flexible* versions (KIP-482) with compact lengths and tagged fields, and older ones with fixed lengths.
Source: https://kafka.apache.org/protocol, ``ByteBufferAccessor``.
"""

import struct
from collections.abc import Callable
from typing import Final, TypeVar
from uuid import UUID

from planner.sources.kafka.errors import ProtocolError

_T = TypeVar("_T")
_MAX_VARINT_BYTES: Final = 5
MOST_ELEMENTS: Final = 1_000_000
"""In all arrays of one answer: some 250 MB once read."""
NO_TAGS: Final = b"\0"
"""The end of every structure of a flexible version: no tagged fields."""


def int8(number: int) -> bytes:
    """Return one byte."""
    return struct.pack(">b", number)


def int16(number: int) -> bytes:
    """Return two bytes."""
    return struct.pack(">h", number)


def int32(number: int) -> bytes:
    """Return four bytes."""
    return struct.pack(">i", number)


def text(content: str | None) -> bytes:
    """Return a string with a length of two bytes, -1 for none."""
    if content is None:
        return int16(-1)
    encoded = content.encode()
    return int16(len(encoded)) + encoded


def data(content: bytes) -> bytes:
    """Return bytes with a length of four bytes."""
    return int32(len(content)) + content


def varint(number: int) -> bytes:
    """Return an unsigned number, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def compact_text(content: str) -> bytes:
    """Return a string of a flexible version."""
    encoded = content.encode()
    return varint(len(encoded) + 1) + encoded


def compact_texts(contents: tuple[str, ...]) -> bytes:
    """Return an array of strings of a flexible version."""
    return varint(len(contents) + 1) + b"".join(map(compact_text, contents))


class Reader:
    """Reads fields one after the other; raises ``ProtocolError`` where the bytes end or cannot be."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._elements_left = MOST_ELEMENTS

    @property
    def left(self) -> int:
        """How many bytes have not been read."""
        return len(self._content) - self._at

    def raw(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if not 0 <= count <= self.left:
            raise ProtocolError(f"a field of {count} bytes at byte {self._at}, where {self.left} are left")
        self._at += count
        return self._content[self._at - count : self._at]

    def int8(self) -> int:
        """Return a signed number of one byte."""
        return int.from_bytes(self.raw(1), signed=True)

    def int16(self) -> int:
        """Return a signed number of two bytes."""
        return int.from_bytes(self.raw(2), signed=True)

    def int32(self) -> int:
        """Return a signed number of four bytes."""
        return int.from_bytes(self.raw(4), signed=True)

    def int64(self) -> int:
        """Return a signed number of eight bytes."""
        return int.from_bytes(self.raw(8), signed=True)

    def uuid(self) -> UUID:
        """Return a topic id."""
        return UUID(bytes=self.raw(16))

    def text(self) -> str:
        """Return a string with a length of two bytes; none counts as empty."""
        return self._decode(self.raw(max(0, self.int16())))

    def data(self) -> bytes | None:
        """Return bytes with a length of four bytes, ``None`` for none."""
        length = self.int32()
        return None if length < 0 else self.raw(length)

    def varint(self) -> int:
        """Return an unsigned number of variable size."""
        number = 0
        for index in range(_MAX_VARINT_BYTES):
            byte = self.raw(1)[0]
            number |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return number
        raise ProtocolError(f"a number of more than {_MAX_VARINT_BYTES} bytes before byte {self._at}")

    def compact_text(self) -> str | None:
        """Return a string of a flexible version, ``None`` for none."""
        content = self.compact_data()
        return None if content is None else self._decode(content)

    def compact_data(self) -> bytes | None:
        """Return bytes of a flexible version, ``None`` for none."""
        length = self.varint()
        return None if length == 0 else self.raw(length - 1)

    def array(self, read: Callable[[], _T]) -> tuple[_T, ...]:
        """Return what ``read`` gives for each element of an array with a length of four bytes."""
        return self._elements(max(0, self.int32()), read)

    def compact_array(self, read: Callable[[], _T]) -> tuple[_T, ...]:
        """Return what ``read`` gives for each element of an array of a flexible version."""
        return self._elements(max(0, self.varint() - 1), read)

    def skip_tags(self) -> None:
        """Pass over tagged fields, which newer brokers may add anywhere."""
        for _ in range(self.varint()):
            self.varint()
            self.raw(self.varint())

    def _elements(self, count: int, read: Callable[[], _T]) -> tuple[_T, ...]:
        if count > self.left:  # every element takes a byte at least: nothing is made room for on a liar's word
            raise ProtocolError(f"an array of {count} elements at byte {self._at}, where {self.left} bytes are left")
        self._elements_left -= count
        if self._elements_left < 0:
            raise ProtocolError(f"more than {MOST_ELEMENTS} elements in one answer, at byte {self._at}")
        return tuple(read() for _ in range(count))

    def _decode(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a string that is not UTF-8 before byte {self._at}") from error
