"""From holds and deliveries to what anybody can observe: pause, stall, duplicates, burst, settle."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.changes import CRASH, CUT, FREEZE, SILENT
from planner.forecast.common.delay_ranges import tailed
from planner.forecast.kafka.handover.offsets import Deliveries, first_fetch
from planner.forecast.kafka.handover.tenures import Holds
from planner.forecast.kafka.handover.zombies import Zombies
from planner.forecast.kafka.membership.broker_outages import Outages
from planner.forecast.kafka.membership.poll_loops import Loops
from planner.forecast.kafka.membership.process_times import LifeTimes
from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Floats, Indexes, World
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
    world: World,
    owners: Owners,
    holds: Holds,
    found: Deliveries,
    times: LifeTimes,
    loops: Loops,
    outages: Outages,
    zombies: Zombies,
    calibration: Calibration,
    random: np.random.Generator,
) -> Observed:
    """Return what an observer of all deliveries would see in each trial."""
    member = world.member_of[holds.life]
    before = np.broadcast_to(owners.before, owners.after.shape)
    stays = before == owners.after
    slept, woken = _sleeps(world, holds, times, calibration, random)
    rested = np.where(owners.moves, woken, 0.0)  # a new owner that is restarted in its place
    slept, woken = np.maximum(slept, outages.stall_s), np.maximum(woken, outages.until_s)
    between, gap = _between_owners(member, before, owners.after, holds, found, zombies), _longest_gap(holds, found)
    pause = np.where(
        owners.moves,
        between,
        np.where(stays, np.maximum(gap, np.maximum(slept, found.delayed)), np.nan),
    )
    pause = np.where(before == NOBODY, np.nan, pause)
    first, start = _final_hold(member, owners.after, holds, found)
    waits = np.isfinite(first)
    settled = np.where(waits, np.maximum(first, 0.0), 0.0)
    settled = np.where(stays & (slept > 0), np.maximum(settled, woken), settled)
    due = np.maximum(world.rates * settled - np.where(waits, start, 0.0), 0.0)
    burst = np.where((owners.moves | (before == NOBODY)) & waits, np.round(due), 0.0)
    again = zombies.records + _restarted(world, times, loops, owners, random)
    waiting = np.where(waits, due, world.lags + np.where(slept > 0, world.rates * slept, 0.0))
    gone = _drained(world, owners.after, settled, waiting, loops)
    settle = np.maximum(settled, rested).max(axis=1, initial=0.0)
    return Observed(pause, found.duplicates + again, burst, settle, gone, gap.max(axis=1, initial=0.0))


def _between_owners(
    member: Indexes, before: Indexes, after: Indexes, holds: Holds, found: Deliveries, zombies: Zombies
) -> Floats:
    """Return first delivery of the new owner less last one of the old owner, 0 where they overlap.

    What a woken member delivers when the new owner has long begun does not undo the pause that was.
    """
    first = np.where(found.delivers & (member == after), found.first, np.inf).min(axis=0, initial=np.inf)
    last = np.where(found.delivers & (member == before), holds.dropped, -np.inf).max(axis=0, initial=-np.inf)
    last = np.where(zombies.until_s < first, np.maximum(last, zombies.until_s), last)
    known = np.isfinite(first) & np.isfinite(last)
    return np.where(known, np.maximum(np.where(known, first, 0.0) - np.where(known, last, 0.0), 0.0), np.nan)


def _longest_gap(holds: Holds, found: Deliveries) -> Floats:
    """Return the longest time in which nobody delivers, between the first hold and the last one."""
    longest = np.zeros(holds.life.shape[1:])
    reached = np.full(longest.shape, np.inf)
    for number in range(len(holds.life)):
        delivers, dropped = found.delivers[number], holds.dropped[number]
        waited = delivers & np.isfinite(reached) & np.isfinite(found.first[number])
        gap = np.where(waited, found.first[number], 0.0) - np.where(waited, reached, 0.0)
        longest = np.maximum(longest, gap)
        later = np.where(np.isfinite(reached), np.maximum(reached, dropped), dropped)
        reached = np.where(delivers, later, reached)
    return longest


def _final_hold(member: Indexes, after: Indexes, holds: Holds, found: Deliveries) -> tuple[Floats, Floats]:
    """Return when the final owner delivers for good, and from which offset; -inf where it did all along."""
    is_final = found.delivers & np.isposinf(holds.dropped) & (member == after)
    first = np.where(is_final, found.first, -np.inf).max(axis=0, initial=-np.inf)
    start = np.where(is_final, found.start, -np.inf).max(axis=0, initial=-np.inf)
    return first, start


def _sleeps(
    world: World, holds: Holds, times: LifeTimes, calibration: Calibration, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return how long each partition waits for an owner that sleeps and keeps it, and until when."""
    shape = holds.life.shape[1:]
    slept, woken = _first_rests(world, holds, times, calibration, random), np.zeros(shape)
    for index, life in enumerate(world.lives):
        if life.asleep_s is None:
            continue
        sleeps, wakes = times.sleeps[:, index, None], times.reads[:, index, None]
        if life.how not in (FREEZE, CUT):
            wakes = wakes + first_fetch(world, times, calibration, random)[:, index, None]
            wakes = wakes + tailed(random, calibration.cold_fetch_s, (shape[0], 1))
        holding = (holds.life == index) & (holds.gained <= sleeps) & (holds.dropped > wakes)
        mine = holding.any(axis=0) & times.outlives[:, index, None]
        slept = np.where(mine, np.maximum(wakes - sleeps, slept), slept)
        woken = np.where(mine, wakes, woken)
    return slept, woken


