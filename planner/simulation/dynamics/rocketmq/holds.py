"""Who holds each queue from when to when: the looks' results, put in order for each queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.simulation.dynamics.rocketmq.lives import ALWAYS, NEVER, LifeTimes
from planner.simulation.dynamics.rocketmq.views import NOTHING_NEW, Views
from planner.simulation.dynamics.rocketmq.world import Booleans, Floats, Indexes, World

NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Holds:
    """The holds of the touched queues, by trial, queue and order; ``queues`` names the world's queue of each column.

    ``life``: the holder, NOBODY where there are fewer holds; ``gained`` (ALWAYS: held before the change) and
    ``dropped`` (NEVER: held for good) in seconds; ``dies``: ended with its process, not by a look; ``resumed``: goes on
    with what its process had before it stood still. ``changes`` counts by trial, life and topic how many looks changed
    a member's queues of that topic.
    """

    queues: Indexes
    life: Indexes
    gained: Floats
    dropped: Floats
    dies: Booleans
    resumed: Booleans
    changes: Indexes


def queue_holds(world: World, times: LifeTimes, views: Sequence[Views], before: Booleans) -> Holds:
    """Return all holds; ``before`` says by life and queue who owned what before the change."""
    # Who goes on after a standstill thinks that it owns what it owned.
    begins = before | (before[world.resumed] & (world.resumed >= 0)[:, None])
    columns = [_topic_holds(world, times, number, views[number], begins) for number in range(len(world.topics))]
    columns = [_interrupted(world, column) for column in columns] if world.severed_s else columns
    trial, queue, life, gained, dropped, dies, resumed = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    touched, column = np.unique(queue, return_inverse=True)
    key = trial * max(len(touched), 1) + column
    order = np.lexsort((gained, key))
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    rank = np.arange(len(key)) - np.repeat(starts, np.diff(starts, append=len(key)))
    shape = (world.request.trials, len(touched), int(rank.max(initial=-1)) + 1)

    def table(values: NDArray[Any], empty: float) -> NDArray[Any]:
        found = np.full(shape, empty, dtype=values.dtype)
        found.reshape(shape[0] * shape[1], shape[2])[key, rank] = values[order]
        return found

    return Holds(
        touched,
        table(life, NOBODY),
        table(gained, NEVER),
        table(dropped, NEVER),
        table(dies, False),
        table(resumed, False),
        np.stack([_change_counts(world, view, begins, number) for number, view in enumerate(views)], axis=2),
    )


_Columns = tuple[Indexes, Indexes, Indexes, Floats, Floats, Booleans, Booleans]


def _interrupted(world: World, column: _Columns) -> _Columns:
    """Return the holds where those of queues out of reach end with the cut and go on after it, where they were."""
    trial, queue, life, gained, dropped, dies, resumed = column
    brokers = np.array([world.brokers.index(one.broker) for one in world.queues], dtype=np.intp)
    is_cut = world.severed[life, brokers[queue]] & (gained < world.severed_s) & (dropped > 0)
    first, later = is_cut & (gained < 0), is_cut & (dropped > world.severed_s)
    kept = np.flatnonzero(~is_cut | first)
    goes_on = np.flatnonzero(later)
    pick = np.concatenate([kept, goes_on])
    is_later = np.arange(len(pick)) >= len(kept)
    ends = first[pick] & ~is_later
    return (
        trial[pick],
        queue[pick],
        life[pick],
        np.where(is_later, world.severed_s, gained[pick]),
        np.where(ends, 0.0, dropped[pick]),
        dies[pick] | ends,
        np.where(is_later, first[pick], resumed[pick]),
    )


def _topic_holds(
    world: World, times: LifeTimes, number: int, views: Views, before: Booleans
) -> tuple[Indexes, Indexes, Indexes, Floats, Floats, Booleans, Booleans]:
    """Return trial, queue, life, gain, drop and kinds of end and beginning of all holds of a topic's touched queues."""
    lives, queues = _pairs(world, number, views, before)
    pops = world.request.pops
    parts = [
        _holds_of(world, times, views, before, (lives, queues), kind) for kind in ((True, False) if pops else (None,))
    ]
    found = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return found[0], found[1], found[2], found[3], found[4], found[5], found[6]


