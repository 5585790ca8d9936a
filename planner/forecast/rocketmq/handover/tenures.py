"""Who holds each queue from when to when: the looks' results, put in order for each queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.forecast.rocketmq.membership.membership_views import NOTHING_NEW, Views
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, LifeTimes
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World

NOBODY = -1
_LARGEST_WEIGHT = 2**33
_ODD = 0x9E3779B97F4A7C15
"""Multiplies one of two sums, so that both count in all 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Holds:
    """The holds of the touched queues, by trial, queue and order; ``queues`` names the world's queue of each column.

    ``life``: the holder, NOBODY where there are fewer holds; ``gained`` (ALWAYS: held before the change) and
    ``dropped`` (NEVER: held for good) in seconds; ``dies``: ended with its process, not by a look; ``resumed``: goes on
    with what its process had before it stood still; ``whole``: of a whole broker, which only POP gives. ``changes``
    counts by trial, life and topic how many looks changed a member's queues of that topic.
    """

    queues: Indexes
    life: Indexes
    gained: Floats
    dropped: Floats
    dies: Booleans
    resumed: Booleans
    whole: Booleans
    changes: Indexes


def queue_holds(world: World, times: LifeTimes, views: Sequence[Views], before: Booleans) -> Holds:
    """Return all holds; ``before`` says by life and queue who owned what before the change."""
    # Who goes on after a standstill thinks that it owns what it owned.
    begins = before | (before[world.resumed] & (world.resumed >= 0)[:, None])
    latest = [latest_views(one.view) for one in views]
    columns = [
        _topic_holds(world, times, number, views[number], latest[number], begins) for number in range(len(views))
    ]
    columns = [_interrupted(world, times, column) for column in columns] if world.severed_s else columns
    trial, queue, life, gained, dropped, dies, resumed, whole = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
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
        table(whole, False),
        np.stack(
            [_change_counts(world, views[number], latest[number], begins, number) for number in range(len(views))],
            axis=2,
        ),
    )


_Columns = tuple[Indexes, Indexes, Indexes, Floats, Floats, Booleans, Booleans, Booleans]


def _interrupted(world: World, times: LifeTimes, column: _Columns) -> _Columns:
    """Return the holds where those of queues out of reach end with the cut and go on after it, where they were."""
    trial, queue, life, gained, dropped, dies, resumed, whole = column
    brokers = np.array([world.brokers.index(one.broker) for one in world.queues], dtype=np.intp)
    reached = times.reached[trial, life]
    is_cut = world.severed[life, brokers[queue]] & (gained < reached) & (dropped > 0)
    first, later = is_cut & (gained < 0), is_cut & (dropped > reached)
    kept = np.flatnonzero(~is_cut | first)
    goes_on = np.flatnonzero(later)
    pick = np.concatenate([kept, goes_on])
    is_later = np.arange(len(pick)) >= len(kept)
    ends = first[pick] & ~is_later
    return (
        trial[pick],
        queue[pick],
        life[pick],
        np.where(is_later, reached[pick], gained[pick]),
        np.where(ends, 0.0, dropped[pick]),
        dies[pick] | ends,
        np.where(is_later, first[pick], resumed[pick]),
        whole[pick],
    )


def _topic_holds(
    world: World, times: LifeTimes, number: int, views: Views, latest: Indexes, before: Booleans
) -> _Columns:
    """Return trial, queue, life, gain, drop and kinds of end and beginning of all holds of a topic's touched queues."""
    touched = _touched(world, number, views, before)
    if not world.request.pops:
        return _holds_of(world, times, views, latest, _Course(views.owned & touched, before & touched))
    was = world.shares_whole_brokers(len(world.initial))
    now = np.broadcast_to(world.there & was, touched.shape) & touched if world.resizes else None
    parts = [
        _holds_of(
            world,
            times,
            views,
            latest,
            _Course(
                views.owned & touched & (views.whole == whole)[:, None, None],
                before & touched & (was == whole),
                now if whole else None,
                whole,
            ),
        )
        for whole in (True, False)
    ]
    trial, queue, life, gained, dropped, dies, resumed, whole = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    return trial, queue, life, gained, dropped, dies, resumed, whole


@dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """What a life may have, by life and queue: under each view, before the change, and as it takes effect.

    Under POP there are two: who is given whole brokers instead of queues drops the queues and takes the brokers.
    """

    owned: Booleans
    before: Booleans
    now: Booleans | None = None
    whole: bool = False


