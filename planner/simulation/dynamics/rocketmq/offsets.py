"""Offsets: what is delivered by whom, what comes twice and why (3.5, 3.6, 3.12 of the reference).

A queue's messages are counted from the moment of the change: message 0 arrives then, ``lag`` messages lie before it. A
hold reads the stored offset and delivers from there: as fast as messages come, or as its owner can. What the stored
offset lacks of what was delivered comes twice.
"""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.rocketmq.changes import GRACEFUL
from planner.simulation.dynamics.rocketmq.holds import NOBODY, Holds
from planner.simulation.dynamics.rocketmq.lives import LifeTimes
from planner.simulation.dynamics.rocketmq.pulls import Starts
from planner.simulation.dynamics.rocketmq.rates import Rates
from planner.simulation.dynamics.rocketmq.timing import Calibration
from planner.simulation.dynamics.rocketmq.world import Booleans, Floats, World

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
    runs_on: Booleans,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Deliveries:
    """Return what every hold delivers and how much of it twice; ``runs_on``: an orderly call outlived its drop."""
    queue = _QueueFlow(world, holds, starts, rates)
    flying = _in_flight(world, times, holds, runs_on, rates, calibration, random)
    unsaved = _unsaved(world, holds, rates, random)
    delivers = (holds.life != NOBODY) & (starts.first < holds.dropped)
    count = holds.life.shape[2]
    start = np.broadcast_to(-queue.lag, holds.life.shape).copy()
    causes = {name: np.zeros(holds.life.shape[:2]) for name in ("in_flight", "unsaved")}
    for number in range(count):
        read = np.where(holds.life[:, :, number] == NOBODY, 0.0, starts.read[:, :, number])
        latest = np.full(read.shape, -np.inf)
        parts = {name: np.zeros(read.shape) for name in causes}
        for earlier in range(number):
            until = np.minimum(read, holds.dropped[:, :, earlier])
            counts = delivers[:, :, earlier] & (starts.first[:, :, earlier] < until) & (until > latest)
            is_saved = (holds.dropped[:, :, earlier] <= read) & ~_dies_unsaved(world, holds, earlier)
            lacking = np.where(is_saved, 0.0, unsaved[:, :, earlier])
            stored = queue.position(start, earlier, until) - flying[:, :, earlier] - lacking
            start[:, :, number] = np.where(counts, stored, start[:, :, number])
            latest = np.where(counts, until, latest)
            parts["in_flight"] = np.where(counts, flying[:, :, earlier], parts["in_flight"])
            parts["unsaved"] = np.where(counts, lacking, parts["unsaved"])
        for name, part in parts.items():
            causes[name] += np.where(delivers[:, :, number], part, 0.0)
    twice = _twice(queue, holds, start, delivers)
    twice = np.floor(twice + random.random(twice.shape))
    return Deliveries(twice, _split(twice, causes), start, delivers)


class _QueueFlow:
    """Positions of holds in their queues, all trials and queues at once."""

    def __init__(self, world: World, holds: Holds, starts: Starts, rates: Rates) -> None:
        self.rate = world.rates[holds.queues][None, :]
        self.lag = world.lags[holds.queues][None, :, None]
        self.first = np.maximum(starts.first, 0.0)
        before = np.isneginf(holds.gained)
        limits = np.maximum(np.where(before, rates.consumed[holds.queues][None, :, None], 0), 0)
        self.limit = np.where(before, limits, rates.limit[holds.queues][None, :, None])

    def position(self, start: Floats, number: int, at: Floats) -> Floats:
        """Return up to where the hold with that number has delivered at a time at which it delivers."""
        own = start[:, :, number] + self.limit[:, :, number] * np.maximum(at - self.first[:, :, number], 0.0)
        reached: Floats = np.maximum(np.minimum(self.rate * at, own), start[:, :, number])
        return reached


