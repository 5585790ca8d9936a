"""A group's load by minute in the days before the recent past that its snapshot shows."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import isfinite

from planner.model.times import check_time

LONGEST_PAST = timedelta(days=7)
"""A week: it has every day of it once."""
MINUTE = timedelta(minutes=1)
MOST_MINUTES = LONGEST_PAST // MINUTE


@dataclass(frozen=True, slots=True)
class PastLoad:
    """Arrivals in messages per second over all data queues, of whole minutes of the clock (UTC), oldest first.

    The last minute ends at ``until``. ``None`` is a minute that nobody observed. ``averaged`` are the positions of
    minutes whose rate is that of a longer span of which they are not the first whole minute. Raises ``ValueError`` for
    what is no such load, or of more than a week.
    """

    until: datetime
    rates: tuple[float | None, ...]
    averaged: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_time("a past load", self.until)
        if self.until.second or self.until.microsecond:
            raise ValueError(f"a past load to end with a minute, not at {self.until.isoformat()}")
        if not 0 < len(self.rates) <= MOST_MINUTES:
            raise ValueError(f"a past load of 1 to {MOST_MINUTES} minutes, not {len(self.rates)}")
        known = [rate for rate in self.rates if rate is not None]
        if not (isfinite(sum(known)) and min(known, default=0.0) >= 0):
            raise ValueError("rates of a past load to be finite and 0 or more")
        positions = (-1, *self.averaged, len(self.rates))
        if not all(earlier < later for earlier, later in pairwise(positions)):
            raise ValueError(f"averaged minutes of a past load in order, from 0 to {len(self.rates) - 1}")
