"""Clusters that the test files of one process share, each running only from one file that needs it to the next.

A broker that nobody asks takes some percent of a processor. Three processes with two brokers of each kind and a control
plane took half of a machine with two processors from the tests that did work.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TypeVar

import pytest

Cluster = TypeVar("Cluster")


class SharedClusters:
    """What runs, by the name of the fixture that hands it out."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[object, ExitStack]] = {}

    def get(self, fixture: str, start: Callable[[ExitStack], Cluster]) -> Cluster:
        """Return what runs for this fixture; ``start`` starts it and puts on the stack, now or later, how it stops."""
        if fixture not in self._running:
            undo = ExitStack()
            try:
                self._running[fixture] = (start(undo), undo)
            except BaseException:
                undo.close()
                raise
        found: Cluster = self._running[fixture][0]  # type: ignore[assignment]
        return found

    def stop_all_but(self, kept: Iterable[str]) -> None:
        """Stop what runs for any other fixture."""
        for fixture in self._running.keys() - set(kept):
            self._running.pop(fixture)[1].close()


def fixtures_of_file(item: pytest.Item) -> set[str]:
    """Return the names of all fixtures that the tests of this test's file use."""
    return {
        name for other in item.session.items if other.path == item.path for name in getattr(other, "fixturenames", ())
    }
