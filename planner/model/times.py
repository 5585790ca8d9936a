"""Times at which something was read, made or decided."""

from datetime import datetime
from typing import Final

FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 2999


def check_time(what: str, at: datetime) -> None:
    """Raise ``ValueError`` for a time without zone, or so early or late that a calendar ends."""
    if at.tzinfo is None:
        raise ValueError(f"{what} to carry a time with its zone, not {at.isoformat()}")
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"{what} to be of the years {FIRST_YEAR} to {LAST_YEAR}, not {at.year}")


def check_times(what: str, *times: datetime | None) -> None:
    """Raise ``ValueError`` as ``check_time`` does for one of several times; those that are ``None`` are left out."""
    for at in times:
        if at is not None:
            check_time(what, at)