def _holds_of(
    world: World, times: LifeTimes, views: Views, before: Booleans, pairs: tuple[Indexes, Indexes], whole: bool | None
) -> tuple[Indexes, Indexes, Indexes, Floats, Floats, Booleans, Booleans]:
    """Return the holds of these pairs of life and queue; ``whole``: those by whole brokers only, or by queues only.

    Who is given queues for brokers, or brokers for queues, drops the ones and takes the others.
    """
    lives, queues = pairs
    was = world.shares_whole_brokers(len(world.initial))
    held = _held(views, lives, queues, before)
    had = np.broadcast_to(before[lives, queues][None, :, None], (*held.shape[:2], 1))
    if whole is not None:
        latest = latest_views(views.view)[:, lives, :]
        held = held & (np.where(latest == NOTHING_NEW, was, views.whole[latest] if len(views.whole) else was) == whole)
        had = had & (was == whole)
    none = np.zeros((*held.shape[:2], 1), dtype=bool)
    resumes = world.resumed >= 0
    first = np.where(resumes, times.heartbeat, ALWAYS)[:, :, None]
    at_once = [np.zeros(first.shape)] if whole and world.resizes else []
    now = [np.broadcast_to(world.there[queues][None, :, None] & was, none.shape)] if at_once else []
    course = np.concatenate([none, had, *now, held, none], axis=2)
    at = np.concatenate([first, *at_once, views.at, times.stopped[:, :, None]], axis=2)
    trial, pair, step = np.nonzero(course[:, :, 1:] & ~course[:, :, :-1])
    gained = at[trial, lives[pair], step]
    _, _, end = np.nonzero(course[:, :, :-1] & ~course[:, :, 1:])
    dropped = np.minimum(at[trial, lives[pair], end], times.stopped[trial, lives[pair]])
    dies = (end == course.shape[2] - 2) & np.isfinite(dropped)
    return trial, queues[pair], lives[pair], gained, dropped, dies, (step == 0) & resumes[lives[pair]]


def _pairs(world: World, number: int, views: Views, before: Booleans) -> tuple[Indexes, Indexes]:
    """Return the (life, queue) pairs of queues that any look or end of a process can touch."""
    mine = np.isin(np.arange(len(world.queues)), np.concatenate(world.topics[number].queues))
    ever = before | views.owned.any(axis=0)
    always = before & views.owned.all(axis=0)
    brokers = np.array([world.brokers.index(one.broker) for one in world.queues], dtype=np.intp)
    ends = np.array([life.ends_s is not None for life in world.lives])[:, None] | world.severed[:, brokers]
    touched = ((ever & ~always) | (ever & ends)).any(axis=0) & mine
    if (views.whole != world.shares_whole_brokers(len(world.initial))).any():
        touched = ever.any(axis=0) & mine
    lives, queues = np.nonzero(ever & touched)
    return lives, queues


def _held(views: Views, lives: Indexes, queues: Indexes, before: Booleans) -> Booleans:
    """Return by trial, pair and look whether the life holds the queue after the look."""
    latest = latest_views(views.view)[:, lives, :]
    seen = views.owned[latest, lives[None, :, None], queues[None, :, None]] if len(views.owned) else False
    return np.where(latest == NOTHING_NEW, before[lives, queues][None, :, None], seen)


def latest_views(view: Indexes) -> Indexes:
    """Return the view in force after each look: that of the last look which showed anything."""
    numbers = np.where(view == NOTHING_NEW, -1, np.arange(view.shape[2]))
    last = np.maximum.accumulate(numbers, axis=2)
    return np.where(last < 0, NOTHING_NEW, np.take_along_axis(view, np.maximum(last, 0), axis=2))


def _change_counts(world: World, views: Views, before: Booleans, number: int) -> Indexes:
    """Return by trial and life how many looks changed which queues of the topic the member owns."""
    trials, lives, _ = views.at.shape
    weights = np.random.default_rng(0).integers(1, 2**63, len(world.queues), dtype=np.uint64)
    mine = np.isin(np.arange(len(world.queues)), np.concatenate(world.topics[number].queues))
    # One number for each set of queues; two sets of a million share one with odds of one in ten million.
    sets = np.concatenate([views.owned, (before & mine)[None]]) @ weights
    course = np.concatenate([np.full((trials, lives, 1), NOTHING_NEW), latest_views(views.view)], axis=2)
    numbers = sets[course, np.arange(lives)[None, :, None]]  # NOTHING_NEW is the last row: what it owned before
    counts: Indexes = (np.diff(numbers, axis=2) != 0).sum(axis=2)
    return counts
