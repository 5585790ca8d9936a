"""``Once``: what several threads want is asked for by the first of them, and kept for the others."""

import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class Once:
    """Answers by key, each asked for once and kept for ``kept_s`` seconds; with ``keeps_errors`` failures, too."""

    def __init__(self, kept_s: float = math.inf, *, keeps_errors: bool = True) -> None:
        self._kept_s = kept_s
        self._keeps_errors = keeps_errors
        self._lock = threading.Lock()
        self._known: dict[Hashable, tuple[float, Future[Any]]] = {}

    def get(self, key: Hashable, ask: Callable[[], _T]) -> _T:
        """Return what ``ask`` returned, or raise what it raised, for the first caller with this key."""
        with self._lock:
            asked_at, answer = self._known.get(key, (-math.inf, None))
            is_mine = answer is None or time.monotonic() - asked_at > self._kept_s
            if answer is None or is_mine:
                answer = Future()
                self._known[key] = (time.monotonic(), answer)
        if is_mine:
            self._settle(key, answer, ask)
        result: _T = answer.result()
        return result

    def _settle(self, key: Hashable, answer: "Future[Any]", ask: Callable[[], Any]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            # The waiting threads have to learn of it, whatever it was; the first one raises it from the answer, too.
            answer.set_exception(error)
            if not self._keeps_errors:
                with self._lock:
                    self._known.pop(key, None)
