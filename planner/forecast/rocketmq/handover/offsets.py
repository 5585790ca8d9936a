"""Offsets: which member delivers what, what is redelivered and why (3.5, 3.6, 3.12 of the reference).

A queue's messages are counted from the moment of the change: message 0 arrives then, ``lag`` messages lie before it. A
tenure reads the stored offset and delivers from there: as fast as messages come, or as its owner can. What the stored
offset lacks of what was delivered is redelivered. A process that stood still reads nothing and goes on where it was.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.poll_commits import Commits
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, cache_thresholds
from planner.forecast.rocketmq.membership.inflow import Inflow
from planner.forecast.rocketmq.membership.process_times import ProcessTimes
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.changes import BlueGreen, Freeze, Partition
from planner.forecast.rocketmq.timing import Calibration

_LEAST_RATE = 1e-9
"""Messages a second that count as none, for divisions."""

_LONG_BEFORE = 2.0**24
"""Messages: more than any tenure can have in flight or unsaved."""


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """By trial and queue: ``duplicates`` whole messages, split by cause in ``causes``; by tenure: ``start`` offsets.

    ``delivers``: the tenure delivers anything at all.
    """

    duplicates: Floats
    causes: dict[str, Floats]
    start: Floats
    delivers: Booleans


def find_deliveries(
    scenario: Scenario,
    times: ProcessTimes,
    tenures: Tenures,
    starts: Starts,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
    commits: Commits | None = None,
    inflow: Inflow | None = None,
) -> Deliveries:
    """Return what every tenure delivers and how much of it twice; ``commits`` where applications poll, ``inflow`` where
    it changes."""
    shape = tenures.process.shape
    rows = _rows(tenures)
    flow = _Flow(scenario, tenures, starts, rates, inflow)
    if commits is None:
        flying = _in_flight(scenario, times, tenures, rates, calibration, random, inflow).reshape(rows)
        stored: _Stored = _Pushed(flow, _unsaved(scenario, tenures, rates, random).reshape(rows))
    else:
        flying, stored = commits.to_come, _Polled(flow, commits)
    start, in_flight, lacking = _start_offsets(flow, flying, stored, _dies_unsaved(times, tenures))
    start, delivers = start.reshape(shape), flow.delivers.reshape(shape)
    redelivered = _redelivered(flow, start, tenures)
    redelivered = np.floor(redelivered + random.random(redelivered.shape))
    flown, lacked = (np.where(delivers, messages.reshape(shape), 0.0).sum(axis=2) for messages in (in_flight, lacking))
    unstored = "unsaved" if commits is None else "uncommitted"
    return Deliveries(redelivered, _split(redelivered, flown, lacked, unstored, _rest(scenario)), start, delivers)


class _Flow:
    """How tenures go through their queues: one row for each queue of each trial, one column a tenure.

    Columns lie together in memory, as they are gone through one by one.
    """

    def __init__(
        self, scenario: Scenario, tenures: Tenures, starts: Starts, rates: Rates, inflow: Inflow | None
    ) -> None:
        shape = _rows(tenures)

        def rows(values: Floats) -> Floats:
            return np.tile(values[tenures.queues], len(tenures.process))

        self.process, self.resumed = np.asfortranarray(tenures.process.reshape(shape)), tenures.resumed.reshape(shape)
        self.resumes = np.where(scenario.partitioned.any(axis=1), np.arange(len(scenario.processes)), scenario.resumed)
        self.groups = scenario.groups
        change = scenario.request.change
        self.clone_s = change.clone_s if isinstance(change, BlueGreen) else -np.inf
        self.is_owned = self.process != NOBODY
        self.rate, self.lag = rows(scenario.rates), rows(scenario.lags)
        self.consumed = rows(np.maximum(rates.consumed, _LEAST_RATE))
        self.grows_by, self.grows_at = np.zeros_like(self.rate), np.zeros_like(self.rate)
        consumed = rows(rates.consumed)
        if inflow is not None:
            picked = [values[:, tenures.queues].ravel() for values in (inflow.first, inflow.after, inflow.shift_s)]
            self.rate, self.grows_by, self.grows_at = picked[0], picked[1] - picked[0], picked[2]
            consumed = inflow.consumed[:, tenures.queues].ravel()
        self.read = np.asfortranarray(starts.read.reshape(shape))
        self.first = np.maximum(np.asfortranarray(starts.first.reshape(shape)), 0.0)
        self.dropped = np.asfortranarray(tenures.dropped.reshape(shape))
        self.is_old = np.isneginf(np.asfortranarray(tenures.taken.reshape(shape)))
        self.limit = np.where(self.is_old, consumed[:, None], rows(rates.limit)[:, None])
        self.delivers = self.is_owned & np.asfortranarray((starts.first < tenures.dropped).reshape(shape))

    def known_until(self, rows: Indexes, number: int, earlier: int) -> Floats:
        """Return until when these rows' tenures with that number know what an earlier one stored."""
        if not np.isfinite(self.clone_s):
            return np.full(len(rows), np.inf)
        mine, other = self.groups[self.process[rows, number]], self.groups[self.process[rows, earlier]]
        return np.where(mine == other, np.inf, np.where(mine == AFTER, self.clone_s, -np.inf))

    def position(self, start: Floats, rows: Indexes, number: int, at: Floats) -> Floats:
        """Return up to where these rows' tenures with that number have delivered at a time at which they deliver."""
        own = start[rows, number] + self.limit[rows, number] * np.maximum(at - self.first[rows, number], 0.0)
        arrived = self.rate[rows] * at + self.grows_by[rows] * np.maximum(at - self.grows_at[rows], 0.0)
        reached: Floats = np.maximum(np.minimum(arrived, own), start[rows, number])
        return reached


