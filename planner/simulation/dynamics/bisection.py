"""Where limits fall among sorted times, for many rows at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]
_Fits = Callable[[Floats, Floats], NDArray[np.bool_]]


def first_after(rows: Floats, row: Indexes, limits: Floats) -> Indexes:
    """Return for each limit the first place in its row of ascending times that is after it; their number if none is.

    ``rows``: rows, times; ``row`` and ``limits`` have one shape, which is the answer's.

    >>> rows = np.array([[1.0, 2.0, 2.0], [5.0, 6.0, 7.0]])
    >>> first_after(rows, np.array([0, 0, 1]), np.array([1.5, 2.0, 1.0])).tolist()
    [1, 3, 0]
    """
    return _first(rows, row, limits, np.greater)


def first_from(rows: Floats, row: Indexes, limits: Floats) -> Indexes:
    """Return the same of the first place that is not before the limit."""
    return _first(rows, row, limits, np.greater_equal)


def _first(rows: Floats, row: Indexes, limits: Floats, fits: _Fits) -> Indexes:
    width, times = rows.shape[1], rows.ravel()
    low, high = np.zeros(limits.shape, dtype=np.intp), np.full(limits.shape, width, dtype=np.intp)
    if width == 0:
        return high
    for _ in range(width.bit_length()):
        middle = np.minimum((low + high) // 2, width - 1)
        is_there = fits(times.take(row * width + middle), limits)
        low, high = np.where(is_there, low, np.minimum(middle + 1, high)), np.where(is_there, middle, high)
    return high
