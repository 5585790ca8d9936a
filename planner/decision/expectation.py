"""What was to be expected of each possible future at one of its steps, by the load as it was known there.

Costs are regressed on what the step knows (least-squares Monte Carlo: Longstaff, Schwartz 2001). A rule that goes by
such expectations has no foresight: it could be followed.
"""

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


def expectation_after(known: Floats) -> Expectation:
    """Return what is to be expected after these loads; shape (paths, stretches), at least one stretch.

    It goes by the ranks of the last load and of the mean of the last ``RECENT``: a rank has no outlier.
    """
    last, recent = _ranks(known[:, -1]), _ranks(known[:, -RECENT:].mean(axis=1))
    first = _direction(last)
    new = recent if first is None else recent - (recent * first).sum() * first
    return Expectation(tuple(each for each in (first, _direction(new)) if each is not None))


def _direction(ranks: Floats) -> Floats | None:
    """Return the ranks with length one, ``None`` where all paths have the same one."""
    length = float(np.sqrt((ranks * ranks).sum()))
    return ranks / length if length > _ROUNDING * len(ranks) else None


def _ranks(values: Floats) -> Floats:
    """Return how many values each one is above, less how many it is below: equal ones have equal ranks."""
    above = values[:, None] - values
    above[np.abs(above) <= _ROUNDING * np.abs(values).max()] = 0.0
    return np.asarray(np.sign(above).sum(axis=1))
