"""When each process of each trial says hello and goodbye: start, first heartbeat, last delivery, unregistration."""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.rocketmq.changes import GRACEFUL
from planner.simulation.dynamics.rocketmq.rates import Rates, cached_messages
from planner.simulation.dynamics.rocketmq.timing import CLOSING_WAIT_S, Calibration
from planner.simulation.dynamics.rocketmq.world import Booleans, Floats, World
from planner.simulation.dynamics.spreads import spread

NEVER, ALWAYS = np.inf, -np.inf


@dataclass(frozen=True, slots=True, eq=False)
class LifeTimes:
    """Seconds since the change, one row a trial, one column a life.

    ``constructed``: from here the gap of 5.2+ counts; ``heartbeat``: the first one goes out (ALWAYS for those that run
    before); ``stopped``: nothing is delivered any more; ``saved``: offsets are stored and locks released, for a
    graceful end; ``ended``: the signal or the death (NEVER for those that stay); ``finishes_calls``: running calls
    count before the end. A life that resumes another one counts from where that one stood still.
    """

    constructed: Floats
    heartbeat: Floats
    ended: Floats
    stopped: Floats
    saved: Floats
    finishes_calls: Booleans


def live_times(world: World, rates: Rates, calibration: Calibration, random: np.random.Generator) -> LifeTimes:
    """Return the times of every life in every trial."""
    shape = (world.request.trials, len(world.lives))
    constructed, heartbeat = np.full(shape, ALWAYS), np.full(shape, ALWAYS)
    ended, stopped, saved = np.full(shape, NEVER), np.full(shape, NEVER), np.full(shape, NEVER)
    finishes = np.zeros(shape, dtype=bool)
    for index, life in enumerate(world.lives):
        if life.ends_s is not None:
            ended[:, index] = stopped[:, index] = life.ends_s
            if life.how == GRACEFUL:
                waited, finishes[:, index] = _shutdown(world, rates, index, random)
                stopped[:, index] += waited
                saved[:, index] = stopped[:, index] + spread(random, calibration.shutdown_s, shape[0])
    for index, life in enumerate(world.lives):
        if life.starts_s is not None:
            at = np.full(shape[0], life.starts_s)
            if life.resumes is not None:
                heartbeat[:, index] = at
                continue
            if life.follows is not None:
                waits = random.random(shape[0]) < calibration.closing_waits
                at = np.maximum(at, saved[:, life.follows] + np.where(waits, CLOSING_WAIT_S, 0.0))
            constructed[:, index] = at + spread(random, calibration.start_to_construction_s, shape[0])
            heartbeat[:, index] = at + spread(random, calibration.start_to_heartbeat_s, shape[0])
    return LifeTimes(constructed, heartbeat, ended, stopped, saved, finishes)


def _shutdown(world: World, rates: Rates, life: int, random: np.random.Generator) -> tuple[Floats, Booleans]:
    """Return for each trial how long calls go on after the signal, and whether the running ones are counted.

    ``DefaultMQPushConsumerImpl#shutdown``: it waits for queued tasks, interrupts, and waits the same time once more, in
    which interrupted calls may finish. With 0 ms, the default, it interrupts at once.
    """
    trials = world.request.trials
    patience = world.request.settings.seconds("awaitTerminationMillisWhenShutdown")
    running = random.uniform(0, rates.service_s, trials)
    queued = cached_messages(world, rates, world.lives[life].ends_s or 0.0)[life]
    needed = queued / rates.per_life[life] + running
    first = np.minimum(needed, patience)
    second = np.where(needed > patience, np.minimum(running, patience), 0.0)
    return first + second, (needed <= patience) | (running <= patience) & (patience > 0)
