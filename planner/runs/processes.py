"""Work on many policies in a few processes: a process that the system kills costs what it worked on, nothing else."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Final, TypeVar

from planner.errors import DefectError

T = TypeVar("T")
R = TypeVar("R")

AHEAD: Final = 2
"""So many items a process are taken before their results: the next one is there when a process is free."""


class KilledError(DefectError):
    """The process that worked on an item was killed, when it worked on nothing else, too."""


def in_processes(work: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[R | KilledError]:
    """Yield what ``work`` makes of each item, in their order, in ``jobs`` processes at a time.

    Items are taken as they are needed, at most ``AHEAD`` a process before their results. Where a process is killed, the
    items that were under way are tried once more, each alone: so the one that takes too much memory is a
    ``KilledError`` and its neighbours are not. What ``work`` raises is raised. ``work``, items and results travel
    between processes.
    """
    rest = iter(items)
    while waiting := (yield from _until_killed(work, rest, jobs)):
        yield from (_alone(work, item) for item in waiting)


def _until_killed(work: Callable[[T], R], rest: Iterator[T], jobs: int) -> Generator[R, None, list[T]]:
    """Yield results until a process is killed or nothing is left; return the items that were under way then."""
    with _processes(jobs) as pool:
        waiting = deque((item, _submit(pool, work, item)) for item in islice(rest, AHEAD * jobs))
        while waiting:
            result = _result(waiting[0][1])
            if isinstance(result, KilledError):
                return [item for item, _ in waiting]
            waiting.popleft()
            waiting.extend((item, _submit(pool, work, item)) for item in islice(rest, 1))
            yield result
    return []


def may_have_children() -> bool:
    """Return whether this process may start others: a daemon of ``multiprocessing``, as of Celery's pool, may not."""
    return not multiprocessing.current_process().daemon


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processes(jobs: int) -> ProcessPoolExecutor:
    # Not forked: the Kafka client's threads would be missing in the child, and its locks would stay taken.
    return ProcessPoolExecutor(max_workers=jobs, mp_context=multiprocessing.get_context("spawn"))


def _submit(pool: ProcessPoolExecutor, work: Callable[[T], R], item: T) -> "Future[R]":
    """Submit an item; to a pool that has lost a process it is an item that was under way."""
    try:
        return pool.submit(work, item)
    except BrokenProcessPool as error:
        broken: Future[R] = Future()
        broken.set_exception(error)
        return broken


def _alone(work: Callable[[T], R], item: T) -> R | KilledError:
    with _processes(1) as pool:
        return _result(pool.submit(work, item))


def _result(future: "Future[R]") -> R | KilledError:
    try:
        return future.result()
    except BrokenProcessPool:
        return KilledError("the process that worked on it was killed: give the run more memory, or fewer --jobs")
