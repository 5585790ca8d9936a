"""Work on many policies in a few processes: a process that the system kills costs what it worked on, nothing else."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from planner.errors import DefectError

T = TypeVar("T")
R = TypeVar("R")


class KilledError(DefectError):
    """The process that worked on an item was killed, when it worked on nothing else, too."""


def in_processes(work: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R | KilledError]:
    """Yield what ``work`` makes of each item, in their order, in ``jobs`` processes at a time.

    Where a process is killed, the items that were under way are tried once more, each alone: so the one that takes too
    much memory is a ``KilledError`` and its neighbours are not. What ``work`` raises is raised. ``work``, items and
    results travel between processes.
    """
    rest = list(items)
    while rest:
        done = 0
        with _processes(jobs) as pool:
            futures = [pool.submit(work, item) for item in rest]
            for future in futures:
                result = _result(future)
                if isinstance(result, KilledError):
                    break
                yield result
                done += 1
        yield from (_alone(work, item) for item in rest[done : done + jobs])
        rest = rest[done + jobs :]


def may_have_children() -> bool:
    """Return whether this process may start others: a daemon of ``multiprocessing``, as of Celery's pool, may not."""
    return not multiprocessing.current_process().daemon


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processes(jobs: int) -> ProcessPoolExecutor:
    # Not forked: the Kafka client's threads would be missing in the child, and its locks would stay taken.
    return ProcessPoolExecutor(max_workers=jobs, mp_context=multiprocessing.get_context("spawn"))


def _alone(work: Callable[[T], R], item: T) -> R | KilledError:
    with _processes(1) as pool:
        return _result(pool.submit(work, item))


def _result(future: "Future[R]") -> R | KilledError:
    try:
        return future.result()
    except BrokenProcessPool:
        return KilledError(
            "the process that worked on it was killed: give the run more memory, planner run fewer --jobs"
        )
