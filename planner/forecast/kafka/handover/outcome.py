"""From tenures and deliveries to what anybody can observe: pause, stall, duplicates, burst, settle."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.changes import CRASH, CUT, FREEZE, SILENT
from planner.forecast.common.delay_ranges import draw_tailed
from planner.forecast.kafka.handover.offsets import Deliveries, first_fetch
from planner.forecast.kafka.handover.tenures import Tenures
from planner.forecast.kafka.handover.zombies import Zombies
from planner.forecast.kafka.membership.broker_outages import Outages
from planner.forecast.kafka.membership.poll_loops import PollLoops
from planner.forecast.kafka.membership.process_times import ProcessTimes
from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Floats, Indexes, Scenario
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """The member that owns each partition: ``before`` by partition, ``after`` by trial and partition."""

    before: Indexes
    after: Indexes

    @property
    def moves(self) -> Booleans:
        """Return where an owner hands over to another one."""
        moves: Booleans = (self.before != NOBODY) & (self.after != NOBODY) & (self.before != self.after)
        return moves


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """By trial and partition, seconds and records as the contract defines them.

    By trial: ``settle_s``, ``drained_s``, when no backlog is left (NaN: never), and ``unread_s``, the longest that
    nobody delivers some partition between two of the hands through which it passes.
    """

    pause_s: Floats
    duplicates: Floats
    burst: Floats
    settle_s: Floats
    drained_s: Floats
    unread_s: Floats


def observe(
    scenario: Scenario,
    owners: Owners,
    tenures: Tenures,
    deliveries: Deliveries,
    times: ProcessTimes,
    poll_loops: PollLoops,
    outages: Outages,
    zombies: Zombies,
    calibration: Calibration,
    random: np.random.Generator,
) -> Observed:
    """Return what an observer of all deliveries would see in each trial."""
    member = scenario.member_of[tenures.process]
    before = np.broadcast_to(owners.before, owners.after.shape)
    stays = before == owners.after
    suspended, resumed = _suspensions(scenario, tenures, times, calibration, random)
    rested = np.where(owners.moves, resumed, 0.0)  # a new owner that is restarted in its place
    suspended, resumed = np.maximum(suspended, outages.stall_s), np.maximum(resumed, outages.until_s)
    between, gap = (
        _between_owners(member, before, owners.after, tenures, deliveries, zombies),
        _longest_gap(tenures, deliveries),
    )
    pause = np.where(
        owners.moves,
        between,
        np.where(stays, np.maximum(gap, np.maximum(suspended, deliveries.delayed)), np.nan),
    )
    pause = np.where(before == NOBODY, np.nan, pause)
    first, start = _final_tenure(member, owners.after, tenures, deliveries)
    waits = np.isfinite(first)
    settled = np.where(waits, np.maximum(first, 0.0), 0.0)
    settled = np.where(stays & (suspended > 0), np.maximum(settled, resumed), settled)
    due = np.maximum(scenario.rates * settled - np.where(waits, start, 0.0), 0.0)
    burst = np.where((owners.moves | (before == NOBODY)) & waits, np.round(due), 0.0)
    redelivered = zombies.records + _restarted(scenario, times, poll_loops, owners, random)
    waiting = np.where(waits, due, scenario.lags + np.where(suspended > 0, scenario.rates * suspended, 0.0))
    gone = _find_drain_times(scenario, owners.after, settled, waiting, poll_loops)
    settle = np.maximum(settled, rested).max(axis=1, initial=0.0)
    return Observed(pause, deliveries.duplicates + redelivered, burst, settle, gone, gap.max(axis=1, initial=0.0))


def _between_owners(
    member: Indexes, before: Indexes, after: Indexes, tenures: Tenures, deliveries: Deliveries, zombies: Zombies
) -> Floats:
    """Return first delivery of the new owner less last one of the old owner, 0 where they overlap.

    What a resumed member delivers when the new owner has long begun does not undo the pause that was.
    """
    first = np.where(deliveries.delivers & (member == after), deliveries.first, np.inf).min(axis=0, initial=np.inf)
    last = np.where(deliveries.delivers & (member == before), tenures.revoked_at, -np.inf).max(axis=0, initial=-np.inf)
    last = np.where(zombies.until_s < first, np.maximum(last, zombies.until_s), last)
    known = np.isfinite(first) & np.isfinite(last)
    return np.where(known, np.maximum(np.where(known, first, 0.0) - np.where(known, last, 0.0), 0.0), np.nan)


def _longest_gap(tenures: Tenures, deliveries: Deliveries) -> Floats:
    """Return the longest time in which nobody delivers, between the first tenure and the last one."""
    longest = np.zeros(tenures.process.shape[1:])
    reached = np.full(longest.shape, np.inf)
    for number in range(len(tenures.process)):
        delivers, revoked_at = deliveries.delivers[number], tenures.revoked_at[number]
        waited = delivers & np.isfinite(reached) & np.isfinite(deliveries.first[number])
        gap = np.where(waited, deliveries.first[number], 0.0) - np.where(waited, reached, 0.0)
        longest = np.maximum(longest, gap)
        later = np.where(np.isfinite(reached), np.maximum(reached, revoked_at), revoked_at)
        reached = np.where(delivers, later, reached)
    return longest


def _final_tenure(member: Indexes, after: Indexes, tenures: Tenures, deliveries: Deliveries) -> tuple[Floats, Floats]:
    """Return when the final owner delivers for good, and from which offset; -inf where it did all along."""
    is_final = deliveries.delivers & np.isposinf(tenures.revoked_at) & (member == after)
    first = np.where(is_final, deliveries.first, -np.inf).max(axis=0, initial=-np.inf)
    start = np.where(is_final, deliveries.start, -np.inf).max(axis=0, initial=-np.inf)
    return first, start


def _suspensions(
    scenario: Scenario, tenures: Tenures, times: ProcessTimes, calibration: Calibration, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return how long each partition waits for an owner that sleeps and keeps it, and until when."""
    shape = tenures.process.shape[1:]
    suspended, resumed = _first_rests(scenario, tenures, times, calibration, random), np.zeros(shape)
    for index, process in enumerate(scenario.processes):
        if process.suspended_s is None:
            continue
        suspended_at, resumed_at = times.suspended_at[:, index, None], times.reads[:, index, None]
        if process.how not in (FREEZE, CUT):
            resumed_at = resumed_at + first_fetch(scenario, times, calibration, random)[:, index, None]
            resumed_at = resumed_at + draw_tailed(random, calibration.cold_fetch_s, (shape[0], 1))
        is_holding = (
            (tenures.process == index) & (tenures.assigned_at <= suspended_at) & (tenures.revoked_at > resumed_at)
        )
        mine = is_holding.any(axis=0) & times.outlives[:, index, None]
        suspended = np.where(mine, np.maximum(resumed_at - suspended_at, suspended), suspended)
        resumed = np.where(mine, resumed_at, resumed)
    return suspended, resumed


