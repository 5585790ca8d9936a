"""Who notices what when: the events of the trials, each with its interval."""

from collections.abc import Iterator

import numpy as np

from planner.forecast.common.changes import CUT
from planner.forecast.kafka.membership.scenario import NOBODY, Floats, Indexes, World
from planner.forecast.kafka.simulate import Simulation
from planner.forecast.trials import Document, interval

MOST_EVENTS = 200
GROUP = "the group"


def find_timeline(world: World, found: Simulation) -> tuple[Document, ...]:
    """Return events in the order of their median time, the earliest 200.

    ``event`` is ``starts``, ``joins`` (its first request to join), ``ends``, ``stops`` (last delivery), ``sleeps``,
    ``wakes``, ``loses`` (the network), ``returns`` (the coordinator hears it), ``leaves`` (the coordinator drops it),
    ``assigns`` (the group has all back in a round), ``drops``, ``takes`` or ``delivers`` (first delivery after taking);
    ``client`` says whose, ``queues`` which partitions: those concerned in at least half of the trials.
    """
    events = [*_life_events(world, found), *_round_events(found), *_partition_events(world, found)]
    return tuple(sorted(events, key=lambda event: float(event["at_s"]["p50"]))[:MOST_EVENTS])


def _life_events(world: World, found: Simulation) -> Iterator[Document]:
    times, trials = found.times, world.request.trials
    for index, life in enumerate(world.lives):
        member = found.names.labels[life.member]
        if life.starts_s is not None:
            if life.replaces is None:
                yield from _event("starts", member, np.full(trials, life.starts_s))
            yield from _event("joins", member, times.arrives[:, index])
        if life.ends_s is not None:
            yield from _event("ends", member, times.ends[:, index])
            yield from _event("stops", member, times.stops[:, index])
        if life.asleep_s is not None:
            away, back = ("loses", "returns") if life.how == CUT else ("sleeps", "wakes")
            yield from _event(away, member, times.sleeps[:, index])
            yield from _event(back, member, times.wakes[:, index])
        yield from _event("leaves", member, times.leaves[:, index])


def _round_events(found: Simulation) -> Iterator[Document]:
    for one in found.course.rounds:
        yield from _event("assigns", GROUP, np.where(one.played, one.barrier, np.inf))


def _partition_events(world: World, found: Simulation) -> Iterator[Document]:
    holds = found.course.holds
    held, is_new = holds.life != NOBODY, np.isfinite(holds.gained)
    ends = np.array([*(life.ends_s is not None for life in world.lives), False])[holds.life]
    for name, concerned, at in (
        ("drops", held & np.isfinite(holds.dropped) & ~ends, holds.dropped),
        ("takes", held & is_new, holds.gained),
        ("delivers", found.found.delivers & is_new, found.found.first),
    ):
        number, trial, column = np.nonzero(concerned)
        life, when = holds.life[number, trial, column], at[number, trial, column]
        for index in np.unique(life).tolist():
            mine = life == index
            partitions = _usual(world, trial[mine], column[mine])
            if partitions:
                first = np.full(world.request.trials, np.inf)
                np.minimum.at(first, trial[mine], when[mine])
                yield from _event(name, found.names.labels[world.lives[index].member], first, queues=partitions)


def _usual(world: World, trial: Indexes, column: Indexes) -> list[list[object]]:
    """Return the partitions that are concerned in at least half of the trials."""
    count = len(world.partitions)
    seen = np.bincount(np.unique(trial * count + column) % count, minlength=count)
    return [list(world.partitions[pick]) for pick in np.flatnonzero(seen * 2 >= world.request.trials).tolist()]


def _event(event: str, client: str, at: Floats, **more: object) -> Iterator[Document]:
    """Yield the event if it happens in at least half of the trials, with the interval of those."""
    known = at[np.isfinite(at)]
    if len(known) * 2 >= len(at) and len(known):
        yield {"at_s": interval(known), "event": event, "client": client, **more}
