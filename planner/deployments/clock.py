"""``ServerClock``: the API server's time, which is the same for all executors wherever they run."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

_ASK_AFTER_S: Final = 30.0


class ServerClock:
    """Gives the server's time; asks every 30 s and counts on between, whatever the host's clock does."""

    def __init__(self, ask: Callable[[], datetime]) -> None:
        self._ask = ask
        self._last_answer: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """Return the time in UTC, within about a second. Raises ``OutOfReachError`` when the server does not answer."""
        if self._last_answer is None or time.monotonic() - self._last_answer[1] > _ASK_AFTER_S:
            server_time = self._ask()
            self._last_answer = (server_time, time.monotonic())
        server_time, at = self._last_answer
        return server_time + timedelta(seconds=time.monotonic() - at)
