"""What changes of every system share: how members end, what is refused of any, and where unknown ids may sort."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from planner.allocation import fields
from planner.errors import BadInputError, UnknownNameError
from planner.forecast.common.request_fields import MOST_SECONDS, number

GRACEFUL, CRASH, SILENT, FREEZE, CUT = "graceful", "crash", "silent", "freeze", "cut"
EXIT_MODES = (GRACEFUL, CRASH, SILENT)
MOST_PLACEMENTS = 64


def refuse_repeated(ids: Sequence[str], field: str, noun: str) -> None:
    """Refuse a list that has an id twice."""
    earlier: set[str] = set()
    for name in ids:
        if name in earlier:
            raise BadInputError(f"{field}: found {fields.shown(name)} twice, expected each {noun} once")
        earlier.add(name)


def refuse_none(names: Sequence[object], noun: str, verb: str) -> None:
    """Refuse an empty ``change.clients``."""
    if not names:
        raise BadInputError(f"change.clients: found none, expected at least one {noun} that {verb}")


def expect_known(name: str, known: Sequence[str], field: str, nouns: str) -> None:
    """Refuse a name that the request does not know, and list those that it knows."""
    if name not in known:
        listed = ", ".join(known[:12]) or "none"
        raise UnknownNameError(f"{field}: {fields.shown(name)} is not in the request, whose {nouns} are {listed}")


def check_seconds(change: object) -> None:
    """Refuse seconds of a change that are none, or more than a day."""
    for name in ("stagger_s", "interval_s", "start_s", "ready_s", "min_ready_s", "grace_s"):
        if hasattr(change, name):
            number(getattr(change, name), f"change.{name}", 0, MOST_SECONDS)


def gaps(positions: int, unknown: int, trials: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Return the gaps between known ids that unknown ones take in each placement: all of them where they are few."""
    if positions**unknown <= min(MOST_PLACEMENTS, trials):
        return list(product(range(positions), repeat=unknown))
    return [tuple(row) for row in random.integers(0, positions, (min(MOST_PLACEMENTS, trials), unknown)).tolist()]


def labels(ids: Sequence[str | None]) -> tuple[str, ...]:
    """Return the ids, ``new-1`` and so on where there is none."""
    taken = {name for name in ids if name is not None}
    result, number = [], 0
    for name in ids:
        label = name
        while label is None or (name is None and label in taken):
            number += 1
            label = f"new-{number}"
        result.append(label)
    return tuple(result)
