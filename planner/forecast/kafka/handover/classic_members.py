"""Classic members of a group that has become one of the consumer protocol (3.6 D): they rejoin without a barrier.

A heartbeat's response makes a member rejoin as soon as the group has changed, whatever that means for it
(``classicGroupHeartbeatToConsumerGroup``, 4.3). Its JoinGroup and SyncGroup are answered at once, from the target. So
one with an eager assignor stops all it has for that long, and a cooperative one what it is to give up.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.handover.classic_protocol import commits_last
from planner.forecast.kafka.handover.rebalance_context import RebalanceContext
from planner.forecast.kafka.membership.scenario import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Rejoins:
    """By trial and process: it commits and rejoins (``rejoin_notified_at``), knows its part (``synced``).

    ``revoked_at``: it stops what it gives up, ``saved``: up to when it has committed that; ``freed``: the coordinator
    knows of it; ``served``: it knows what it is given for it.
    """

    rejoin_notified_at: Floats
    synced: Floats
    revoked_at: Floats
    saved: Floats
    freed: Floats
    served: Floats


def find_rejoins(context: RebalanceContext, rejoin_notified_at: Floats, since: Floats) -> Rejoins:
    """Return the rejoins of members that hear of a target; one that heard before ``since`` waits for it."""
    scenario, shape = context.scenario, rejoin_notified_at.shape
    cooperates = np.array([process.is_cooperative for process in scenario.processes])

    def answered(at: Floats) -> Floats:
        """Return when a member goes on that asks twice, first to join and then for its share."""
        trips = sum(context.trips(shape) for _ in range(2))
        return at + trips + context.delay(context.calibration.handled_s)

    synced = answered(np.maximum(rejoin_notified_at, since))
    revoked_at = np.where(cooperates, synced, rejoin_notified_at)
    freed = np.where(cooperates, synced, np.maximum(rejoin_notified_at, since)) + context.trips(shape)
    saved = np.where(cooperates & (not commits_last(scenario)), rejoin_notified_at, revoked_at)
    return Rejoins(rejoin_notified_at, synced, revoked_at, saved, freed, np.where(cooperates, answered(synced), synced))


def rejoin_notices(context: RebalanceContext, rejoins: Floats, waiting: Floats, beat: Floats, since: Floats) -> Floats:
    """Return when each member hears that it has to rejoin: once for all that changes before its next heartbeat.

    ``waiting``: when it rejoined in a round that the conversion has broken off, NEVER where it did not.
    """
    notified_at = beat + context.draw(context.calibration.notified_s, beat.shape) + context.trips(beat.shape)
    notified_at = np.maximum(notified_at, since)
    notified_at = notified_at + context.in_hand(notified_at)
    notified_at = np.where(rejoins > since, rejoins, notified_at)
    return np.where(np.isfinite(waiting), waiting, notified_at)
