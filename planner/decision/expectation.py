"""What was to be expected of each possible future at one of its steps, by the load as it was known there.

Costs are regressed on what the step knows (least-squares Monte Carlo: Longstaff, Schwartz 2001). A rule that goes by
such expectations has no foresight: it could be followed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RECENT = 10
"""Of so many stretches before a step the mean load tells what is to come, beside that of the last one."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """What the futures differ in at a step: ``directions`` over them, of shape (paths,), without mean, orthonormal."""

    directions: tuple[Floats, ...]

    def of(self, values: Floats) -> Floats:
        """Return what was to be expected of values of each path: their mean, and how they follow the directions.

        Shape (paths, counts, levels), as that of ``values``. The sums are numpy's own, so that each machine has the
        same ones.
        """
        expected = np.broadcast_to(values.mean(axis=0), values.shape)
        for direction in self.directions:
            weights = direction[:, None, None]
            expected = expected + weights * (weights * values).sum(axis=0)
        return expected


def expectations_after(loads: Floats, begins: Sequence[int]) -> list[Expectation]:
    """Return what is to be expected from each of these stretches on, after the loads before it.

    ``loads`` has shape (paths, stretches); each begin is at least 1. It goes by the ranks of the last load and of the
    mean of the last ``RECENT``: a rank has no outlier.
    """
    if not begins:
        return []
    last = _ranks(loads[:, np.asarray(begins) - 1].T)
    recent = _ranks(np.array([loads[:, max(begin - RECENT, 0) : begin].mean(axis=1) for begin in begins]))
    first = _directions(last)
    second = _directions(recent - (recent * first).sum(axis=1, keepdims=True) * first)
    return [Expectation(tuple(it for it in pair if it.any())) for pair in zip(first, second, strict=True)]


def _directions(ranks: Floats) -> Floats:
    """Return each step's ranks with length one, zeros where all paths have the same one; shape (steps, paths)."""
    lengths = np.sqrt((ranks * ranks).sum(axis=1, keepdims=True))
    differ = lengths > _ROUNDING * ranks.shape[1]
    return np.asarray(np.where(differ, ranks / np.where(differ, lengths, 1.0), 0.0))


def _ranks(values: Floats) -> Floats:
    """Return of how many of its step's values each is above, less of how many it is below: equal ones rank equally."""
    above = values[:, :, None] - values[:, None, :]
    above[np.abs(above) <= _ROUNDING * np.abs(values).max(axis=1)[:, None, None]] = 0.0
    return np.asarray(np.sign(above).sum(axis=2))
