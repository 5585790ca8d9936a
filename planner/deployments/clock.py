"""``ServerClock``: the API server's time, which is the same for all executors wherever they run."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

_ASK_AFTER_S: Final = 30.0
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


class ServerClock:
    """Gives the server's time; asks every 30 s and counts on between, whatever the host's clock does.

    On Linux the time in which the machine was suspended counts.
    """

    def __init__(self, ask: Callable[[], datetime]) -> None:
        self._ask = ask
        self._last_answer: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """Return the time in UTC, within about a second. Raises ``OutOfReachError`` when the server does not answer."""
        if self._last_answer is None or passed_s() - self._last_answer[1] > _ASK_AFTER_S:
            server_time = self._ask()
            self._last_answer = (server_time, passed_s())
        server_time, at = self._last_answer
        return server_time + timedelta(seconds=passed_s() - at)


def passed_s() -> float:
    """Return seconds that pass whatever the host's clock is set to: since the machine started, on Linux.

    ``time.monotonic`` stands still while a machine is suspended: one that wakes would take its lease for its own still.
    """
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)
