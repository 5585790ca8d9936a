"""Times at which something was read."""

from datetime import datetime
from typing import Final

FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 2999


def check_time(what: str, at: datetime) -> None:
    """Raise ``ValueError`` for a time without zone, or so early or late that a calendar ends."""
    if at.tzinfo is None:
        raise ValueError(f"{what} carries a time without zone: {at.isoformat()}")
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"{what} is of the year {at.year}, expected {FIRST_YEAR} to {LAST_YEAR}")
