"""A group's load by minute, and its level as it was known at each minute."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MINUTE_S = 60.0
GAP_SHARE = 0.05
"""A minute below this part of the level is a gap: producers restart, or nothing was recorded."""


@dataclass(frozen=True, slots=True)
class LevelSettings:
    """How the level follows the load.

    ``weights`` are what one minute may count for (exponential smoothing of the logarithm): a noisy load wants a small
    one, a jumping one a large one. The level is that of the weight with the least error of late in the next minute's
    forecast; errors are forgotten within about ``memory_minutes``. A gap leaves the level as it is for
    ``believed_after`` minutes, because an outage is not an hour without load.
    """

    weights: tuple[float, ...] = (0.1, 0.2, 0.4, 0.7)
    memory_minutes: float = 720.0
    believed_after: int = 5


DEFAULT_LEVEL = LevelSettings()


class LoadSeries:
    """Load by minute, in any unit; grows by one minute at a time.

    ``load`` has the minutes so far, ``level`` the level behind each of them, ``summed`` the load of all minutes before
    each (one entry more). ``averaged`` says which minutes have their load from a longer span that began before them,
    none where it is left out: those bear no witness for the weight that follows the last minute at once.
    """

    def __init__(
        self,
        settings: LevelSettings = DEFAULT_LEVEL,
        load: Sequence[float] | Floats = (),
        averaged: Sequence[bool] | None = None,
    ) -> None:
        self._settings = settings
        self._size = 0
        self._load: Floats = np.zeros(1024)
        self._level: Floats = np.zeros(1024)
        self._summed: Floats = np.zeros(1025)
        self._gap = 0
        self._logs = [0.0] * len(settings.weights)
        self._errors = [0.0] * len(settings.weights)
        for minute, is_averaged in zip(load, averaged or repeat(False, len(load)), strict=True):
            self.append(float(minute), is_averaged=is_averaged)

    def __len__(self) -> int:
        return self._size

    @property
    def load(self) -> Floats:
        """The load of each minute."""
        return self._load[: self._size]

    @property
    def level(self) -> Floats:
        """The level behind each minute."""
        return self._level[: self._size]

    @property
    def summed(self) -> Floats:
        """The load of all minutes before each, and of all at the end."""
        return self._summed[: self._size + 1]

    def known_after(self, minutes: int) -> "LoadSeries":
        """Return the series as it was after so many minutes, for reading only: level and sums look back alone."""
        earlier = copy(self)
        earlier._size = minutes
        return earlier

    def scaled(self, factor: float) -> "LoadSeries":
        """Return the series with so many times the load, for reading only."""
        other = copy(self)
        other._load, other._level, other._summed = (line * factor for line in (self._load, self._level, self._summed))
        return other

    def append(self, load: float, *, is_averaged: bool = False) -> None:
        """Add the load of the next minute."""
        if self._size == len(self._load):
            self._grow()
        self._load[self._size] = load
        self._level[self._size] = self._next_level(load, is_averaged=is_averaged)
        self._summed[self._size + 1] = self._summed[self._size] + load
        self._size += 1

    def _next_level(self, load: float, *, is_averaged: bool) -> float:
        """Return the level behind a minute of this load, and learn which weight to go by where it is its own."""
        before = float(self._level[self._size - 1]) if self._size else 0.0
        if before <= 0.0:
            self._logs = [math.log(load)] * len(self._logs) if load > 0 else self._logs
            return load
        self._gap = self._gap + 1 if load < GAP_SHARE * before else 0
        if 0 < self._gap <= self._settings.believed_after:
            return before
        # A minute without any load would take the logarithm to minus infinity.
        self._follow(math.log(max(load, GAP_SHARE * before)), is_averaged=is_averaged)
        return math.exp(self._logs[self._errors.index(min(self._errors))])

    def _follow(self, log: float, *, is_averaged: bool) -> None:
        keep = 1 - 1 / self._settings.memory_minutes
        for index, weight in enumerate(self._settings.weights):
            error = log - self._logs[index]
            if not is_averaged:
                self._errors[index] = keep * self._errors[index] + error * error
            self._logs[index] += weight * error

    def _grow(self) -> None:
        self._load, self._level = (np.concatenate([line, np.zeros_like(line)]) for line in (self._load, self._level))
        self._summed = np.concatenate([self._summed, np.zeros(len(self._load) + 1 - len(self._summed))])
