"""Members that were given up while they stood still and go on as if nothing had been.

Who wakes polls before it hears that it is out: it works off one more answer, of records that others deliver as well.
Its commits are refused.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.forecast.common.changes import CUT, FREEZE
from planner.forecast.kafka.membership.poll_loops import Loops
from planner.forecast.kafka.membership.process_times import LifeTimes
from planner.forecast.kafka.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.kafka.request.settings import CLASSIC
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Zombies:
    """Records that a woken member delivers by trial and partition, and until when its partitions see it (else -inf)."""

    records: Floats
    until_s: Floats


def find_zombies(
    world: World, owners: Indexes, loops: Loops, times: LifeTimes, calibration: Calibration, random: np.random.Generator
) -> tuple[Zombies, LifeTimes]:
    """Return what woken members deliver, and the times in which they come back only after that."""
    shape = (world.request.trials, len(world.partitions))
    records, until, arrives = np.zeros(shape), np.full(shape, -np.inf), times.arrives.copy()
    for index, life in enumerate(world.lives):
        if life.how not in (FREEZE, CUT):
            continue
        expired, mine = np.isfinite(times.leaves[:, index]), owners == index
        if life.how == FREEZE:
            found = np.where(expired[:, None], _last_poll(world, mine, life.awake_s, calibration, random), 0)
        else:
            found = np.where(expired[:, None], _until_heard(world, mine, loops, times, index), 0)
        busy_s = found.sum(axis=1) / loops.capacity
        woken = np.where(expired, times.wakes[:, index], 0.0)
        records += found
        until = np.where(found > 0, (woken + busy_s)[:, None], until)
        for follower, one in enumerate(world.lives):
            if one.replaces == index:
                arrives[:, follower] += busy_s
    return Zombies(records, until), replace(times, arrives=arrives)


def _until_heard(world: World, mine: Booleans, loops: Loops, times: LifeTimes, index: int) -> Floats:
    """Return the records that a member gets again after a cut and before it hears that it is out.

    Answers to its fetches and to its heartbeats come by two connections, each at its own time. What a poll has returned
    it works off, whatever it hears meanwhile.
    """
    request = world.request
    reads, wakes = times.reads[:, index, None], times.wakes[:, index, None]
    due = np.where(mine, world.lags + world.rates * (wakes - times.sleeps[:, index, None]), 0.0)
    in_hand = request.settings.value("max.poll.records") if request.is_java else 1
    most = np.maximum(loops.capacity * (wakes - reads), in_hand)
    whole = np.maximum(due.sum(axis=1, keepdims=True), 1.0)
    return np.floor(np.where(wakes > reads, due * np.minimum(most / whole, 1.0), 0.0))


def _last_poll(
    world: World,
    mine: Booleans,
    slept_s: float | None,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return the records of one more poll, partition by partition in any order.

    The classic client fills the poll from all answers that have come meanwhile, the one of the consumer protocol often
    gets one partition's; librdkafka throws away what was fetched before the group said no.
    """
    request, shape = world.request, (world.request.trials, len(mine))
    due = np.where(mine, np.floor(world.lags + world.rates * (slept_s or 0.0)), 0.0)
    order = np.argsort(np.where(mine, random.random(shape), 2.0), axis=1)
    sorted_due = due[order]
    most = request.settings.value("max.poll.records") if request.is_java else 1
    polls = random.random((shape[0], 1)) < calibration.zombie_polls
    taken = np.clip(most - (np.cumsum(sorted_due, axis=1) - sorted_due), 0.0, sorted_due)
    if request.protocol != CLASSIC:
        gets_one = random.random((shape[0], 1)) < calibration.zombie_gets_one
        taken[:, 1:] = np.where(gets_one, 0.0, taken[:, 1:])
    found = np.empty(shape)
    np.put_along_axis(found, order, np.where(polls, taken, 0.0), axis=1)
    return found