def _first_rests(
    scenario: Scenario, tenures: Tenures, times: ProcessTimes, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long each partition waits as its owner is restarted in its place for the first time."""
    shape = tenures.process.shape[1:]
    rests = np.array([*(process.rested_s is not None for process in scenario.processes), False])
    if not rests.any():
        return np.zeros(shape)
    processes = times.arrives.shape
    starts = draw_tailed(random, calibration.start_s, processes) + draw_tailed(
        random, calibration.cold_fetch_s, processes
    )
    took = np.append(starts + first_fetch(scenario, times, calibration, random), np.zeros((shape[0], 1)), axis=1)
    holder = np.where(np.isneginf(tenures.assigned_at[0]), tenures.process[0], NOBODY)
    rested_s: Floats = np.where(rests[holder], np.take_along_axis(took, np.maximum(holder, 0), axis=1), 0.0)
    return rested_s


def _restarted(
    scenario: Scenario, times: ProcessTimes, poll_loops: PollLoops, owners: Owners, random: np.random.Generator
) -> Floats:
    """Return what is redelivered to static members that were killed and are back before their session is over."""
    redelivered = np.zeros(owners.after.shape)
    for index, process in enumerate(scenario.processes):
        if process.suspended_s is not None and process.how in (CRASH, SILENT):
            mine = (owners.before == process.member) & times.outlives[:, index, None]
            redelivered += np.where(mine, poll_loops.consumed * times.unsaved_s[:, index, None], 0.0)
    return np.floor(redelivered + random.random(redelivered.shape)) if redelivered.any() else redelivered


def _find_drain_times(
    scenario: Scenario, after: Indexes, begins: Floats, waiting: Floats, poll_loops: PollLoops
) -> Floats:
    """Return by trial when the last member has worked off its backlog, NaN where one never does.

    ``begins``: since when its owner delivers a partition, ``waiting``: how many records lie there then. A loop works as
    long as anything waits in any of its partitions, so it is done when the sum is.
    """
    drained_s = np.zeros(len(after))
    for member in range(len(scenario.members)):
        mine = after == member
        if not mine.any():
            continue
        # Counted from the change: what waits for a partition that begins later has not come yet.
        arriving = np.where(mine, scenario.rates, 0.0).sum(axis=1)
        work = np.where(mine, waiting - scenario.rates * begins, 0.0).sum(axis=1)
        backlog = np.where(mine, np.floor(waiting), 0.0).sum(axis=1)
        starts = np.where(mine, begins, np.inf).min(axis=1)
        starts = np.where(np.isfinite(starts), starts, 0.0)
        spare = poll_loops.capacity - arriving
        gone = (work + poll_loops.capacity * starts) / np.where(spare > 0, spare, 1.0)
        gone = np.maximum(gone, np.where(mine, begins, 0.0).max(axis=1))
        grows = (spare < 0) | ((spare <= 0) & (backlog > 0))
        drained_s = np.maximum(drained_s, np.where(grows, np.nan, np.where(backlog > 0, gone, 0.0)))
    return drained_s
