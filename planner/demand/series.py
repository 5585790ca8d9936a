"""A group's load by minute, and its level as it was known at each minute."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Minutes = NDArray[np.intp]

MINUTE_S = 60.0
MINUTES_A_DAY = 1440
LEAST_LOAD = 1e-6
"""Of a load below this one the logarithm is that of this one."""
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
    none where it is left out: those bear no witness for the weight that follows the last minute at once, and are not
    among the ``observed``.
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
        self._observed: Floats = np.zeros(1025)
        self._gap = 0
        self._logs = [0.0] * len(settings.weights)
        self._errors = [0.0] * len(settings.weights)
        self.extend(load, averaged)

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

    @property
    def observed(self) -> Floats:
        """How many minutes before each have a load of their own, and of all at the end: one entry more."""
        return self._observed[: self._size + 1]

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

    def followed_by(self, load: Sequence[float], averaged: Sequence[bool] | None = None) -> "LoadSeries":
        """Return the series with the load of the next minutes behind it; this one stays as it is."""
        other = copy(self)
        lines = self._load, self._level, self._summed, self._observed
        other._load, other._level, other._summed, other._observed = (line.copy() for line in lines)
        other.extend(load, averaged)
        return other

    def append(self, load: float) -> None:
        """Add the load of the next minute."""
        self.extend([load])

    def extend(self, load: Sequence[float] | Floats, averaged: Sequence[bool] | None = None) -> None:
        """Add the load of the next minutes."""
        minutes = np.asarray(load, dtype=np.float64)
        flags = [False] * len(minutes) if averaged is None else averaged
        first, end = self._size, self._size + len(minutes)
        while end > len(self._load):
            self._grow()
        self._load[first:end] = minutes
        self._level[first:end] = self._levels(minutes.tolist(), flags)
        for sums, values in ((self._summed, minutes), (self._observed, ~np.asarray(flags, dtype=np.bool_))):
            sums[first : end + 1] = np.cumsum(np.concatenate((sums[first : first + 1], values)))
        self._size = end

    def _levels(self, load: Sequence[float], averaged: Sequence[bool]) -> list[float]:
        """Return the level behind each of the minutes, and learn which weight to go by from those of their own load."""
        weights, keep = self._settings.weights, 1 - 1 / self._settings.memory_minutes
        believed_after = self._settings.believed_after
        logs, errors, gap = self._logs, self._errors, self._gap
        level = float(self._level[self._size - 1]) if self._size else 0.0
        levels = []
        for minute, is_averaged in zip(load, averaged, strict=True):
            if level <= 0.0:
                level = minute
                logs = [math.log(minute)] * len(logs) if minute > 0 else logs
            else:
                gap = gap + 1 if minute < GAP_SHARE * level else 0
                if not 0 < gap <= believed_after:
                    # A minute without any load would take the logarithm to minus infinity.
                    log = math.log(max(minute, GAP_SHARE * level))
                    misses = [log - before for before in logs]
                    if not is_averaged:
                        errors = [keep * error + miss * miss for error, miss in zip(errors, misses, strict=True)]
                    logs = [before + weight * miss for before, weight, miss in zip(logs, weights, misses, strict=True)]
                    level = math.exp(logs[errors.index(min(errors))])
            levels.append(level)
        self._logs, self._errors, self._gap = logs, errors, gap
        return levels

    def _grow(self) -> None:
        self._load, self._level = (np.concatenate([line, np.zeros_like(line)]) for line in (self._load, self._level))
        more = np.zeros(len(self._load) + 1 - len(self._summed))
        self._summed, self._observed = (np.concatenate([line, more]) for line in (self._summed, self._observed))