def _first_rests(
    world: World, holds: Holds, times: LifeTimes, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long each partition waits as its owner is restarted in its place for the first time."""
    shape = holds.life.shape[1:]
    rests = np.array([*(life.rested_s is not None for life in world.lives), False])
    if not rests.any():
        return np.zeros(shape)
    lives = times.arrives.shape
    starts = tailed(random, calibration.start_s, lives) + tailed(random, calibration.cold_fetch_s, lives)
    took = np.append(starts + first_fetch(world, times, calibration, random), np.zeros((shape[0], 1)), axis=1)
    holder = np.where(np.isneginf(holds.gained[0]), holds.life[0], NOBODY)
    found: Floats = np.where(rests[holder], np.take_along_axis(took, np.maximum(holder, 0), axis=1), 0.0)
    return found


def _restarted(world: World, times: LifeTimes, loops: Loops, owners: Owners, random: np.random.Generator) -> Floats:
    """Return what comes twice to static members that were killed and are back before their session is over."""
    again = np.zeros(owners.after.shape)
    for index, life in enumerate(world.lives):
        if life.asleep_s is not None and life.how in (CRASH, SILENT):
            mine = (owners.before == life.member) & times.outlives[:, index, None]
            again += np.where(mine, loops.consumed * times.unsaved_s[:, index, None], 0.0)
    return np.floor(again + random.random(again.shape)) if again.any() else again


def _drained(world: World, after: Indexes, begins: Floats, waiting: Floats, loops: Loops) -> Floats:
    """Return by trial when the last member has worked off its backlog, NaN where one never does.

    ``begins``: since when its owner delivers a partition, ``waiting``: how many records lie there then. A loop works as
    long as anything waits in any of its partitions, so it is done when the sum is.
    """
    found = np.zeros(len(after))
    for member in range(len(world.members)):
        mine = after == member
        if not mine.any():
            continue
        # Counted from the change: what waits for a partition that begins later has not come yet.
        arriving = np.where(mine, world.rates, 0.0).sum(axis=1)
        work = np.where(mine, waiting - world.rates * begins, 0.0).sum(axis=1)
        backlog = np.where(mine, np.floor(waiting), 0.0).sum(axis=1)
        starts = np.where(mine, begins, np.inf).min(axis=1)
        starts = np.where(np.isfinite(starts), starts, 0.0)
        spare = loops.capacity - arriving
        gone = (work + loops.capacity * starts) / np.where(spare > 0, spare, 1.0)
        gone = np.maximum(gone, np.where(mine, begins, 0.0).max(axis=1))
        grows = (spare < 0) | ((spare <= 0) & (backlog > 0))
        found = np.maximum(found, np.where(grows, np.nan, np.where(backlog > 0, gone, 0.0)))
    return found
