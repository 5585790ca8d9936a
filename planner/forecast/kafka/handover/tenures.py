"""Which process owns which partition from when to when, in every trial."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Floats, Indexes


@dataclass(frozen=True, slots=True, eq=False)
class Tenures:
    """By tenure, trial and partition, in the order of time: ``process`` owns it from ``assigned_at`` to ``revoked_at``.

    NOBODY where there is no such tenure. ``saved``: up to when what the tenure delivered was committed when it ended.
    """

    process: Indexes
    assigned_at: Floats
    revoked_at: Floats
    saved: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RoundTimes:
    """One round in the trials that have it (``played``): when it begins, when each member rejoins, when it is over.

    ``joins``: by process, NEVER for a process that does not; ``barrier``: all have rejoined.
    """

    played: Booleans
    begins: Floats
    joins: Floats
    barrier: Floats


@dataclass(frozen=True, slots=True, eq=False)
class MembershipTimeline:
    """The group's membership over time: tenures, a classic group's rounds, and by trial the number of the last
    state."""

    tenures: Tenures
    state: Indexes
    rounds: tuple[RoundTimes, ...] = ()


class TenureLog:
    """The tenures of all trials while they are found: open ones, and those that have ended."""

    def __init__(self, owners: Indexes, trials: int) -> None:
        self.process = np.broadcast_to(owners, (trials, len(owners))).copy()
        self.assigned_at = np.where(self.process == NOBODY, np.inf, -np.inf)
        self._ended: list[tuple[Indexes, Floats, Floats, Floats]] = []

    def end(self, where: Booleans, revoked_at: Floats, saved: Floats) -> None:
        """End the open tenures in these cells."""
        if not (where & (self.process != NOBODY)).any():
            return
        self._ended.append((np.where(where, self.process, NOBODY), self.assigned_at.copy(), revoked_at, saved))
        self.process = np.where(where, NOBODY, self.process)

    def begin(self, where: Booleans, process: Indexes, assigned_at: Floats) -> None:
        """Begin tenures in these cells, where none is open."""
        self.process = np.where(where, process, self.process)
        self.assigned_at = np.where(where, assigned_at, self.assigned_at)

    def forget(self, where: Booleans) -> None:
        """Take back open tenures that never began."""
        self.process = np.where(where, NOBODY, self.process)

    def close(self, stops: Floats, unsaved_s: Floats) -> Tenures:
        """Return all tenures; the open ones last for ever, or as long as their process."""
        holder = np.maximum(self.process, 0)
        revoked_at = np.take_along_axis(stops, holder, axis=1)
        saved = revoked_at - np.take_along_axis(unsaved_s, holder, axis=1)
        everything = [*self._ended, (self.process, self.assigned_at, revoked_at, saved)]
        process, assigned_at, ended, kept = (np.array(column) for column in zip(*everything, strict=True))
        return Tenures(process, assigned_at, np.maximum(ended, assigned_at), np.minimum(kept, ended))
