"""POP: clients that stand still or are cut off, and come back."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.changes import FREEZE
from planner.forecast.common.delay_ranges import draw_tailed
from planner.forecast.rocketmq.handover.tenures import Tenures
from planner.forecast.rocketmq.membership.process_times import NEVER, ProcessTimes
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Scenario
from planner.forecast.rocketmq.timing import LEAST_SERVICE_S, POP_TIMEOUT_S, Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Absence:
    """By tenure, of its holder where it stands still or is cut off as the tenure ends, and comes back.

    ``reads_s``: when it reads again, NEVER for all others; ``unacknowledged``: odds that a call that ran then is not
    acknowledged in time; ``reads``: it reads, and calls in time, what a broker has answered meanwhile. Of a client that
    is cut off from some brokers only those tenures end that are of their queues.
    """

    reads_s: Floats
    unacknowledged: Floats
    reads: Booleans


def find_absence(
    scenario: Scenario, times: ProcessTimes, tenures: Tenures, calibration: Calibration, random: np.random.Generator
) -> Absence:
    """Return which clients come back after which tenures.

    A client calls and acknowledges nothing that it popped ``popInvisibleTime`` ago (``ConsumeRequest#isPopTimeout``).
    The calls of a process that stood still are taken to wait, not to compute: they are over as it resumes. A client
    that is cut off goes on calling. TCP sends its acknowledgements again when the network is back, unless it closed the
    connection.
    """
    shape = (scenario.request.trials, len(scenario.processes))
    back = np.full(shape, NEVER)
    for index in np.flatnonzero(scenario.resumed >= 0).tolist():
        back[:, scenario.resumed[index]] = times.heartbeat[:, index]
    back = np.where(scenario.partitioned.any(axis=1), times.reached, back)
    back_s = np.where(tenures.dies, times.of_holders(back, tenures.process), NEVER)
    away_s = back_s - np.where(np.isfinite(back_s), tenures.dropped, 0.0)
    invisible_s, service_s = scenario.request.settings.seconds("popInvisibleTime"), scenario.request.service_time_s
    too_late = np.clip((away_s + service_s - invisible_s) / max(service_s, LEAST_SERVICE_S), 0.0, 1.0)
    given_up = np.isfinite(times.closed)
    frozen = np.array([process.how == FREEZE for process in scenario.processes])
    lost = frozen & (back >= POP_TIMEOUT_S) & (random.random(shape) < calibration.resumed_pull_lost)
    is_closed, is_lost = (times.of_holders(values, tenures.process) for values in (given_up, given_up | lost))
    reads_s = back_s + draw_tailed(random, calibration.resumed_pull_s, back_s.shape)
    return Absence(reads_s, np.where(is_closed, 1.0, too_late), (away_s < invisible_s) & ~is_lost)
