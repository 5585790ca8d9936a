"""Classic members of a group that has become one of the consumer protocol (3.6 D): they rejoin without a barrier.

A heartbeat tells a member to rejoin as soon as the group has changed, whatever that means for it
(``classicGroupHeartbeatToConsumerGroup``, 4.3). Its JoinGroup and SyncGroup are answered at once, from the target. So
one with an eager assignor stops all it has for that long, and a cooperative one what it is to give up.
"""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.kafka.lives import LifeTimes
from planner.simulation.dynamics.kafka.loops import Loops
from planner.simulation.dynamics.kafka.timing import Calibration
from planner.simulation.dynamics.kafka.world import Floats, World
from planner.simulation.dynamics.spreads import spread


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


def find_rejoins(
    world: World,
    heard: Floats,
    since: Floats,
    times: LifeTimes,
    calibration: Calibration,
    random: np.random.Generator,
) -> Rejoins:
    """Return the rejoins of members that hear of a target; one that heard before ``since`` waits for it."""
    shape = heard.shape
    cooperates = np.array([life.is_cooperative for life in world.lives])

    def answered(at: Floats) -> Floats:
        """Return when a member goes on that asks twice, first to join and then for its part."""
        trips = sum(spread(random, calibration.trip_s, shape) for _ in range(2))
        return at + trips + times.delay(random, calibration.handled_s)

    synced = answered(np.maximum(heard, since))
    dropped = np.where(cooperates, synced, heard)
    freed = np.where(cooperates, synced, np.maximum(heard, since)) + spread(random, calibration.trip_s, shape)
    saved = np.where(cooperates & ~world.request.commits_on_revoke, heard, dropped)
    return Rejoins(heard, synced, dropped, saved, freed, np.where(cooperates, answered(synced), synced))


def hears(
    group_rejoins: Floats,
    waiting: Floats,
    beat: Floats,
    since: Floats,
    loops: Loops,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return when each member hears that it has to rejoin: once for all that changes before its next heartbeat.

    ``waiting``: when it rejoined in a round that the conversion has broken off, NEVER where it did not.
    """
    shape = beat.shape
    told = beat + spread(random, calibration.told_s, shape) + spread(random, calibration.trip_s, shape)
    told = np.maximum(told, since)
    told = told + loops.in_hand(random, told)
    told = np.where(group_rejoins > since, group_rejoins, told)
    return np.where(np.isfinite(waiting), waiting, told)