class _Stored(Protocol):
    """What the broker has of an owner that is to be followed by another one."""

    def written(self, rows: Indexes, tenure: int, at: Floats, is_dropped: Booleans, /) -> Floats:
        """Return when these rows' tenure stored its offset last; a member that drops it does so then, even a stale
        one."""

    def lacking(self, rows: Indexes, tenure: int, at: Floats, is_saved: Booleans, most: Floats, /) -> Floats:
        """Return how many messages the stored offset lacks, of those that the tenure has delivered (``most``)."""


class _Pushed:
    """Pulls carry the offset: the broker has ``unsaved`` messages less than were consumed."""

    def __init__(self, flow: _Flow, unsaved: Floats) -> None:
        self._unsaved = unsaved
        self._age_s = unsaved / flow.consumed[:, None] if flow.resumed.any() else np.zeros(unsaved.shape)

    def written(self, rows: Indexes, tenure: int, at: Floats, is_dropped: Booleans) -> Floats:
        return at - np.where(is_dropped, 0.0, self._age_s[rows, tenure])

    def lacking(self, rows: Indexes, tenure: int, _at: Floats, is_saved: Booleans, _most: Floats) -> Floats:
        return np.where(is_saved, 0.0, self._unsaved[rows, tenure])


class _Polled:
    """Commits and stores have clocks of their own; what a new owner has not committed yet is where it began."""

    def __init__(self, flow: _Flow, commits: Commits) -> None:
        self._flow, self._commits = flow, commits

    def written(self, rows: Indexes, tenure: int, at: Floats, is_dropped: Booleans) -> Floats:
        return at - np.where(is_dropped, 0.0, self._commits.stored_ago_s(rows, tenure, at))

    def lacking(self, rows: Indexes, tenure: int, at: Floats, is_saved: Booleans, most: Floats) -> Floats:
        lacking = self._commits.lacking(rows, tenure, at, is_saved, self._flow.consumed[rows])
        return np.where(self._flow.is_old[rows, tenure], lacking, np.minimum(lacking, most))


