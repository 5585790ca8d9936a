"""When each member looks anew, from what wakes it: ``RebalanceService#run``, stepped for all trials at once."""

from dataclasses import dataclass

import numpy as np

from planner.errors import BadInputError
from planner.forecast.common.delay_ranges import spread
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, LifeTimes
from planner.forecast.rocketmq.membership.scenario import Floats, World
from planner.forecast.rocketmq.timing import Calibration

MOST_LOOKS = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """``at``: seconds of every look by trial, life and number (NEVER where there are fewer).

    ``query_s`` is how long a member list request of each life takes: topic j is answered j + 1 of them after the look.
    ``reached``: before it brokers that a life is cut off from do not answer it (``LifeTimes``).
    """

    at: Floats
    query_s: Floats
    reached: Floats


def member_looks(
    world: World,
    times: LifeTimes,
    wakes: Floats,
    ready: Floats,
    until: Floats,
    first_change: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Looks:
    """Return every look from the first change on, up to each member's first one after ``until`` (trials, lives).

    ``ready`` is when a process that starts has registered everywhere and wakes itself.
    A look happens when a notification or the tick comes, but not before the gap since the last one is over; every
    wake-up restarts the wait, so one notification sets all members' ticks to one phase.
    """
    gap, wait = world.traits.gap_s, world.traits.tick_s
    shape = wakes.shape[:2]
    query_s = spread(random, calibration.query_s, shape)
    round_s = query_s * len(world.topics)
    starts_later = np.isfinite(times.heartbeat)
    is_new = starts_later & (world.resumed < 0)
    due = np.where(starts_later, ready, _first_ticks(world, first_change, shape, calibration, random))
    last = np.where(starts_later, times.constructed, due - wait)
    seen = np.where(starts_later, ALWAYS, last)
    found: list[Floats] = []
    width = wakes.shape[2] + 1
    padded = np.concatenate([wakes, np.full((*shape, 1), NEVER)], axis=2).ravel()
    place = np.arange(seen.size).reshape(shape) * width
    last_place = place + width - 1
    while True:
        # ``seen`` only grows, so the first wake-up after it is never before the one of last time.
        while (is_over := (padded.take(place) <= seen) & (place < last_place)).any():
            place = place + is_over
        told = padded.take(place)
        at = np.maximum(np.minimum(told, due), last + gap)
        # A process that starts is told of itself at once, and takes its time for its first look.
        at = np.where(is_new & (seen == ALWAYS), np.maximum(at, ready), at)
        at = np.where((seen <= until) & (at < times.ended), at, NEVER)
        going = np.isfinite(at)
        if not going.any():
            break
        found.append(at)
        if len(found) > MOST_LOOKS:
            raise BadInputError(f"change: takes more than {MOST_LOOKS} looks of one member; shorten its intervals")
        seen = np.where(going, at, NEVER)
        last = np.where(going, at + round_s, last)
        due = np.where(going, last + wait, due)
    at = np.stack(found, axis=2) if found else np.full((*shape, 0), NEVER)
    return Looks(at, query_s[:, :, None], times.reached[:, :, None])


def _first_ticks(
    world: World,
    first_change: Floats,
    shape: tuple[int, ...],
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return each member's first tick after the first change; the ticks before it find what is there already.

    Notifications set all members to one phase, other than those that look whenever they may: they go by their starts.
    """
    wait = world.traits.tick_s
    phase = random.random(shape if world.request.is_never_balanced else (shape[0], 1)) * wait
    jitter = np.minimum(spread(random, calibration.tick_jitter_s, shape), wait)
    return first_change[:, None] + (phase + jitter) % wait
