"""The order of Java's hash maps: a function of the keys, not of chance (``java.util.HashMap``, Java 8 and later).

Bins of eight and more keys become trees in Java; their order is not followed here.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.allocation.kafka.group import IntArray

_FIRST_TABLE = 16


def string_hashes(names: Sequence[str]) -> NDArray[np.uint32]:
    """Return ``String#hashCode`` of each name as an unsigned number: ``31 × h + unit`` over its UTF-16 units."""
    return _hash_names(tuple(names))


@lru_cache(maxsize=256)
def _hash_names(names: tuple[str, ...]) -> NDArray[np.uint32]:
    """The hashes, to be read only: a simulation asks for those of the same topics and members a thousand times."""
    encoded = [name.encode("utf-16-le", "surrogatepass") for name in names]
    lengths = np.array([len(name) // 2 for name in encoded], dtype=np.intp)
    units = np.frombuffer(b"".join(encoded), dtype="<u2").astype(np.uint32)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.intp) if len(names) else lengths
    hashes = np.zeros(len(names), dtype=np.uint32)
    for position in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > position)
        hashes[longer] = hashes[longer] * np.uint32(31) + units[starts[longer] + position]
    hashes.flags.writeable = False
    return hashes


def walk_order(names: Sequence[str]) -> IntArray:
    """Return the indexes of the names as a ``HashMap`` iterates that got them in this order.

    ``consumer1`` to ``consumer4`` come out as 3, 2, 1, 0.
    """
    return hashed_order(string_hashes(names))


def hashed_order(hashes: NDArray[np.uint32]) -> IntArray:
    """Return the indexes of names with these hashes as a ``HashMap`` iterates that got them in this order."""
    buckets = (hashes ^ (hashes >> np.uint32(16))) & np.uint32(table_length(len(hashes)) - 1)
    return np.argsort(buckets, kind="stable")


def table_length(size: int) -> int:
    """Return how long the table of a map is that grew to ``size`` keys: doubled whenever it is over three quarters."""
    length = _FIRST_TABLE
    while size > length * 3 // 4:
        length *= 2
    return length


def copied_set_buckets(numbers: IntArray, sizes: IntArray) -> IntArray:
    """Return the bucket of each number in a ``new HashSet<Integer>(collection)`` of so many entries."""
    least_lengths = np.maximum((sizes / 0.75).astype(np.intp) + 1, _FIRST_TABLE)
    lengths = np.left_shift(1, np.ceil(np.log2(least_lengths)).astype(np.intp))
    buckets: IntArray = (numbers ^ (numbers >> 16)) & (lengths - 1)
    return buckets


class HashedSet:
    """A set whose first element is the one that a Java ``HashSet`` with the same history would give first."""

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._length = _FIRST_TABLE

    def __len__(self) -> int:
        return len(self._buckets)

    def add(self, item: int, hash_code: int) -> None:
        """Put an item in, which is not there yet, with its 32 bit hash code."""
        self._buckets[item] = (hash_code ^ (hash_code >> 16)) & 0xFFFFFFFF
        self._length = max(self._length, table_length(len(self._buckets)))

    def remove(self, item: int) -> None:
        """Take an item out; the table keeps its length."""
        del self._buckets[item]

    def first(self) -> int:
        """Return the item of the lowest bucket, of several the one put in first."""
        return _lowest(self._buckets.items(), self._length - 1)


def _lowest(items: Iterable[tuple[int, int]], mask: int) -> int:
    return min(items, key=lambda pair: pair[1] & mask)[0]
