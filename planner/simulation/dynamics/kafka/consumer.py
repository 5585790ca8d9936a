"""The consumer protocol (KIP-848, 3.4): a target on the broker, to which each member comes by its own heartbeats.

Whoever comes or goes makes the coordinator compute a new target. A member hears at its next heartbeat what to give up,
does so in its next poll and says so at once; only then may the next owner hear of it, at a heartbeat of its own.
"""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.kafka.assignment import Assignments, first_side
from planner.simulation.dynamics.kafka.draws import Draws, Stage
from planner.simulation.dynamics.kafka.holds import Course, HoldBook
from planner.simulation.dynamics.kafka.lives import NEVER, LifeTimes
from planner.simulation.dynamics.kafka.loops import Loops
from planner.simulation.dynamics.kafka.names import Names
from planner.simulation.dynamics.kafka.timing import Calibration
from planner.simulation.dynamics.kafka.world import AFTER, NOBODY, Booleans, Floats, Indexes, World
from planner.simulation.dynamics.reading import Version
from planner.simulation.dynamics.spreads import spread

BATCHED_SINCE = Version(4, 3)
"""``group.consumer.assignment.interval.ms``: targets are computed at most so often."""

_MOST_BEATS = 300


@dataclass(slots=True)
class _Group:
    """The coordinator's view, by trial (and life, or partition). ``free_at``: since when nobody holds a partition."""

    inside: Booleans
    arrives: Floats
    leaves: Floats
    grows: Floats
    beat: Floats
    free_at: Floats
    computed: Floats
    state: Indexes
    side: Indexes


def play_targets(
    world: World,
    names: Names,
    assignments: Assignments,
    times: LifeTimes,
    loops: Loops,
    calibration: Calibration,
    draws: Draws,
) -> Course:
    """Return the course of a group of the consumer protocol."""
    random, trials = draws.of(Stage.ROUNDS), world.request.trials
    group = _Group(
        np.isneginf(times.arrives),
        np.where(np.isneginf(times.arrives), NEVER, times.arrives),
        times.leaves.copy(),
        _growth(world, times, trials),
        times.beat.copy(),
        np.full((trials, len(world.partitions)), -np.inf),
        np.full(trials, -np.inf),
        np.zeros(trials, dtype=np.intp),
        np.full(trials, first_side(world), dtype=np.intp),
    )
    book = HoldBook(assignments.owners(0), trials)
    for _ in range(2 * len(world.lives) + 1):
        at = _next_target_at(world, group)
        if not np.isfinite(at).any():
            break
        _register(group, at)
        played = np.isfinite(at)
        after, _ = assignments.play(group.state, group.inside, names.of_trial, group.side)
        group.state = np.where(played, after, group.state)
        _converge(assignments, group, times, loops, calibration, random, at, book)
    return Course(book.close(times.stops, times.unsaved_s), group.state)


def _growth(world: World, times: LifeTimes, trials: int) -> Floats:
    """Return when the coordinator sees new partitions: at the next heartbeat of any member (3.4 step 6)."""
    initial = list(world.initial)
    if not world.expands or not initial:
        return np.full(trials, NEVER)
    found: Floats = (times.beat[:, initial] + times.interval).min(axis=1)
    return found


def _next_target_at(world: World, group: _Group) -> Floats:
    """Return when the next target is computed, NEVER where nothing changes any more."""
    comes: Floats = group.arrives.min(axis=1, initial=NEVER)
    goes = np.where(group.inside, group.leaves, NEVER).min(axis=1, initial=NEVER)
    event: Floats = np.minimum(np.minimum(comes, goes), group.grows)
    if world.request.broker < BATCHED_SINCE:
        return event
    interval = world.request.settings.seconds("group.consumer.assignment.interval.ms")
    found: Floats = np.maximum(event, group.computed + interval)
    return found


def _register(group: _Group, at: Floats) -> None:
    """Let everybody in or out whose word has come by the time of the target."""
    played, until = np.isfinite(at), at[:, None]
    comes = played[:, None] & (group.arrives <= until)
    goes = played[:, None] & group.inside & (group.leaves <= until)
    group.beat = np.where(comes, group.arrives, group.beat)
    group.arrives = np.where(comes, NEVER, group.arrives)
    group.leaves = np.where(goes, NEVER, group.leaves)
    group.inside = (group.inside | comes) & ~goes
    grown = played & (group.grows <= at)
    group.side = np.where(grown, AFTER, group.side)
    group.grows = np.where(grown, NEVER, group.grows)
    group.computed = np.where(played, at, group.computed)


