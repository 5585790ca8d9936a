"""When each member rebalances, from its notifications and its clock: ``RebalanceService#run``, stepped for all trials
at once."""

from dataclasses import dataclass

import numpy as np

from planner.errors import BadInputError
from planner.forecast.common.delay_ranges import draw_evenly
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, ProcessTimes
from planner.forecast.rocketmq.membership.scenario import Floats, Scenario
from planner.forecast.rocketmq.timing import Calibration

MOST_REBALANCES = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Rebalances:
    """``at``: seconds of every rebalance by trial, process and number (NEVER where there are fewer).

    ``query_s`` is how long a member list request of each process takes: topic j is answered j + 1 of them after the
    rebalance. ``reached``: before it brokers that a process is cut off from do not answer it (``ProcessTimes``).
    """

    at: Floats
    query_s: Floats
    reached: Floats


def member_rebalances(
    scenario: Scenario,
    times: ProcessTimes,
    notified: Floats,
    ready: Floats,
    until: Floats,
    first_change: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Rebalances:
    """Return every rebalance from the first change on, up to each member's first one after ``until`` (trials,
    processes).

    ``ready`` is when a process that starts has registered everywhere and notifies itself.
    A rebalance happens when a notification or the tick comes, but not before the gap since the last one is over; every
    notification restarts the wait, so one notification sets all members' ticks to one phase.
    """
    gap, wait = scenario.behaviour.gap_s, scenario.behaviour.tick_s
    shape = notified.shape[:2]
    query_s = draw_evenly(random, calibration.query_s, shape)
    round_s = query_s * len(scenario.topics)
    starts_later = np.isfinite(times.heartbeat)
    is_new = starts_later & (scenario.resumed < 0)
    due = np.where(starts_later, ready, _first_ticks(scenario, first_change, shape, calibration, random))
    last = np.where(starts_later, times.constructed, due - wait)
    last_at = np.where(starts_later, ALWAYS, last)
    moments: list[Floats] = []
    width = notified.shape[2] + 1
    padded = np.concatenate([notified, np.full((*shape, 1), NEVER)], axis=2).ravel()
    index = np.arange(last_at.size).reshape(shape) * width
    last_index = index + width - 1
    while True:
        # ``last_at`` only grows, so the first notification after it is never before the one of last time.
        while (is_over := (padded.take(index) <= last_at) & (index < last_index)).any():
            index = index + is_over
        notified_at = padded.take(index)
        at = np.maximum(np.minimum(notified_at, due), last + gap)
        # A process that starts is notified of itself at once, and takes its time for its first rebalance.
        at = np.where(is_new & (last_at == ALWAYS), np.maximum(at, ready), at)
        at = np.where((last_at <= until) & (at < times.ended), at, NEVER)
        going = np.isfinite(at)
        if not going.any():
            break
        moments.append(at)
        if len(moments) > MOST_REBALANCES:
            raise BadInputError(f"change: takes more than {MOST_REBALANCES} looks of one member; shorten its intervals")
        last_at = np.where(going, at, NEVER)
        last = np.where(going, at + round_s, last)
        due = np.where(going, last + wait, due)
    at = np.stack(moments, axis=2) if moments else np.full((*shape, 0), NEVER)
    return Rebalances(at, query_s[:, :, None], times.reached[:, :, None])


def _first_ticks(
    scenario: Scenario,
    first_change: Floats,
    shape: tuple[int, ...],
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return each member's first tick after the first change; the ticks before it find what is there already.

    Notifications set all members to one phase, other than those that rebalance whenever they may: they go by their
    starts.
    """
    wait = scenario.behaviour.tick_s
    phase = random.random(shape if scenario.request.is_never_balanced else (shape[0], 1)) * wait
    jitter = np.minimum(draw_evenly(random, calibration.tick_jitter_s, shape), wait)
    return first_change[:, None] + (phase + jitter) % wait