def _rows(tenures: Tenures) -> tuple[int, int]:
    """Return the shape with one row for each queue of each trial."""
    trials, queues, count = tenures.process.shape
    return trials * queues, count


def _start_offsets(
    flow: _Flow, flying: Floats, stored: _Stored, dies_unsaved: Booleans
) -> tuple[Floats, Floats, Floats]:
    """Return from which offset each tenure starts, and what that offset lacks: calls in flight, and unsaved ones.

    The broker's offset is whatever was written last before the tenure reads it
    (``ConsumerOffsetManager#commitOffset``).
    """
    start = np.asfortranarray(np.broadcast_to(-flow.lag[:, None], flow.process.shape))
    in_flight, lacks = np.zeros_like(start), np.zeros_like(start)
    longest = np.maximum.accumulate(np.where(flow.delivers | flow.resumed, flow.dropped, -np.inf), axis=1)
    for number in range(start.shape[1]):
        rows = np.flatnonzero(flow.is_owned[:, number])
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
            # A member that gives up a queue stores its offset then, even a stale one; one that keeps it, as it pulls.
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
    """Let the tenures of that number which a process resumes begin where the process stood still."""
    for earlier in range(number):
        same = flow.resumes[flow.process[:, number]] == flow.process[:, earlier]
        rows = np.flatnonzero(flow.resumed[:, number] & flow.is_owned[:, number] & same)
        start[rows, number] = flow.position(start, rows, earlier, flow.dropped[rows, earlier])
        in_flight[rows, number], lacks[rows, number] = 0.0, 0.0


def _redelivered(flow: _Flow, start: Floats, tenures: Tenures) -> Floats:
    """Return deliveries beyond the first of each message: what all tenures deliver, less what they cover together."""
    shape = tenures.process.shape
    starts = start.reshape(_rows(tenures))
    last = np.where(np.isfinite(flow.dropped), flow.dropped, 0.0).max(axis=1, initial=0.0)
    horizon = np.maximum(last, np.where(flow.delivers, flow.first, 0.0).max(axis=1, initial=0.0))
    ends = starts.copy()
    for number in range(shape[2]):
        rows = np.flatnonzero(flow.delivers[:, number])
        ends[rows, number] = flow.position(starts, rows, number, np.minimum(flow.dropped[rows, number], horizon[rows]))
    furthest = np.where(flow.delivers, ends, -np.inf).max(axis=1, initial=-np.inf)
    # A member that owns a queue for good delivers, sooner or later, all that anybody delivered.
    goes_on = flow.delivers & np.isposinf(flow.dropped)
    is_final = goes_on & (np.cumsum(goes_on[:, ::-1], axis=1)[:, ::-1] == 1)
    ends = np.where(is_final, np.maximum(ends, furthest[:, None]), ends)
    # Who held the queue before the change delivered what lies before it, too.
    begins = np.where(flow.is_old, starts - _LONG_BEFORE, starts)
    lengths = np.where(flow.delivers, ends - begins, 0.0).sum(axis=1)
    least = np.where(flow.delivers, begins, np.inf).min(axis=1, initial=np.inf)
    most = np.where(flow.delivers, ends, -np.inf).max(axis=1, initial=-np.inf)
    covered = np.where(flow.delivers.any(axis=1), most - np.where(np.isfinite(least), least, 0.0), 0.0)
    redelivered: Floats = np.maximum(lengths - np.where(np.isfinite(covered), covered, 0.0), 0.0).reshape(shape[:2])
    return redelivered