def _converge(
    assignments: Assignments,
    group: _Group,
    times: LifeTimes,
    loops: Loops,
    calibration: Calibration,
    random: np.random.Generator,
    at: Floats,
    book: HoldBook,
) -> None:
    """Let every member give up and take what its part of the target says."""
    shape = group.inside.shape
    played = np.isfinite(at)[:, None]
    since = np.where(np.isfinite(at), at, 0.0)[:, None]
    target = np.where(played, assignments.table[group.state], book.life)
    held = np.maximum(book.life, 0)
    # Holds that another target promised and that have not begun: nobody has to give them up.
    promised = (book.life != NOBODY) & (book.gained > since)
    changes = played & (book.life != target)
    gives = changes & ~promised & (book.life != NOBODY)
    beat = _next_beat(group, times, since)
    told = beat + spread(random, calibration.trip_s, shape) + loops.until_poll(random, beat)
    alive = np.take_along_axis(group.inside & (told < times.stops), held, axis=1)
    dropped = np.where(alive, np.take_along_axis(told, held, axis=1), np.take_along_axis(times.stops, held, axis=1))
    saved = np.where(alive, dropped, dropped - np.take_along_axis(times.unsaved_s, held, axis=1))
    acknowledged = told + spread(random, calibration.acknowledge_s, shape)
    free_at = np.where(alive, np.take_along_axis(acknowledged, held, axis=1), np.maximum(since, _freed(group, held)))
    group.free_at = np.where(gives, free_at, group.free_at)
    book.forget(changes & promised)
    book.end(gives, dropped, saved)
    takes = changes & (target != NOBODY)
    revokes = np.zeros(shape, dtype=bool)
    trial, column = np.nonzero(gives & alive)
    revokes[trial, held[trial, column]] = True
    second = np.where(revokes, acknowledged, beat + times.interval)
    ready = np.maximum(group.free_at, since)
    gained = _taken(group, times, calibration, random, target, takes, ready, (beat, second, revokes))
    book.begin(takes, target, gained)


def _freed(group: _Group, held: Indexes) -> Floats:
    """Return when a silent holder's session ends; -inf for one that is out already."""
    ends = np.where(group.inside, group.leaves, -np.inf)
    return np.take_along_axis(ends, held, axis=1)


def _next_beat(group: _Group, times: LifeTimes, since: Floats) -> Floats:
    beats = np.maximum(np.ceil((since - group.beat) / times.interval), 0.0)
    beat: Floats = group.beat + beats * times.interval
    return _awake(times, beat)


def _awake(times: LifeTimes, at: Floats) -> Floats:
    """Return the times, put off until their member wakes where it sleeps."""
    return np.where((times.sleeps <= at) & (at < times.wakes), times.wakes, at)


def _taken(
    group: _Group,
    times: LifeTimes,
    calibration: Calibration,
    random: np.random.Generator,
    target: Indexes,
    takes: Booleans,
    ready: Floats,
    beats: tuple[Floats, Floats, Booleans],
) -> Floats:
    """Return when the new owner of each partition hears that it may have it; NEVER for who does not live to hear it.

    A member that has been given something says so at once, and may be given more with the answer.
    """
    beat, following, revokes = beats
    owner = np.maximum(target, 0)
    gained = np.full(takes.shape, NEVER)
    open_ = takes & np.isfinite(ready)
    listens = ~revokes
    for _ in range(_MOST_BEATS):
        heard = np.take_along_axis(np.where(listens & (beat < times.stops), beat, NEVER), owner, axis=1)
        given = open_ & (ready <= heard) & np.isfinite(heard)
        gained = np.where(given, heard, gained)
        open_ &= ~given
        got = np.zeros(beat.shape, dtype=bool)
        trial, column = np.nonzero(given)
        got[trial, owner[trial, column]] = True
        group.beat = np.where(got | ~listens, np.where(got, beat, following), group.beat)
        if not (open_ & np.take_along_axis(beat < times.stops, owner, axis=1)).any():
            break
        quick = beat + spread(random, calibration.acknowledge_s, beat.shape)
        beat = _awake(times, np.where(got, quick, np.where(listens, beat + times.interval, following)))
        listens = np.ones_like(revokes)
    return gained
