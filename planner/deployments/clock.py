"""``ServerClock``: the API server's time, which is the same for all executors wherever they run."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

_ASK_AFTER_S: Final = 30.0


class ServerClock:
    """Tells the server's time; asks every 30 s and counts on between, whatever the host's clock does."""

    def __init__(self, ask: Callable[[], datetime]) -> None:
        self._ask = ask
        self._told: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """Return the time in UTC, within about a second. Raises ``OutOfReachError`` when the server does not tell."""
        if self._told is None or time.monotonic() - self._told[1] > _ASK_AFTER_S:
            told = self._ask()
            self._told = (told, time.monotonic())
        told, at = self._told
        return told + timedelta(seconds=time.monotonic() - at)
