"""Two halves by a fixed hash: constants are fitted on one, and the other one judges them."""

import hashlib
from collections.abc import Iterable

from tests.conformance.record import Record

CALIBRATION, CHECK = "calibration", "check"


def half(record_id: str) -> str:
    """Return the half of a transition; it rests on nothing but its id."""
    return CHECK if hashlib.sha256(f"half {record_id}".encode()).digest()[0] % 2 else CALIBRATION


def of_half(records: Iterable[Record], name: str) -> list[Record]:
    """Return the records of that half."""
    return [record for record in records if half(record.id) == name]
