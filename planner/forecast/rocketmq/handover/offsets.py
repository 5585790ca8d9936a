"""Offsets: what is delivered by whom, what comes twice and why (3.5, 3.6, 3.12 of the reference).

A queue's messages are counted from the moment of the change: message 0 arrives then, ``lag`` messages lie before it. A
hold reads the stored offset and delivers from there: as fast as messages come, or as its owner can. What the stored
offset lacks of what was delivered comes twice. A process that stood still reads nothing and goes on where it was.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.poll_commits import Commits
from planner.forecast.rocketmq.handover.tenures import NOBODY, Holds
from planner.forecast.rocketmq.membership.consume_rates import Rates
from planner.forecast.rocketmq.membership.process_times import LifeTimes
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.rocketmq.request.changes import BlueGreen, Freeze, Partition
from planner.forecast.rocketmq.timing import Calibration

_LEAST_RATE = 1e-9
"""Messages a second that count as none, for divisions."""

_LONG_BEFORE = 2.0**24
"""Messages: more than any hold can have in flight or unsaved."""


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """By trial and queue: ``duplicates`` whole messages, split by cause in ``causes``; by hold: ``start`` offsets.

    ``delivers``: the hold delivers anything at all.
    """

    duplicates: Floats
    causes: dict[str, Floats]
    start: Floats
    delivers: Booleans


def deliveries(
    world: World,
    times: LifeTimes,
    holds: Holds,
    starts: Starts,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
    commits: Commits | None = None,
) -> Deliveries:
    """Return what every hold delivers and how much of it twice; ``commits`` where applications poll."""
    shape = holds.life.shape
    rows = _rows(holds)
    flow = _Flow(world, holds, starts, rates)
    if commits is None:
        flying = _in_flight(world, times, holds, rates, calibration, random).reshape(rows)
        stored: _Stored = _Pushed(flow, _unsaved(world, holds, rates, random).reshape(rows))
    else:
        flying, stored = commits.to_come, _Polled(flow, commits)
    start, in_flight, lacking = _start_offsets(flow, flying, stored, _dies_unsaved(times, holds))
    start, delivers = start.reshape(shape), flow.delivers.reshape(shape)
    twice = _twice(flow, start, holds)
    twice = np.floor(twice + random.random(twice.shape))
    flown, lacked = (np.where(delivers, part.reshape(shape), 0.0).sum(axis=2) for part in (in_flight, lacking))
    unstored = "unsaved" if commits is None else "uncommitted"
    return Deliveries(twice, _split(twice, flown, lacked, unstored, _rest(world)), start, delivers)


class _Flow:
    """How holds go through their queues: one row for each queue of each trial, one column a hold.

    Columns lie together in memory, as they are gone through one by one.
    """

    def __init__(self, world: World, holds: Holds, starts: Starts, rates: Rates) -> None:
        shape = _rows(holds)

        def rows(values: Floats) -> Floats:
            return np.tile(values[holds.queues], len(holds.life))

        self.life, self.resumed = np.asfortranarray(holds.life.reshape(shape)), holds.resumed.reshape(shape)
        self.resumes = np.where(world.severed.any(axis=1), np.arange(len(world.lives)), world.resumed)
        self.groups = world.groups
        change = world.request.change
        self.clone_s = change.clone_s if isinstance(change, BlueGreen) else -np.inf
        self.is_held = self.life != NOBODY
        self.rate, self.lag = rows(world.rates), rows(world.lags)
        self.consumed = rows(np.maximum(rates.consumed, _LEAST_RATE))
        self.read = np.asfortranarray(starts.read.reshape(shape))
        self.first = np.maximum(np.asfortranarray(starts.first.reshape(shape)), 0.0)
        self.dropped = np.asfortranarray(holds.dropped.reshape(shape))
        self.is_old = np.isneginf(np.asfortranarray(holds.gained.reshape(shape)))
        self.limit = np.where(self.is_old, rows(rates.consumed)[:, None], rows(rates.limit)[:, None])
        self.delivers = self.is_held & np.asfortranarray((starts.first < holds.dropped).reshape(shape))

    def known_until(self, rows: Indexes, number: int, earlier: int) -> Floats:
        """Return until when these rows' holds with that number know what an earlier one stored."""
        if not np.isfinite(self.clone_s):
            return np.full(len(rows), np.inf)
        mine, other = self.groups[self.life[rows, number]], self.groups[self.life[rows, earlier]]
        return np.where(mine == other, np.inf, np.where(mine == AFTER, self.clone_s, -np.inf))

    def position(self, start: Floats, rows: Indexes, number: int, at: Floats) -> Floats:
        """Return up to where these rows' holds with that number have delivered at a time at which they deliver."""
        own = start[rows, number] + self.limit[rows, number] * np.maximum(at - self.first[rows, number], 0.0)
        reached: Floats = np.maximum(np.minimum(self.rate[rows] * at, own), start[rows, number])
        return reached


