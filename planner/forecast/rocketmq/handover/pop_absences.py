"""POP: clients that stand still or are cut off, and come back."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.changes import FREEZE
from planner.forecast.common.delay_ranges import tailed
from planner.forecast.rocketmq.handover.tenures import Holds
from planner.forecast.rocketmq.membership.process_times import NEVER, LifeTimes
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, World
from planner.forecast.rocketmq.timing import LEAST_SERVICE_S, POP_TIMEOUT_S, Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Absence:
    """By hold, of its holder where it stands still or is cut off as the hold ends, and comes back.

    ``reads_s``: when it reads again, NEVER for all others; ``unacknowledged``: odds that a call that ran then is not
    acknowledged in time; ``reads``: it reads, and calls in time, what a broker has answered meanwhile. Of a client that
    is cut off from some brokers only those holds end that are of their queues.
    """

    reads_s: Floats
    unacknowledged: Floats
    reads: Booleans


def find_absence(
    world: World, times: LifeTimes, holds: Holds, calibration: Calibration, random: np.random.Generator
) -> Absence:
    """Return who comes back after which holds.

    A client calls and acknowledges nothing that it popped ``popInvisibleTime`` ago (``ConsumeRequest#isPopTimeout``).
    The calls of a process that stood still are taken to wait, not to compute: they are over as it wakes. Who is cut off
    goes on calling. TCP sends its acknowledgements again when the network is back, unless it closed the connection.
    """
    shape = (world.request.trials, len(world.lives))
    back = np.full(shape, NEVER)
    for index in np.flatnonzero(world.resumed >= 0).tolist():
        back[:, world.resumed[index]] = times.heartbeat[:, index]
    back = np.where(world.severed.any(axis=1), times.reached, back)
    back_s = np.where(holds.dies, times.of_holders(back, holds.life), NEVER)
    away_s = back_s - np.where(np.isfinite(back_s), holds.dropped, 0.0)
    invisible_s, service_s = world.request.settings.seconds("popInvisibleTime"), world.request.service_time_s
    too_late = np.clip((away_s + service_s - invisible_s) / max(service_s, LEAST_SERVICE_S), 0.0, 1.0)
    given_up = np.isfinite(times.closed)
    frozen = np.array([life.how == FREEZE for life in world.lives])
    lost = frozen & (back >= POP_TIMEOUT_S) & (random.random(shape) < calibration.woken_pull_lost)
    is_closed, is_lost = (times.of_holders(part, holds.life) for part in (given_up, given_up | lost))
    reads_s = back_s + tailed(random, calibration.woken_pull_s, back_s.shape)
    return Absence(reads_s, np.where(is_closed, 1.0, too_late), (away_s < invisible_s) & ~is_lost)
