"""Who notices what when: the events of the trials, each with its interval."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from planner.forecast.common.changes import FREEZE
from planner.forecast.rocketmq.membership.ownership import NOBODY
from planner.forecast.rocketmq.membership.process_times import NEVER
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, World
from planner.forecast.rocketmq.request.changes import CUT
from planner.forecast.rocketmq.request.settings import Consumer
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.trials import Document, interval

MOST_EVENTS = 200


def find_timeline(world: World, found: Simulation) -> tuple[Document, ...]:
    """Return events in the order of their median time, the earliest 200.

    ``event`` is ``starts``, ``registers``, ``ends``, ``stops`` (last delivery), ``sleeps``, ``wakes``, ``loses`` and
    ``returns`` (its connections), ``removed`` (from a broker's member table), ``drops``, ``takes`` or ``delivers``
    (first delivery after taking); ``client`` says whose, ``queues`` which queues in the median trial's sense: those
    concerned in at least half of the trials.
    """
    events = [*_life_events(world, found), *_table_events(world, found), *_queue_events(world, found)]
    if world.request.consumer == Consumer.PULL:  # the application pulls when it likes
        events = [event for event in events if event["event"] != "delivers"]
    return tuple(sorted(events, key=lambda event: float(event["at_s"]["p50"]))[:MOST_EVENTS])


def _life_events(world: World, found: Simulation) -> Iterator[Document]:
    for index, life in enumerate(world.lives):
        client = found.names.labels[life.client]
        if life.resumes is not None:
            was_cut = world.lives[life.resumes].how == CUT
            yield from _event("loses" if was_cut else "sleeps", client, found.course.times.ended[:, life.resumes])
            yield from _event("returns" if was_cut else "wakes", client, found.course.times.heartbeat[:, index])
        elif life.starts_s is not None:
            yield from _event("starts", client, found.course.times.constructed[:, index])
        if life.ends_s is not None and life.how not in (FREEZE, CUT):
            yield from _event("ends", client, found.course.times.ended[:, index])
            yield from _event("stops", client, found.course.times.stopped[:, index])


def _table_events(world: World, found: Simulation) -> Iterator[Document]:
    tables, times = found.course.tables, found.course.times
    entered, left = np.where(tables.tells_entering, tables.entered, NEVER), tables.left.copy()
    for index, old in enumerate(world.resumed.tolist()):
        if old != NOBODY:  # nobody removes the entry of a process that wakes in time
            left[:, old] = np.where(left[:, old] < times.heartbeat[:, index, None], left[:, old], NEVER)
    for index, life in enumerate(world.lives):
        client = found.names.labels[life.client]
        for number, broker in enumerate(world.brokers):
            yield from _event("registers", client, entered[:, index, number], broker=broker)
            yield from _event("removed", client, left[:, index, number], broker=broker)


def _queue_events(world: World, found: Simulation) -> Iterator[Document]:
    holds = found.holds
    is_new = np.isfinite(holds.gained)
    for name, concerned, at in (
        ("drops", np.isfinite(holds.dropped) & ~holds.dies, holds.dropped),
        ("takes", is_new & ~holds.resumed, holds.gained),
        ("delivers", is_new & found.found.delivers, found.starts.first),
    ):
        place = np.flatnonzero(concerned & (holds.life != NOBODY))
        trial, column = np.divmod(place // holds.life.shape[2], holds.life.shape[1])
        life, when = holds.life.ravel()[place], at.ravel()[place]
        for index, mine in _by_life(life, len(world.lives)):
            queues = _usual_queues(world, found, trial[mine], column[mine])
            if queues:
                first = np.full(world.request.trials, NEVER)
                np.minimum.at(first, trial[mine], when[mine])
                yield from _event(name, found.names.labels[world.lives[index].client], first, queues=queues)


def _by_life(life: Indexes, lives: int) -> Iterator[tuple[int, Indexes]]:
    """Yield each life that occurs, with its places, both ascending."""
    # Small whole numbers are sorted by their digits, large ones by comparing.
    order = np.argsort(life.astype(np.min_scalar_type(lives)), kind="stable")
    ends = np.cumsum(np.bincount(life, minlength=lives))
    for index, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        if begin < end:
            yield index, order[begin:end]


def _usual_queues(world: World, found: Simulation, trial: Indexes, column: Indexes) -> list[list[object]]:
    """Return the queues that are concerned in at least half of the trials."""
    seen = np.zeros((world.request.trials, len(found.holds.queues)), dtype=bool)
    seen[trial, column] = True
    picks = found.holds.queues[seen.sum(axis=0) * 2 >= world.request.trials].tolist()
    return [[world.queues[pick].topic, world.queues[pick].broker, world.queues[pick].queue_id] for pick in picks]


def _event(event: str, client: str, at: Floats, **more: object) -> Iterator[Document]:
    """Yield the event if it happens in at least half of the trials, with the interval of those."""
    known = at[np.isfinite(at)]
    if len(known) * 2 >= len(at) and len(known):
        yield {"at_s": interval(known), "event": event, "client": client, **more}
