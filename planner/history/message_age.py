"""How old the oldest waiting message is, from the broker's offset over time."""

from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta

REACH = timedelta(hours=6)
"""How far back the broker's offsets are remembered: a message that waits longer waits *at least* so long."""


class OffsetCurve:
    """The broker's offset of one queue over time, as far as it still shows when a waiting message came.

    Forgets what it cannot need: points beyond ``REACH``, before a reset of the broker's offset, and before the message
    that was the oldest waiting one already.
    """

    def __init__(self) -> None:
        self._times: list[datetime] = []
        self._offsets: list[int] = []
        self._start = 0

    def add(self, at: datetime, broker_offset: int) -> None:
        """Remember that the broker's offset was so large at ``at``; times come in ascending order."""
        if self._offsets and broker_offset < self._offsets[-1]:
            self._times, self._offsets, self._start = [], [], 0
        self._times.append(at)
        self._offsets.append(broker_offset)

    def age_s(self, consumer_offset: int, lag: int) -> tuple[float, bool]:
        """Return for how many seconds the message at ``consumer_offset`` has been there, and whether that is the least.

        Between two samples messages are taken to come evenly: 30 messages between 10:00:00 and 10:00:30, the tenth of
        them the oldest that waits, give 21 s at 10:00:30. Nothing waits: 0.
        """
        at = self._times[-1]
        self._start = max(self._start, bisect_left(self._times, at - REACH))
        before = bisect_right(self._offsets, consumer_offset) - 1
        start, self._start = self._start, max(self._start, before)
        if lag == 0:
            return 0.0, False
        if before < start:
            return (at - self._times[start]).total_seconds(), True
        return self._interpolated_s(before, consumer_offset), False

    def _interpolated_s(self, before: int, consumer_offset: int) -> float:
        at, came_after = self._times[-1], self._times[before]
        first, last = self._offsets[before : before + 2]
        share = (consumer_offset - first) / (last - first)
        within = _micros(self._times[before + 1] - came_after)
        return round(_micros(at - came_after) - share * within) / 1_000_000


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
