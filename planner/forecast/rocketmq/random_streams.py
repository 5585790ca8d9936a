"""Random numbers, one stream a stage, so that a stage that runs twice draws the same and none disturbs another."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Stage(IntEnum):
    """What draws."""

    NAMES = 0
    PROCESSES = 1
    REGISTRATIONS = 2
    ROUTES = 3
    RETURNS = 4
    CONNECTIONS = 5
    NOTIFICATIONS = 6
    REBALANCES = 7
    VIEWS = 8
    LOCKS = 9
    PULLS = 10
    OFFSETS = 11
    OUTCOME = 12
    FIRST_REBALANCES = 13
    COMMITS = 14
    RETRIES = 15
    INFLOW = 16
    HEARTBEATS = 17


@dataclass(frozen=True, slots=True)
class RandomStreams:
    """The streams of one seed; the same seed, stage and part give the same numbers on every machine."""

    seed: int

    def of(self, stage: Stage, number: int = 0) -> np.random.Generator:
        """Return the stream of a stage, from its beginning."""
        return np.random.default_rng([self.seed, stage, number])
