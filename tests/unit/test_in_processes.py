"""Work in a few processes: in order, no further ahead than needed, and a killed process costs its own item alone."""

import os
import signal
from collections.abc import Iterator

import pytest

from planner.runs.processes import AHEAD, KilledError, in_processes

pytestmark = pytest.mark.slow

JOBS = 2


def double(number: int) -> int:
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if number > 100:
        raise ValueError(number)
    return 2 * number


def test_items_are_taken_as_they_are_needed() -> None:
    """Red when a thousand groups are read before the first one is played."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(12):
            taken.append(number)
            yield number

    for done, result in enumerate(in_processes(double, numbers(), JOBS), start=1):
        assert result == 2 * (done - 1)
        assert len(taken) <= done + AHEAD * JOBS
    assert len(taken) == 12


def test_a_killed_process_costs_its_item_and_no_other() -> None:
    items = [1, 2, -1, 3, 4, 5, 6, -2, 7]
    results = list(in_processes(double, items, JOBS))
    assert [type(it) is KilledError for it in results] == [item < 0 for item in items]
    assert [it for it in results if not isinstance(it, KilledError)] == [2 * item for item in items if item > 0]


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="101"):
        list(in_processes(double, [1, 101, 2], JOBS))


def test_nothing_needs_no_result() -> None:
    assert list(in_processes(double, iter(()), JOBS)) == []
