"""Random numbers, one stream a stage, so that a stage draws the same whatever the others do."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Stage(IntEnum):
    """What draws."""

    NAMES = 0
    PROCESSES = 1
    BEATS = 2
    ROUNDS = 3
    BROKERS = 4
    STARTS = 5
    OFFSETS = 6
    OUTCOME = 7
    ZOMBIES = 8


@dataclass(frozen=True, slots=True)
class RandomStreams:
    """The streams of one seed; the same seed and stage give the same numbers on every machine."""

    seed: int

    def of(self, stage: Stage) -> np.random.Generator:
        """Return the stream of a stage, from its beginning."""
        return np.random.default_rng([self.seed, stage])
