"""``Agenda``: which plan is reconciled next. One plan never has two reconciles at once."""

import threading
import time
from collections.abc import Callable
from typing import Final

Key = tuple[str, str]
"""Namespace and name of a plan."""

_SOON: Final = 0.0


class Agenda:
    """Plans by the time when the next reconcile is due, in seconds of ``clock``. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._busy: set[Key] = set()
        self._triggered: set[Key] = set()
        self._changed = threading.Condition()

    def trigger(self, key: Key) -> None:
        """Make the plan due at once: something about it has changed. While a reconcile runs: once more after it."""
        with self._changed:
            self._triggered.add(key)
            self._due[key] = _SOON
            self._changed.notify()

    def take(self, timeout_s: float) -> Key | None:
        """Return the plan that is due first, ``None`` when none is within so many seconds; ``put_back`` must follow."""
        until = self._clock() + timeout_s
        with self._changed:
            while True:
                now, (key, due) = self._clock(), self._first()
                if key is not None and due <= now:
                    self._busy.add(key)
                    self._triggered.discard(key)
                    return key
                if now >= until:
                    return None
                self._changed.wait(max(0.001, min(due, until) - now))

    def put_back(self, key: Key, after_s: float | None) -> None:
        """End a plan's reconcile: the next is due in so many seconds, or when triggered. ``None``: only then."""
        with self._changed:
            self._busy.discard(key)
            if key in self._triggered:
                self._due[key] = _SOON
            elif after_s is None:
                self._due.pop(key, None)
            else:
                self._due[key] = self._clock() + after_s
            self._changed.notify()

    def busy(self) -> frozenset[Key]:
        """Return the plans that are being reconciled."""
        with self._changed:
            return frozenset(self._busy)

    def _first(self) -> tuple[Key | None, float]:
        """Return the plan that is due first, and when; one that is being reconciled is left out."""
        waiting = [(due, key) for key, due in self._due.items() if key not in self._busy]
        if not waiting:
            return None, float("inf")
        due, key = min(waiting)
        return key, due