def _in_flight(
    scenario: Scenario,
    times: ProcessTimes,
    tenures: Tenures,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
    inflow: Inflow | None,
) -> Floats:
    """Return how many delivered messages lie at or above each tenure's lowest unfinished one.

    Concurrent: what a service time brings, and more where calls overtake each other. Orderly: the batch of the running
    call, which counts no more once its queue is dropped (``ConsumeMessageOrderlyService#processConsumeResult``), though
    the owner waits for its end. Calls that a shutdown waits for count; of interrupted ones a part was delivered.
    """
    shape = tenures.process.shape
    consumed = rates.consumed[tenures.queues][None, :, None]
    if inflow is not None:
        consumed = np.where(
            tenures.dropped > inflow.shift_s[:, tenures.queues, None],
            inflow.consumed[:, tenures.queues, None],
            consumed,
        )
    if scenario.request.orderly:
        batch = scenario.request.settings.value("consumeMessageBatchMaxSize")
        busy = random.random(shape) < np.minimum(consumed * rates.service_s / batch, 1.0)
        in_flight = np.where(busy, float(batch), 0.0)
    else:
        age = rates.service_s * random.uniform(*calibration.overtaking, shape)
        waiting = scenario.lags[tenures.queues][None, :, None] + scenario.rates[tenures.queues][None, :, None] * age
        in_flight = np.floor(np.minimum(consumed * age, waiting) + random.random(shape))
    graceful = times.of_holders(times.graceful, tenures.process) & tenures.dies
    finished = times.of_holders(times.finishes_calls, tenures.process)
    least, most = calibration.interrupted_delivered
    # What is sent back goes to the old group's retry topic, which another group does not read.
    least = 0.0 if isinstance(scenario.request.change, BlueGreen) else least
    # Who broadcasts sends nothing back: what was interrupted comes again with the offset.
    least = most if scenario.request.broadcasts else least
    counted = np.round(in_flight * random.uniform(least, most, shape))
    return np.where(graceful, np.where(finished, 0.0, counted), in_flight)


def _unsaved(scenario: Scenario, tenures: Tenures, rates: Rates, random: np.random.Generator) -> Floats:
    """Return what the broker's offset lags behind the owner's: what came since the last pull, at most one interval.

    Every pull carries the offset. A queue that keeps up pulls for each message, one that is behind for each batch. Who
    broadcasts writes those of all its queues into a file, by a timer alone (``LocalFileOffsetStore``).
    """
    consumed = np.maximum(rates.consumed[tenures.queues], _LEAST_RATE)
    batch = scenario.request.settings.value("pullBatchSize")
    thresholds = cache_thresholds(scenario, rates.owners)[tenures.queues]
    between = np.where(scenario.lags[tenures.queues] >= thresholds, batch, 1.0) / consumed
    between = np.maximum(between, scenario.request.settings.seconds("pullInterval"))
    written_s = scenario.request.settings.seconds("persistConsumerOffsetInterval")
    if scenario.request.broadcasts:
        ages = written_s * random.random((len(tenures.process), len(scenario.processes)))
        return consumed[None, :, None] * ProcessTimes.of_holders(ages, tenures.process)
    return (consumed * np.minimum(between, written_s))[None, :, None] * random.random(tenures.process.shape)


def _dies_unsaved(times: ProcessTimes, tenures: Tenures) -> Booleans:
    """Return by row and tenure where it ends with a process that stores nothing any more."""
    unsaved: Booleans = (tenures.dies & ~times.of_holders(times.graceful, tenures.process)).reshape(_rows(tenures))
    return unsaved


def _rest(scenario: Scenario) -> str:
    """Return the name of what both owners deliver although the stored offset has it."""
    if isinstance(scenario.request.change, BlueGreen):
        return "clone"
    return "zombie" if isinstance(scenario.request.change, Freeze | Partition) else "overlap"


def _split(redelivered: Floats, flying: Floats, lacking: Floats, unstored: str, rest: str) -> dict[str, Floats]:
    """Return the duplicates by cause; what neither calls in flight nor unsaved offsets explain, both owners did."""
    in_flight = np.minimum(flying, redelivered)
    unsaved = np.minimum(lacking, redelivered - in_flight)
    return {"in_flight": in_flight, unstored: unsaved, rest: redelivered - in_flight - unsaved}
