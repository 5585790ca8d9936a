"""How late the machine wakes who sleeps: what a busy machine adds to every figure that is measured on it."""

import threading
import time
from collections import deque

NAP_S = 0.02
_KEPT = 60_000


class Lateness:
    """A thread that naps and writes down by how much it overslept; a context manager."""

    def __init__(self) -> None:
        self._overslept: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lateness", daemon=True)

    def __enter__(self) -> "Lateness":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def longest_s(self, since: float, until: float) -> float:
        """Return the longest time overslept between two times of ``time.time()``."""
        return max((late for at, late in list(self._overslept) if since <= at <= until), default=0.0)

    def _watch(self) -> None:
        while not self._ended.is_set():
            begun = time.time()
            time.sleep(NAP_S)
            self._overslept.append((begun, time.time() - begun - NAP_S))
