"""Members that were given up while they stood still and go on as if nothing had been.

A member that resumes polls before it hears that it is out: it works off one more answer, of records that others deliver
as well. Its commits are refused.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.forecast.common.changes import CUT, FREEZE
from planner.forecast.kafka.membership.poll_loops import PollLoops
from planner.forecast.kafka.membership.process_times import ProcessTimes
from planner.forecast.kafka.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.kafka.request.settings import CLASSIC
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Zombies:
    """Records that a resumed member delivers by trial and partition, and until when its partitions see it (else
    -inf)."""

    records: Floats
    until_s: Floats


def find_zombies(
    scenario: Scenario,
    owners: Indexes,
    poll_loops: PollLoops,
    times: ProcessTimes,
    calibration: Calibration,
    random: np.random.Generator,
) -> tuple[Zombies, ProcessTimes]:
    """Return what resumed members deliver, and the times in which they come back only after that."""
    shape = (scenario.request.trials, len(scenario.partitions))
    records, until, arrives = np.zeros(shape), np.full(shape, -np.inf), times.arrives.copy()
    for index, process in enumerate(scenario.processes):
        if process.how not in (FREEZE, CUT):
            continue
        expired, mine = np.isfinite(times.leaves[:, index]), owners == index
        if process.how == FREEZE:
            delivered = np.where(
                expired[:, None], _last_poll(scenario, mine, process.resumed_s, calibration, random), 0
            )
        else:
            delivered = np.where(expired[:, None], _until_fenced(scenario, mine, poll_loops, times, index), 0)
        busy_s = delivered.sum(axis=1) / poll_loops.capacity
        resumed = np.where(expired, times.resumed_at[:, index], 0.0)
        records += delivered
        until = np.where(delivered > 0, (resumed + busy_s)[:, None], until)
        for follower, successor in enumerate(scenario.processes):
            if successor.replaces == index:
                arrives[:, follower] += busy_s
    return Zombies(records, until), replace(times, arrives=arrives)


def _until_fenced(scenario: Scenario, mine: Booleans, poll_loops: PollLoops, times: ProcessTimes, index: int) -> Floats:
    """Return the records that a member gets again after a cut and before it hears that it is out.

    Answers to its fetches and to its heartbeats come by two connections, each at its own time. What a poll has returned
    it works off, whatever it hears meanwhile.
    """
    request = scenario.request
    reads, resumed_at = times.reads[:, index, None], times.resumed_at[:, index, None]
    due = np.where(mine, scenario.lags + scenario.rates * (resumed_at - times.suspended_at[:, index, None]), 0.0)
    in_hand = request.settings.value("max.poll.records") if request.is_java else 1
    most = np.maximum(poll_loops.capacity * (resumed_at - reads), in_hand)
    whole = np.maximum(due.sum(axis=1, keepdims=True), 1.0)
    return np.floor(np.where(resumed_at > reads, due * np.minimum(most / whole, 1.0), 0.0))


def _last_poll(
    scenario: Scenario,
    mine: Booleans,
    suspended_s: float | None,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return the records of one more poll, partition by partition in any order.

    The classic client fills the poll from all answers that have come meanwhile, the one of the consumer protocol often
    gets one partition's; librdkafka throws away what was fetched before the group said no.
    """
    request, shape = scenario.request, (scenario.request.trials, len(mine))
    due = np.where(mine, np.floor(scenario.lags + scenario.rates * (suspended_s or 0.0)), 0.0)
    order = np.argsort(np.where(mine, random.random(shape), 2.0), axis=1)
    sorted_due = due[order]
    most = request.settings.value("max.poll.records") if request.is_java else 1
    polls = random.random((shape[0], 1)) < calibration.zombie_polls
    taken = np.clip(most - (np.cumsum(sorted_due, axis=1) - sorted_due), 0.0, sorted_due)
    if request.protocol != CLASSIC:
        gets_single = random.random((shape[0], 1)) < calibration.zombie_gets_single
        taken[:, 1:] = np.where(gets_single, 0.0, taken[:, 1:])
    records = np.empty(shape)
    np.put_along_axis(records, order, np.where(polls, taken, 0.0), axis=1)
    return records