class _Stored(Protocol):
    """What the broker has of an owner that is to be followed by another one."""

    def written(self, rows: Indexes, hold: int, at: Floats, is_dropped: Booleans, /) -> Floats:
        """Return when these rows' hold stored its offset last; who drops does it then, even a stale one."""

    def lacking(self, rows: Indexes, hold: int, at: Floats, is_saved: Booleans, most: Floats, /) -> Floats:
        """Return how many messages the stored offset lacks, of those that the hold has delivered (``most``)."""


class _Pushed:
    """Pulls carry the offset: the broker has ``unsaved`` messages less than were consumed."""

    def __init__(self, flow: _Flow, unsaved: Floats) -> None:
        self._unsaved = unsaved
        self._age_s = unsaved / flow.consumed[:, None] if flow.resumed.any() else np.zeros(unsaved.shape)

    def written(self, rows: Indexes, hold: int, at: Floats, is_dropped: Booleans) -> Floats:
        return at - np.where(is_dropped, 0.0, self._age_s[rows, hold])

    def lacking(self, rows: Indexes, hold: int, _at: Floats, is_saved: Booleans, _most: Floats) -> Floats:
        return np.where(is_saved, 0.0, self._unsaved[rows, hold])


class _Polled:
    """Commits and stores have clocks of their own; what a new owner has not committed yet is where it began."""

    def __init__(self, flow: _Flow, commits: Commits) -> None:
        self._flow, self._commits = flow, commits

    def written(self, rows: Indexes, hold: int, at: Floats, is_dropped: Booleans) -> Floats:
        return at - np.where(is_dropped, 0.0, self._commits.stored_ago_s(rows, hold, at))

    def lacking(self, rows: Indexes, hold: int, at: Floats, is_saved: Booleans, most: Floats) -> Floats:
        found = self._commits.lacking(rows, hold, at, is_saved, self._flow.consumed[rows])
        return np.where(self._flow.is_old[rows, hold], found, np.minimum(found, most))


def _rows(holds: Holds) -> tuple[int, int]:
    """Return the shape with one row for each queue of each trial."""
    trials, queues, count = holds.life.shape
    return trials * queues, count


