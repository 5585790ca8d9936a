"""``Scene``: what stays as it is while the course of a group is played, by whichever protocol."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import Spread, spread
from planner.forecast.kafka.handover.assignments import Assignments
from planner.forecast.kafka.membership.poll_loops import Loops
from planner.forecast.kafka.membership.process_times import LifeTimes
from planner.forecast.kafka.membership.scenario import NOBODY, Floats, Indexes, World
from planner.forecast.kafka.membership.unknown_ids import Names
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The members' names and lives, what they would be assigned, and how long things take; chance is ``random``'s."""

    world: World
    names: Names
    assignments: Assignments
    times: LifeTimes
    loops: Loops
    calibration: Calibration
    random: np.random.Generator

    def holders(self) -> Indexes:
        """Return the life that holds each partition before the change, of those that are in the group then."""
        owners = self.assignments.owners(0)
        inside = np.append(np.isneginf(self.times.arrives).all(axis=0), False)
        return np.where(inside[owners], owners, NOBODY)

    def draw(self, ends: Spread, shape: tuple[int, ...]) -> Floats:
        """Return even draws between two ends, of a shape."""
        return spread(self.random, ends, shape)

    def trips(self, shape: tuple[int, ...]) -> Floats:
        """Return the seconds that requests take from a member to the coordinator, or answers back."""
        return self.draw(self.calibration.trip_s, shape)

    def delay(self, ends: Spread) -> Floats:
        """Return what members take between two ends, by trial and life (``LifeTimes.delay``)."""
        return self.times.delay(self.random, ends)

    def in_hand(self, at: Floats) -> Floats:
        """Return how long members go on with the records that they have at a moment (``Loops.in_hand``)."""
        return self.loops.in_hand(self.random, at)

    def until_poll(self, at: Floats) -> Floats:
        """Return how long it is to their next poll (``Loops.until_poll``)."""
        return self.loops.until_poll(self.random, at)
