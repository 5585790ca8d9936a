"""Two halves: constants are fitted on one, and the other one judges them.

A fixed hash of its id puts a transition into one of them. What was there when the first constants were set had been
looked at as a whole, so all of it is calibration.
"""

import hashlib
from collections.abc import Iterable

from tests.conformance.record import Record

CALIBRATION, CHECK = "calibration", "check"
LOOKED_AT_UNTIL = "2026-11-21T20:00:00+00:00"
"""Records from before, and those without a time, were seen while constants were set (352 of both systems)."""


def half(record: Record) -> str:
    """Return the half of a transition; it rests on its id and on when it was observed."""
    if record.setup.get("when", "") < LOOKED_AT_UNTIL:
        return CALIBRATION
    return CHECK if hashlib.sha256(f"half {record.id}".encode()).digest()[0] % 2 else CALIBRATION


def of_half(records: Iterable[Record], name: str) -> list[Record]:
    """Return the records of that half."""
    return [record for record in records if half(record) == name]
