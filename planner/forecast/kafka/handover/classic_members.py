"""Classic members of a group that has become one of the consumer protocol (3.6 D): they rejoin without a barrier.

A heartbeat tells a member to rejoin as soon as the group has changed, whatever that means for it
(``classicGroupHeartbeatToConsumerGroup``, 4.3). Its JoinGroup and SyncGroup are answered at once, from the target. So
one with an eager assignor stops all it has for that long, and a cooperative one what it is to give up.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.handover.classic_protocol import commits_last
from planner.forecast.kafka.handover.rebalance_context import Scene
from planner.forecast.kafka.membership.scenario import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Rejoins:
    """By trial and life: it commits and rejoins (``heard``), knows its part (``synced``).

    ``dropped``: it stops what it gives up, ``saved``: up to when it has committed that; ``freed``: the coordinator
    knows of it; ``served``: it knows what it is given for it.
    """

    heard: Floats
    synced: Floats
    dropped: Floats
    saved: Floats
    freed: Floats
    served: Floats


def find_rejoins(scene: Scene, heard: Floats, since: Floats) -> Rejoins:
    """Return the rejoins of members that hear of a target; one that heard before ``since`` waits for it."""
    world, shape = scene.world, heard.shape
    cooperates = np.array([life.is_cooperative for life in world.lives])

    def answered(at: Floats) -> Floats:
        """Return when a member goes on that asks twice, first to join and then for its part."""
        trips = sum(scene.trips(shape) for _ in range(2))
        return at + trips + scene.delay(scene.calibration.handled_s)

    synced = answered(np.maximum(heard, since))
    dropped = np.where(cooperates, synced, heard)
    freed = np.where(cooperates, synced, np.maximum(heard, since)) + scene.trips(shape)
    saved = np.where(cooperates & (not commits_last(world)), heard, dropped)
    return Rejoins(heard, synced, dropped, saved, freed, np.where(cooperates, answered(synced), synced))


def hears(scene: Scene, rejoins: Floats, waiting: Floats, beat: Floats, since: Floats) -> Floats:
    """Return when each member hears that it has to rejoin: once for all that changes before its next heartbeat.

    ``waiting``: when it rejoined in a round that the conversion has broken off, NEVER where it did not.
    """
    told = beat + scene.draw(scene.calibration.told_s, beat.shape) + scene.trips(beat.shape)
    told = np.maximum(told, since)
    told = told + scene.in_hand(told)
    told = np.where(rejoins > since, rejoins, told)
    return np.where(np.isfinite(waiting), waiting, told)
