"""Delays of networks and machines, drawn between two bounds."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DelayRange = tuple[float, float]
"""Lower and upper bound of a delay, in seconds unless the name says otherwise."""


def draw_evenly(random: np.random.Generator, bounds: DelayRange, shape: tuple[int, ...] | int) -> Floats:
    """Return even draws between two bounds."""
    return random.uniform(bounds[0], bounds[1], shape)


def draw_tailed(random: np.random.Generator, bounds: DelayRange, shape: tuple[int, ...] | int) -> Floats:
    """Return draws between two bounds that lie near the lower one mostly: half of them in the first eighth.

    Delays of a machine have one side: nothing is faster than the code, and now and then something else comes first.
    """
    low, high = bounds
    return low + (high - low) * random.random(shape) ** 3
