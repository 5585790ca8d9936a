"""``BackgroundTask``: one of the things that a controller does side by side."""

import logging
import threading
import time
from collections.abc import Callable

from planner.errors import PlannerError

log = logging.getLogger(__name__)


class BackgroundTask:
    """An action repeated on a thread of its own, whatever goes wrong, until ``stop`` is set.

    ``every_s`` lies between an end and the next beginning, at least a second after a failure, which ``failed`` gets
    by the task's name.
    """

    def __init__(
        self,
        name: str,
        action: Callable[[], object],
        every_s: float,
        stop: threading.Event,
        failed: Callable[[str], object],
    ) -> None:
        self.name, self._action, self._every_s, self._stop, self._failed = name, action, every_s, stop, failed
        self.began_at = time.monotonic()
        self.is_done = False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.began_at = time.monotonic()
            self._stop.wait(self._every_s if self._has_done() else max(self._every_s, 1.0))

    def _has_done(self) -> bool:
        try:
            self._action()
        except PlannerError as error:
            self._failed(self.name)
            log.warning("to be tried again", extra={"part": self.name, "error": str(error)})
            return False
        except Exception:  # one task's fault must not end its thread unnoticed: it is logged, counted, tried again
            self._failed(self.name)
            log.exception("a part failed, which is a fault of the controller", extra={"part": self.name})
            return False
        self.is_done = True
        return True