def _start_offsets(
    flow: _Flow, flying: Floats, stored: _Stored, dies_unsaved: Booleans
) -> tuple[Floats, Floats, Floats]:
    """Return from which offset each hold starts, and what that offset lacks: calls in flight, and unsaved ones.

    The broker's offset is whatever was written last before the hold reads it (``ConsumerOffsetManager#commitOffset``).
    """
    start = np.asfortranarray(np.broadcast_to(-flow.lag[:, None], flow.life.shape))
    in_flight, lacks = np.zeros_like(start), np.zeros_like(start)
    longest = np.maximum.accumulate(np.where(flow.delivers | flow.resumed, flow.dropped, -np.inf), axis=1)
    for number in range(start.shape[1]):
        rows = np.flatnonzero(flow.is_held[:, number])
        read = flow.read[rows, number]
        latest = np.full(len(rows), -np.inf)
        for earlier in reversed(range(number)):
            may_be_later = latest < np.minimum(read, longest[rows, earlier])
            rows, read, latest = rows[may_be_later], read[may_be_later], latest[may_be_later]
            if not len(rows):
                break
            # What another group stored counts up to when its offsets were copied.
            stored_s = np.minimum(read, flow.known_until(rows, number, earlier))
            until = np.minimum(stored_s, flow.dropped[rows, earlier])
            # Who gives up a queue stores its offset then, even a stale one; who keeps it did so with its last pull.
            is_dropped = flow.dropped[rows, earlier] <= stored_s
            written = stored.written(rows, earlier, until, is_dropped)
            writes = flow.delivers[rows, earlier] & (flow.first[rows, earlier] <= until) | flow.resumed[rows, earlier]
            is_latest = writes & (written > latest)
            latest[is_latest] = written[is_latest]
            mine, until = rows[is_latest], until[is_latest]
            is_saved = is_dropped[is_latest] & ~dies_unsaved[mine, earlier]
            counted = flow.position(start, mine, earlier, until) - flying[mine, earlier]
            lacking = stored.lacking(mine, earlier, until, is_saved, np.maximum(counted - start[mine, earlier], 0.0))
            start[mine, number] = counted - lacking
            in_flight[mine, number] = flying[mine, earlier]
            lacks[mine, number] = lacking
        if flow.resumed[:, number].any():
            _go_on(flow, start, in_flight, lacks, number)
    return start, in_flight, lacks


def _go_on(flow: _Flow, start: Floats, in_flight: Floats, lacks: Floats, number: int) -> None:
    """Let the holds of that number which a process resumes begin where the process stood still."""
    for earlier in range(number):
        same = flow.resumes[flow.life[:, number]] == flow.life[:, earlier]
        rows = np.flatnonzero(flow.resumed[:, number] & flow.is_held[:, number] & same)
        start[rows, number] = flow.position(start, rows, earlier, flow.dropped[rows, earlier])
        in_flight[rows, number], lacks[rows, number] = 0.0, 0.0


def _twice(flow: _Flow, start: Floats, holds: Holds) -> Floats:
    """Return deliveries beyond the first of each message: what all holds deliver, less what they cover together."""
    shape = holds.life.shape
    starts = start.reshape(_rows(holds))
    last = np.where(np.isfinite(flow.dropped), flow.dropped, 0.0).max(axis=1, initial=0.0)
    horizon = np.maximum(last, np.where(flow.delivers, flow.first, 0.0).max(axis=1, initial=0.0))
    ends = starts.copy()
    for number in range(shape[2]):
        rows = np.flatnonzero(flow.delivers[:, number])
        ends[rows, number] = flow.position(starts, rows, number, np.minimum(flow.dropped[rows, number], horizon[rows]))
    furthest = np.where(flow.delivers, ends, -np.inf).max(axis=1, initial=-np.inf)
    # Whoever holds a queue for good delivers, sooner or later, all that anybody delivered.
    goes_on = flow.delivers & np.isposinf(flow.dropped)
    is_final = goes_on & (np.cumsum(goes_on[:, ::-1], axis=1)[:, ::-1] == 1)
    ends = np.where(is_final, np.maximum(ends, furthest[:, None]), ends)
    # Who held the queue before the change delivered what lies before it, too.
    begins = np.where(flow.is_old, starts - _LONG_BEFORE, starts)
    lengths = np.where(flow.delivers, ends - begins, 0.0).sum(axis=1)
    least = np.where(flow.delivers, begins, np.inf).min(axis=1, initial=np.inf)
    most = np.where(flow.delivers, ends, -np.inf).max(axis=1, initial=-np.inf)
    covered = np.where(flow.delivers.any(axis=1), most - np.where(np.isfinite(least), least, 0.0), 0.0)
    found: Floats = np.maximum(lengths - np.where(np.isfinite(covered), covered, 0.0), 0.0).reshape(shape[:2])
    return found


