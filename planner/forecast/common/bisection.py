"""Where limits fall among sorted times, for many rows at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]
_IsBefore = Callable[[Floats, Floats], NDArray[np.bool_]]


def first_after(rows: Floats, row: Indexes, limits: Floats) -> Indexes:
    """Return for each limit the first place in its row of ascending times that is after it; their number if none is.

    ``rows``: rows, times; ``row`` and ``limits`` have one shape, which is the answer's.

    >>> rows = np.array([[1.0, 2.0, 2.0], [5.0, 6.0, 7.0]])
    >>> first_after(rows, np.array([0, 0, 1]), np.array([1.5, 2.0, 1.0])).tolist()
    [1, 3, 0]
    """
    return _first(rows, row, limits, np.less_equal)


def first_from(rows: Floats, row: Indexes, limits: Floats) -> Indexes:
    """Return the same of the first place that is not before the limit."""
    return _first(rows, row, limits, np.less)


def _first(rows: Floats, row: Indexes, limits: Floats, is_before: _IsBefore) -> Indexes:
    width, times = rows.shape[1], rows.ravel()
    begins = row * width
    index, left = begins.copy(), width
    # All searches halve what is left in step, so that each of them is one look at one time.
    while left > 1:
        half = left // 2
        index += half * is_before(times.take(index + (half - 1)), limits)
        left -= half
    if left:
        index += is_before(times.take(index), limits)
    firsts: Indexes = index - begins
    return firsts
