"""Bounds for what comes from outside: how many bytes, values and levels a text may have before it is read at all.

A parser makes many bytes of few: 64 MiB of ``[`` are 9 GB of lists. So what a text could become is counted first, by
its separators, which costs a pass over it and no memory. docs/limits.md has all limits.
"""

import json
import zlib
from typing import Any, Final

MOST_BYTES: Final = 32 * 1024 * 1024
"""Of one answer of a broker or of Prometheus; RocketMQ's own limit is 16 MiB (``frameMaxLength``)."""
MOST_VALUES: Final = 2_000_000
"""Lists, objects and separators in one answer: at most 250 MB once read."""
MOST_DEPTH: Final = 200


class TooMuchError(ValueError):
    """A text that is larger than its reader takes."""


def check_values(text: bytes | str, most: int = MOST_VALUES) -> None:
    """Raise ``TooMuchError`` where a JSON text could have more than so many values."""
    marks: tuple[Any, ...] = (b"[", b"{", b",", b":") if isinstance(text, bytes) else ("[", "{", ",", ":")
    counts = [text.count(mark) for mark in marks]
    # A colon follows a key, so that an object without commas counts, too.
    values = max(sum(counts[:3]), counts[3])
    if values > most:
        raise TooMuchError(f"up to {values} values, {most} are read at most")


def bounded_json(body: bytes, most_values: int = MOST_VALUES) -> Any:
    """Return what a JSON text holds. Raises ``ValueError`` for one that is too large, too deep or no JSON."""
    if len(body) > MOST_BYTES:
        raise TooMuchError(f"{len(body)} bytes, {MOST_BYTES} are read at most")
    check_values(body, most_values)
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("more levels of lists and objects than are read") from None


class Unpacker:
    """Unpacks a gzip stream piece by piece; raises ``TooMuchError`` before more than ``most`` bytes are there."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._given = 0

    def unpack(self, piece: bytes) -> bytes:
        """Return what the piece adds. Raises ``ValueError`` for what is no gzip."""
        try:
            unpacked = self._stream.decompress(piece, self._most - self._given + 1)
        except zlib.error as error:
            raise ValueError(f"no gzip ({error})") from error
        self._given += len(unpacked)
        if self._given > self._most:
            raise TooMuchError(f"more than {self._most} bytes once unpacked")
        return unpacked


def is_path(text: str) -> bool:
    """Return whether a file's path can be ``text``: none has a NUL, or half of a surrogate pair."""
    return "\0" not in text and text == text.encode("utf-8", "ignore").decode("utf-8")