def _twice(queue: _QueueFlow, holds: Holds, start: Floats, delivers: Booleans) -> Floats:
    """Return deliveries beyond the first of each message: what all holds deliver, less what they cover together."""
    count = holds.life.shape[2]
    shape = holds.life.shape[:2]
    known = np.where(np.isfinite(holds.dropped), holds.dropped, 0.0)
    horizon = np.maximum(known.max(axis=2, initial=0.0), np.where(delivers, queue.first, 0.0).max(axis=2, initial=0.0))
    ends = (
        np.stack(
            [
                queue.position(start, number, np.minimum(holds.dropped[:, :, number], horizon))
                for number in range(count)
            ],
            axis=2,
        )
        if count
        else np.zeros((*shape, 0))
    )
    furthest = np.where(delivers, ends, -np.inf).max(axis=2, initial=-np.inf)
    # Whoever holds a queue for good delivers, sooner or later, all that anybody delivered.
    goes_on = delivers & np.isposinf(holds.dropped)
    is_final = goes_on & (np.cumsum(goes_on[:, :, ::-1], axis=2)[:, :, ::-1] == 1)
    ends = np.where(is_final, np.maximum(ends, furthest[:, :, None]), ends)
    # Who held the queue before the change delivered what lies before it, too.
    begins = np.where(np.isneginf(holds.gained), start - _LONG_BEFORE, start)
    lengths = np.where(delivers, ends - begins, 0.0).sum(axis=2)
    least = np.where(delivers, begins, np.inf).min(axis=2, initial=np.inf)
    most = np.where(delivers, ends, -np.inf).max(axis=2, initial=-np.inf)
    return np.maximum(np.where(delivers.any(axis=2), lengths - (most - least), 0.0), 0.0)


def _in_flight(
    world: World,
    times: LifeTimes,
    holds: Holds,
    runs_on: Booleans,
    rates: Rates,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how many delivered messages lie at or above each hold's lowest unfinished one.

    Concurrent: what a service time brings, and more where calls overtake each other. Orderly: one batch at most. Calls
    that a shutdown waits for count; of interrupted ones a part was delivered.
    """
    shape = holds.life.shape
    consumed = rates.consumed[holds.queues][None, :, None]
    if world.request.orderly:
        batch = world.request.settings.value("consumeMessageBatchMaxSize")
        busy = random.random(shape) < np.minimum(consumed * rates.service_s / batch, 1.0)
        found = np.where(busy & (holds.dies | runs_on), float(batch), 0.0)
    else:
        age = rates.service_s * random.uniform(*calibration.overtaking, shape)
        found = np.floor(consumed * age + random.random(shape))
    of_life = np.maximum(holds.life, 0)
    graceful = np.array([life.how == GRACEFUL for life in world.lives])[of_life] & holds.dies
    finished = np.take_along_axis(times.finishes_calls, of_life.reshape(shape[0], -1), axis=1).reshape(shape)
    counted = np.round(found * random.uniform(*calibration.interrupted_delivered, shape))
    return np.where(graceful, np.where(finished, 0.0, counted), found)


def _unsaved(world: World, holds: Holds, rates: Rates, random: np.random.Generator) -> Floats:
    """Return what the broker's offset lags behind the owner's: what came since the last pull, at most one interval.

    Every pull carries the offset. A queue that keeps up pulls for each message, one that is behind for each batch.
    """
    consumed = np.maximum(rates.consumed[holds.queues], 1e-9)
    batch = world.request.settings.value("pullBatchSize")
    threshold = world.request.settings.value("pullThresholdForQueue")
    between = np.where(world.lags[holds.queues] >= threshold, batch, 1.0) / consumed
    interval = np.minimum(between, world.request.settings.seconds("persistConsumerOffsetInterval"))
    return (consumed * interval)[None, :, None] * random.random(holds.life.shape)


def _dies_unsaved(world: World, holds: Holds, number: int) -> Booleans:
    """Return where the hold ends with a process that stores nothing any more."""
    graceful = np.array([life.how == GRACEFUL for life in world.lives])
    unsaved: Booleans = holds.dies[:, :, number] & ~graceful[np.maximum(holds.life[:, :, number], 0)]
    return unsaved


def _split(twice: Floats, causes: dict[str, Floats]) -> dict[str, Floats]:
    """Return the duplicates by cause; what neither calls in flight nor unsaved offsets explain, both owners did."""
    in_flight = np.minimum(causes["in_flight"], twice)
    unsaved = np.minimum(causes["unsaved"], twice - in_flight)
    return {"in_flight": in_flight, "unsaved": unsaved, "overlap": twice - in_flight - unsaved}
