"""Change windows: the times of the week at which a group may be changed. The time is an argument."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """One window on some days: from minute ``opens`` of the day up to, not including, minute ``closes``.

    ``days`` are as ``datetime.weekday`` counts them, Monday is 0. A window that closes before it opens goes on into the
    next day. Minutes are those of the clock on the wall in ``zone``: when summer time ends, an hour counts twice.
    """

    days: frozenset[int]
    opens: int
    closes: int
    zone: tzinfo

    def __post_init__(self) -> None:
        if not self.days or not self.days <= set(range(7)):
            raise ValueError(f"a change window to have days from 0 to 6, not {sorted(self.days)}")
        if not (0 <= self.opens < MINUTES_A_DAY and 0 < self.closes <= MINUTES_A_DAY and self.opens != self.closes):
            raise ValueError(f"a change window to open and close in a day, not {self.opens} to {self.closes}")

    def is_open(self, at: datetime) -> bool:
        """Return whether ``at``, a time with zone, lies in the window."""
        local = at.astimezone(self.zone)
        today, minute = local.weekday(), local.hour * 60 + local.minute
        if self.opens < self.closes:
            return today in self.days and self.opens <= minute < self.closes
        return (today in self.days and minute >= self.opens) or ((today - 1) % 7 in self.days and minute < self.closes)

    def next_opening(self, at: datetime) -> datetime:
        """Return the first time after ``at`` at which the window opens, in its zone."""
        local = at.astimezone(self.zone)
        today = local.replace(hour=self.opens // 60, minute=self.opens % 60, second=0, microsecond=0, fold=0)
        openings = (today + timedelta(days=ahead) for ahead in range(8))
        return next(opening for opening in openings if opening > at and opening.weekday() in self.days)


def why_closed(windows: Sequence[ChangeWindow], at: datetime) -> str | None:
    """Return the sentence that no window is open at ``at`` and when the next one opens; ``None`` when one is."""
    if any(window.is_open(at) for window in windows):
        return None
    opening = min(window.next_opening(at) for window in windows)
    return f"no change window is open; the next one opens on {DAYS[opening.weekday()]}, {opening:%Y-%m-%d %H:%M %Z}"