def _in_flight(
    world: World,
    times: LifeTimes,
    holds: Holds,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how many delivered messages lie at or above each hold's lowest unfinished one.

    Concurrent: what a service time brings, and more where calls overtake each other. Orderly: the batch of the running
    call, which counts no more once its queue is dropped (``ConsumeMessageOrderlyService#processConsumeResult``), though
    the owner waits for its end. Calls that a shutdown waits for count; of interrupted ones a part was delivered.
    """
    shape = holds.life.shape
    consumed = rates.consumed[holds.queues][None, :, None]
    if world.request.orderly:
        batch = world.request.settings.value("consumeMessageBatchMaxSize")
        busy = random.random(shape) < np.minimum(consumed * rates.service_s / batch, 1.0)
        found = np.where(busy, float(batch), 0.0)
    else:
        age = rates.service_s * random.uniform(*calibration.overtaking, shape)
        waiting = world.lags[holds.queues][None, :, None] + world.rates[holds.queues][None, :, None] * age
        found = np.floor(np.minimum(consumed * age, waiting) + random.random(shape))
    graceful = times.of_holders(times.graceful, holds.life) & holds.dies
    finished = times.of_holders(times.finishes_calls, holds.life)
    least, most = calibration.interrupted_delivered
    # What is sent back goes to the old group's retry topic, which another group does not read.
    least = 0.0 if isinstance(world.request.change, BlueGreen) else least
    # Who broadcasts sends nothing back: what was interrupted comes again with the offset.
    least = most if world.request.broadcasts else least
    counted = np.round(found * random.uniform(least, most, shape))
    return np.where(graceful, np.where(finished, 0.0, counted), found)


def _unsaved(world: World, holds: Holds, rates: Rates, random: np.random.Generator) -> Floats:
    """Return what the broker's offset lags behind the owner's: what came since the last pull, at most one interval.

    Every pull carries the offset. A queue that keeps up pulls for each message, one that is behind for each batch. Who
    broadcasts writes those of all its queues into a file, by a timer alone (``LocalFileOffsetStore``).
    """
    consumed = np.maximum(rates.consumed[holds.queues], _LEAST_RATE)
    batch = world.request.settings.value("pullBatchSize")
    threshold = world.request.settings.value("pullThresholdForQueue")
    between = np.where(world.lags[holds.queues] >= threshold, batch, 1.0) / consumed
    written_s = world.request.settings.seconds("persistConsumerOffsetInterval")
    if world.request.broadcasts:
        ages = written_s * random.random((len(holds.life), len(world.lives)))
        return consumed[None, :, None] * LifeTimes.of_holders(ages, holds.life)
    return (consumed * np.minimum(between, written_s))[None, :, None] * random.random(holds.life.shape)


def _dies_unsaved(times: LifeTimes, holds: Holds) -> Booleans:
    """Return by row and hold where it ends with a process that stores nothing any more."""
    unsaved: Booleans = (holds.dies & ~times.of_holders(times.graceful, holds.life)).reshape(_rows(holds))
    return unsaved


def _rest(world: World) -> str:
    """Return the name of what both owners deliver although the stored offset has it."""
    if isinstance(world.request.change, BlueGreen):
        return "clone"
    return "zombie" if isinstance(world.request.change, Freeze | Partition) else "overlap"


def _split(twice: Floats, flying: Floats, lacking: Floats, unstored: str, rest: str) -> dict[str, Floats]:
    """Return the duplicates by cause; what neither calls in flight nor unsaved offsets explain, both owners did."""
    in_flight = np.minimum(flying, twice)
    unsaved = np.minimum(lacking, twice - in_flight)
    return {"in_flight": in_flight, unstored: unsaved, rest: twice - in_flight - unsaved}
