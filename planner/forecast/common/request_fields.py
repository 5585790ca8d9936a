"""What requests of every system share: figures that must be finite, trials, seed, versions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.errors import BadInputError

MOST_TRIALS = 10_000
DEFAULT_TRIALS = 200
LARGEST_SEED = 2**63 - 1
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


def seconds(document: Mapping[str, Any], name: str, field: str, default: float | None = None) -> float:
    """Return the seconds of a field, at most a day; ``default`` where it is absent, else it must be there."""
    if name not in document:
        if default is None:
            raise fields.missing(f"{field}.{name}", f"seconds from 0 to {MOST_SECONDS:g}")
        return default
    return number(document[name], f"{field}.{name}", 0, MOST_SECONDS)


def require_fields(document: Mapping[str, Any], field: str, expected: Mapping[str, str]) -> None:
    """Refuse a document that lacks one of these names; the values say what each should be."""
    for name, description in expected.items():
        if name not in document:
            raise fields.missing(f"{field}.{name}" if field else name, description)


def trials_and_seed(document: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many trials to run, 200 by default, and the seed, 1 by default."""
    trials = fields.whole_number(document.get("trials", DEFAULT_TRIALS), "trials", 1, MOST_TRIALS)
    return trials, fields.whole_number(document.get("seed", 1), "seed", 0, LARGEST_SEED)


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
