"""Which process owns each queue from when to when: the rebalances' results, put in order for each queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.forecast.rocketmq.membership.membership_views import NOTHING_NEW, Views
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, ProcessTimes
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario

NOBODY = -1
_LARGEST_WEIGHT = 2**33
_ODD = 0x9E3779B97F4A7C15
"""Multiplies one of two sums, so that both count in all 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Tenures:
    """The tenures of the touched queues, by trial, queue and order; ``queues`` names the scenario's queue of each
    column.

    ``process``: the holder, NOBODY where there are fewer tenures; ``taken`` (ALWAYS: owned before the change) and
    ``dropped`` (NEVER: owned for good) in seconds; ``dies``: ended with its process, not by a rebalance; ``resumed``:
    goes on with what its process had before it stood still; ``whole``: of a whole broker, which only POP gives.
    ``changes`` counts by trial, process and topic how many rebalances changed a member's queues of that topic.
    """

    queues: Indexes
    process: Indexes
    taken: Floats
    dropped: Floats
    dies: Booleans
    resumed: Booleans
    whole: Booleans
    changes: Indexes


def queue_tenures(scenario: Scenario, times: ProcessTimes, views: Sequence[Views], before: Booleans) -> Tenures:
    """Return all tenures; ``before`` says by process and queue who owned what before the change."""
    # A process that goes on after a standstill thinks that it owns what it owned.
    begins = before | (before[scenario.resumed] & (scenario.resumed >= 0)[:, None])
    latest = [latest_views(view_set.view) for view_set in views]
    columns = [
        _topic_tenures(scenario, times, number, views[number], latest[number], begins) for number in range(len(views))
    ]
    columns = [_cut_tenures(scenario, times, column) for column in columns] if scenario.partitioned_s else columns
    trial, queue, process, taken, dropped, dies, resumed, whole = (
        np.concatenate(columns_of_topics) for columns_of_topics in zip(*columns, strict=True)
    )
    touched, column = np.unique(queue, return_inverse=True)
    key = trial * max(len(touched), 1) + column
    order = np.lexsort((taken, key))
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    rank = np.arange(len(key)) - np.repeat(starts, np.diff(starts, append=len(key)))
    shape = (scenario.request.trials, len(touched), int(rank.max(initial=-1)) + 1)

    def table(values: NDArray[Any], empty: float) -> NDArray[Any]:
        result = np.full(shape, empty, dtype=values.dtype)
        result.reshape(shape[0] * shape[1], shape[2])[key, rank] = values[order]
        return result

    return Tenures(
        touched,
        table(process, NOBODY),
        table(taken, NEVER),
        table(dropped, NEVER),
        table(dies, False),
        table(resumed, False),
        table(whole, False),
        np.stack(
            [_change_counts(scenario, views[number], latest[number], begins, number) for number in range(len(views))],
            axis=2,
        ),
    )


_Columns = tuple[Indexes, Indexes, Indexes, Floats, Floats, Booleans, Booleans, Booleans]


def _cut_tenures(scenario: Scenario, times: ProcessTimes, column: _Columns) -> _Columns:
    """Return the tenures where those of queues out of reach end with the cut and go on after it, where they were."""
    trial, queue, process, taken, dropped, dies, resumed, whole = column
    brokers = np.array([scenario.brokers.index(queue_.broker) for queue_ in scenario.queues], dtype=np.intp)
    reached = times.reached[trial, process]
    is_cut = scenario.partitioned[process, brokers[queue]] & (taken < reached) & (dropped > 0)
    first, later = is_cut & (taken < 0), is_cut & (dropped > reached)
    kept = np.flatnonzero(~is_cut | first)
    goes_on = np.flatnonzero(later)
    pick = np.concatenate([kept, goes_on])
    is_later = np.arange(len(pick)) >= len(kept)
    ends = first[pick] & ~is_later
    return (
        trial[pick],
        queue[pick],
        process[pick],
        np.where(is_later, reached[pick], taken[pick]),
        np.where(ends, 0.0, dropped[pick]),
        dies[pick] | ends,
        np.where(is_later, first[pick], resumed[pick]),
        whole[pick],
    )


def _topic_tenures(
    scenario: Scenario, times: ProcessTimes, number: int, views: Views, latest: Indexes, before: Booleans
) -> _Columns:
    """Return trial, queue, process, gain, drop and kinds of end and beginning of all tenures of a topic's touched
    queues."""
    touched = _touched(scenario, number, views, before)
    if not scenario.request.pops:
        return _tenures_of(scenario, times, views, latest, _QueueSets(views.owned & touched, before & touched))
    was = scenario.shares_whole_brokers(len(scenario.initial))
    now = np.broadcast_to(scenario.present & was, touched.shape) & touched if scenario.resizes else None
    tenures_of = [
        _tenures_of(
            scenario,
            times,
            views,
            latest,
            _QueueSets(
                views.owned & touched & (views.whole == whole)[:, None, None],
                before & touched & (was == whole),
                now if whole else None,
                whole,
            ),
        )
        for whole in (True, False)
    ]
    trial, queue, process, taken, dropped, dies, resumed, whole = (
        np.concatenate(columns) for columns in zip(*tenures_of, strict=True)
    )
    return trial, queue, process, taken, dropped, dies, resumed, whole


@dataclass(frozen=True, slots=True, eq=False)
class _QueueSets:
    """What a process may have, by process and queue: under each view, before the change, and as it takes effect.

    Under POP there are two: a client that is given whole brokers instead of queues drops the queues and takes the
    brokers.
    """

    owned: Booleans
    before: Booleans
    now: Booleans | None = None
    whole: bool = False


