"""What requests of every system share: figures that must be finite, and versions."""

import re
from dataclasses import dataclass

from planner.allocation import fields
from planner.errors import BadInputError

DEFAULT_TRIALS = 200
MOST_SECONDS = 86_400.0
MOST_RATE = 1e7
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def number(value: object, field: str, least: float, most: float) -> float:
    """Return the value, checked to be a number from ``least`` to ``most``, which are finite.

    It is compared as it is, as an integer of hundreds of digits has no float; NaN is in no range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise fields.refusal(field, value, f"a number from {least:g} to {most:g}")
    return float(value)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release by its numbers; ``5.1`` counts as ``5.1.0``, what follows the numbers is left aside."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version(value: object, field: str) -> Version:
    """Return the version of a text like ``5.5.0``."""
    match = _VERSION.match(value) if isinstance(value, str) else None
    if match is None:
        raise fields.refusal(field, value, "a version such as 5.5.0")
    try:
        return Version(*(int(number or 0) for number in match.groups()))
    except ValueError as error:  # thousands of digits
        raise BadInputError(f"{field}: a number is too long, expected a version such as 5.5.0") from error
