"""Who holds which partition from when to when, in every trial."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Floats, Indexes


@dataclass(frozen=True, slots=True, eq=False)
class Holds:
    """By hold, trial and partition, in the order of time: ``life`` holds it from ``gained`` to ``dropped``.

    NOBODY where there is no such hold. ``saved``: up to when what the hold delivered was committed when it ended.
    """

    life: Indexes
    gained: Floats
    dropped: Floats
    saved: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RoundTimes:
    """One round in the trials that have it (``played``): when it begins, who rejoins when, when it is over.

    ``joins``: by life, NEVER for who does not; ``barrier``: all have rejoined.
    """

    played: Booleans
    begins: Floats
    joins: Floats
    barrier: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """What the group goes through: holds, a classic group's rounds, and by trial the number of the last state."""

    holds: Holds
    state: Indexes
    rounds: tuple[RoundTimes, ...] = ()


class HoldBook:
    """The holds of all trials while they are found: open ones, and those that have ended."""

    def __init__(self, owners: Indexes, trials: int) -> None:
        self.life = np.broadcast_to(owners, (trials, len(owners))).copy()
        self.gained = np.where(self.life == NOBODY, np.inf, -np.inf)
        self._ended: list[tuple[Indexes, Floats, Floats, Floats]] = []

    def end(self, where: Booleans, dropped: Floats, saved: Floats) -> None:
        """End the open holds at these places."""
        if not (where & (self.life != NOBODY)).any():
            return
        self._ended.append((np.where(where, self.life, NOBODY), self.gained.copy(), dropped, saved))
        self.life = np.where(where, NOBODY, self.life)

    def begin(self, where: Booleans, life: Indexes, gained: Floats) -> None:
        """Begin holds at these places, where none is open."""
        self.life = np.where(where, life, self.life)
        self.gained = np.where(where, gained, self.gained)

    def forget(self, where: Booleans) -> None:
        """Take back open holds that never began."""
        self.life = np.where(where, NOBODY, self.life)

    def close(self, stops: Floats, unsaved_s: Floats) -> Holds:
        """Return all holds; the open ones last for ever, or as long as their life."""
        held = np.maximum(self.life, 0)
        dropped = np.take_along_axis(stops, held, axis=1)
        saved = dropped - np.take_along_axis(unsaved_s, held, axis=1)
        everything = [*self._ended, (self.life, self.gained, dropped, saved)]
        life, gained, ended, kept = (np.array(part) for part in zip(*everything, strict=True))
        return Holds(life, gained, np.maximum(ended, gained), np.minimum(kept, ended))