def _tenures_of(
    scenario: Scenario, times: ProcessTimes, views: Views, view_in_force: Indexes, queue_sets: _QueueSets
) -> _Columns:
    """Return the tenures of one set of queues; ``view_in_force``: the view in force after each rebalance."""
    was, never = len(queue_sets.owned), len(queue_sets.owned) + 1
    sets = np.concatenate([queue_sets.owned, queue_sets.before[None], np.zeros_like(queue_sets.before)[None]])
    shape, resumes = (*view_in_force.shape[:2], 1), scenario.resumed >= 0
    first = np.where(resumes, times.heartbeat, ALWAYS)[:, :, None]
    steps = [
        np.full(shape, never),
        np.full(shape, was),
        np.where(view_in_force == NOTHING_NEW, was, view_in_force),
        np.full(shape, never),
    ]
    at = [first, views.at, times.stopped[:, :, None]]
    if queue_sets.now is not None:
        sets = np.concatenate([sets, queue_sets.now[None]])
        steps.insert(2, np.full(shape, never + 1))
        at.insert(1, np.zeros(shape))
    trial, process, queue, step, end = _spells(sets, np.concatenate(steps, axis=2))
    when = np.concatenate(at, axis=2)
    dropped = np.minimum(when[trial, process, end], times.stopped[trial, process])
    dies = (end == when.shape[2] - 1) & np.isfinite(dropped)
    resumed, whole = (step == 0) & resumes[process], np.full(len(trial), queue_sets.whole)
    return trial, queue, process, when[trial, process, step], dropped, dies, resumed, whole


def _spells(sets: Booleans, set_of_step: Indexes) -> tuple[Indexes, Indexes, Indexes, Indexes, Indexes]:
    """Return trial, process, queue, first and last step of each time that a process has a queue without a break.

    ``sets`` says by number, process and queue what a set holds; ``set_of_step`` gives the set after each step, by trial
    and process, nothing at both ends. Few steps change anything, so only those are compared queue by queue.
    """
    numbers = _numbers(sets)[set_of_step, np.arange(set_of_step.shape[1])[None, :, None]]
    trial, process, step = np.nonzero(np.diff(numbers, axis=2))
    old, new = (sets[set_of_step[trial, process, step + later], process] for later in (0, 1))
    of_process = (trial * set_of_step.shape[1] + process) * sets.shape[2]

    def in_order(events: Booleans) -> Indexes:
        """Return which queue of which process in which trial, and the step, in one number, ascending."""
        event, queue = np.nonzero(events)
        return np.sort((of_process[event] + queue) * set_of_step.shape[2] + step[event])

    begins, ends = in_order(new & ~old), in_order(old & ~new)
    cell, step = np.divmod(begins, set_of_step.shape[2])
    trial, process, queue = np.unravel_index(cell, (*set_of_step.shape[:2], sets.shape[2]))
    return trial, process, queue, step, ends % set_of_step.shape[2]


def _numbers(sets: Booleans) -> NDArray[np.uint64]:
    """Return a number for each set of queues, by the other axes: two sets of a million share one hardly ever.

    It has two sums of fixed random weights, one for each eight queues; of 20 000 they stay whole numbers below 2^53.
    """
    packed = np.packbits(sets, axis=-1).astype(float)
    weights = np.random.default_rng(0).integers(1, _LARGEST_WEIGHT, (packed.shape[-1], 2)).astype(float)
    sums = (packed @ weights).astype(np.uint64)
    numbers: NDArray[np.uint64] = sums[..., 0] * np.uint64(_ODD) + sums[..., 1]
    return numbers


def _touched(scenario: Scenario, number: int, views: Views, before: Booleans) -> Booleans:
    """Return by process and queue whether the process ever has the queue, and a rebalance or the end of a process can
    touch it."""
    mine = np.isin(np.arange(len(scenario.queues)), np.concatenate(scenario.topics[number].queues))
    ever = before | views.owned.any(axis=0)
    always = before & views.owned.all(axis=0)
    brokers = np.array([scenario.brokers.index(queue.broker) for queue in scenario.queues], dtype=np.intp)
    ends = (
        np.array([process.ends_s is not None for process in scenario.processes])[:, None]
        | scenario.partitioned[:, brokers]
    )
    touched = ((ever & ~always) | (ever & ends)).any(axis=0) & mine
    if (views.whole != scenario.shares_whole_brokers(len(scenario.initial))).any():
        touched = ever.any(axis=0) & mine
    result: Booleans = ever & touched
    return result


def latest_views(view: Indexes) -> Indexes:
    """Return the view in force after each rebalance: that of the last rebalance which showed anything."""
    numbers = np.where(view == NOTHING_NEW, -1, np.arange(view.shape[2]))
    last = np.maximum.accumulate(numbers, axis=2)
    return np.where(last < 0, NOTHING_NEW, np.take_along_axis(view, np.maximum(last, 0), axis=2))


def _change_counts(scenario: Scenario, views: Views, latest: Indexes, before: Booleans, number: int) -> Indexes:
    """Return by trial and process how many rebalances changed which queues of the topic the member owns."""
    trials, processes, _ = views.at.shape
    mine = np.isin(np.arange(len(scenario.queues)), np.concatenate(scenario.topics[number].queues))
    sets = _numbers(np.concatenate([views.owned, (before & mine)[None]]))
    set_of_step = np.concatenate([np.full((trials, processes, 1), NOTHING_NEW), latest], axis=2)
    numbers = sets[
        set_of_step, np.arange(processes)[None, :, None]
    ]  # NOTHING_NEW is the last row: what it owned before
    counts: Indexes = (np.diff(numbers, axis=2) != 0).sum(axis=2)
    return counts
