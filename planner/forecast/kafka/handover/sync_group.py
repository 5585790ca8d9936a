"""The end of a classic round (3.2 steps 6 and 7): each member asks for its part, and not every one in time.

A cooperative member that has to give something up rejoins at once. A member that has not asked by then (SyncGroup) gets
REBALANCE_IN_PROGRESS: it learns nothing of this round, keeps what it has and rejoins, without another commit.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.handover.rebalance_context import RebalanceContext
from planner.forecast.kafka.membership.scenario import Booleans, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Syncs:
    """By trial and process: its SyncGroup reaches the coordinator (``asks``), and it knows its part (``synced``)."""

    asks: Floats
    synced: Floats


def find_syncs(context: RebalanceContext, inside: Booleans, barrier: Floats) -> Syncs:
    """Return the times of one round after its barrier, for those inside; the leader, any of them, assigns in between.

    A cooperative Java member reads answers between two polls only, as it goes on with its records; an eager one has
    none, and librdkafka reads them beside its application.
    """
    scenario, calibration, shape = context.scenario, context.calibration, inside.shape
    waits = np.array([process.is_cooperative for process in scenario.processes]) & scenario.request.is_java

    def handled(at: Floats) -> Floats:
        """Return when a member goes on that is answered at a moment."""
        at = at + context.trips(shape)
        return at + np.where(waits, context.in_hand(at), 0.0) + context.delay(calibration.handled_s)

    asks = handled(barrier[:, None])
    leader = np.where(inside, context.random.random(shape), -1.0).argmax(axis=1)
    assigned = np.take_along_axis(asks, leader[:, None], axis=1) + context.draw(calibration.assign_s, (shape[0], 1))
    return Syncs(asks, handled(np.maximum(asks, assigned)))


def find_missed_syncs(syncs: Syncs, inside: Booleans, revokes: Booleans, rejoins: Floats) -> Booleans:
    """Return which members asked too late: after the first one that gives something up had rejoined."""
    earliest = np.where(revokes, rejoins, np.inf).min(axis=1, initial=np.inf)
    late: Booleans = inside & (syncs.asks > earliest[:, None])
    return late