def _holds_of(world: World, times: LifeTimes, views: Views, looks: Indexes, course: _Course) -> _Columns:
    """Return the holds of one course; ``looks``: the view in force after each look."""
    was, never = len(course.owned), len(course.owned) + 1
    sets = np.concatenate([course.owned, course.before[None], np.zeros_like(course.before)[None]])
    shape, resumes = (*looks.shape[:2], 1), world.resumed >= 0
    first = np.where(resumes, times.heartbeat, ALWAYS)[:, :, None]
    steps = [
        np.full(shape, never),
        np.full(shape, was),
        np.where(looks == NOTHING_NEW, was, looks),
        np.full(shape, never),
    ]
    at = [first, views.at, times.stopped[:, :, None]]
    if course.now is not None:
        sets = np.concatenate([sets, course.now[None]])
        steps.insert(2, np.full(shape, never + 1))
        at.insert(1, np.zeros(shape))
    trial, life, queue, step, end = _spells(sets, np.concatenate(steps, axis=2))
    when = np.concatenate(at, axis=2)
    dropped = np.minimum(when[trial, life, end], times.stopped[trial, life])
    dies = (end == when.shape[2] - 1) & np.isfinite(dropped)
    resumed, whole = (step == 0) & resumes[life], np.full(len(trial), course.whole)
    return trial, queue, life, when[trial, life, step], dropped, dies, resumed, whole


def _spells(sets: Booleans, course: Indexes) -> tuple[Indexes, Indexes, Indexes, Indexes, Indexes]:
    """Return trial, life, queue, first and last step of each time that a life has a queue without a break.

    ``sets`` says by number, life and queue what a set holds; ``course`` gives the set after each step, by trial and
    life, nothing at both ends. Few steps change anything, so only those are looked at queue by queue.
    """
    numbers = _numbers(sets)[course, np.arange(course.shape[1])[None, :, None]]
    trial, life, step = np.nonzero(np.diff(numbers, axis=2))
    old, new = (sets[course[trial, life, step + later], life] for later in (0, 1))
    of_life = (trial * course.shape[1] + life) * sets.shape[2]

    def in_order(events: Booleans) -> Indexes:
        """Return which queue of which life in which trial, and the step, in one number, ascending."""
        event, queue = np.nonzero(events)
        return np.sort((of_life[event] + queue) * course.shape[2] + step[event])

    begins, ends = in_order(new & ~old), in_order(old & ~new)
    place, step = np.divmod(begins, course.shape[2])
    trial, life, queue = np.unravel_index(place, (*course.shape[:2], sets.shape[2]))
    return trial, life, queue, step, ends % course.shape[2]


def _numbers(sets: Booleans) -> NDArray[np.uint64]:
    """Return a number for each set of queues, by the other axes: two sets of a million share one hardly ever.

    It has two sums of fixed random weights, one for each eight queues; of 20 000 they stay whole numbers below 2^53.
    """
    packed = np.packbits(sets, axis=-1).astype(float)
    weights = np.random.default_rng(0).integers(1, _LARGEST_WEIGHT, (packed.shape[-1], 2)).astype(float)
    sums = (packed @ weights).astype(np.uint64)
    numbers: NDArray[np.uint64] = sums[..., 0] * np.uint64(_ODD) + sums[..., 1]
    return numbers


def _touched(world: World, number: int, views: Views, before: Booleans) -> Booleans:
    """Return by life and queue whether the life ever has the queue, and a look or the end of a process can touch it."""
    mine = np.isin(np.arange(len(world.queues)), np.concatenate(world.topics[number].queues))
    ever = before | views.owned.any(axis=0)
    always = before & views.owned.all(axis=0)
    brokers = np.array([world.brokers.index(one.broker) for one in world.queues], dtype=np.intp)
    ends = np.array([life.ends_s is not None for life in world.lives])[:, None] | world.severed[:, brokers]
    touched = ((ever & ~always) | (ever & ends)).any(axis=0) & mine
    if (views.whole != world.shares_whole_brokers(len(world.initial))).any():
        touched = ever.any(axis=0) & mine
    found: Booleans = ever & touched
    return found


def latest_views(view: Indexes) -> Indexes:
    """Return the view in force after each look: that of the last look which showed anything."""
    numbers = np.where(view == NOTHING_NEW, -1, np.arange(view.shape[2]))
    last = np.maximum.accumulate(numbers, axis=2)
    return np.where(last < 0, NOTHING_NEW, np.take_along_axis(view, np.maximum(last, 0), axis=2))


def _change_counts(world: World, views: Views, latest: Indexes, before: Booleans, number: int) -> Indexes:
    """Return by trial and life how many looks changed which queues of the topic the member owns."""
    trials, lives, _ = views.at.shape
    mine = np.isin(np.arange(len(world.queues)), np.concatenate(world.topics[number].queues))
    sets = _numbers(np.concatenate([views.owned, (before & mine)[None]]))
    course = np.concatenate([np.full((trials, lives, 1), NOTHING_NEW), latest], axis=2)
    numbers = sets[course, np.arange(lives)[None, :, None]]  # NOTHING_NEW is the last row: what it owned before
    counts: Indexes = (np.diff(numbers, axis=2) != 0).sum(axis=2)
    return counts
