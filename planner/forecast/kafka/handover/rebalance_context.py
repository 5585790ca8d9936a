"""``RebalanceContext``: what stays as it is while the membership of a group is played, by whichever protocol."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import DelayRange, draw_evenly
from planner.forecast.kafka.handover.assignments import Assignments
from planner.forecast.kafka.membership.poll_loops import PollLoops
from planner.forecast.kafka.membership.process_times import ProcessTimes
from planner.forecast.kafka.membership.scenario import NOBODY, Floats, Indexes, Scenario
from planner.forecast.kafka.membership.unknown_ids import Names
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class RebalanceContext:
    """The members' names and processes, what they would be assigned, and how long things take; chance is
    ``random``'s."""

    scenario: Scenario
    names: Names
    assignments: Assignments
    times: ProcessTimes
    poll_loops: PollLoops
    calibration: Calibration
    random: np.random.Generator

    def holders(self) -> Indexes:
        """Return the process that holds each partition before the change, of those that are in the group then."""
        owners = self.assignments.owners(0)
        inside = np.append(np.isneginf(self.times.arrives).all(axis=0), False)
        return np.where(inside[owners], owners, NOBODY)

    def draw(self, bounds: DelayRange, shape: tuple[int, ...]) -> Floats:
        """Return even draws between two bounds, of a shape."""
        return draw_evenly(self.random, bounds, shape)

    def trips(self, shape: tuple[int, ...]) -> Floats:
        """Return the seconds that requests take from a member to the coordinator, or answers back."""
        return self.draw(self.calibration.trip_s, shape)

    def delay(self, bounds: DelayRange) -> Floats:
        """Return what members take between two bounds, by trial and process (``ProcessTimes.delay``)."""
        return self.times.delay(self.random, bounds)

    def in_hand(self, at: Floats) -> Floats:
        """Return how long members go on with the records that they have at a moment (``PollLoops.in_hand``)."""
        return self.poll_loops.in_hand(self.random, at)

    def until_poll(self, at: Floats) -> Floats:
        """Return how long it is to their next poll (``PollLoops.until_poll``)."""
        return self.poll_loops.until_poll(self.random, at)
