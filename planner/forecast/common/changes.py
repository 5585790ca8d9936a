"""What changes of every system share: their kind, which members it names, how they end, and where unknown ids may
sort."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from planner.allocation import fields
from planner.errors import BadInputError, UnknownNameError
from planner.forecast.common.request_fields import require_fields

GRACEFUL, CRASH, SILENT, FREEZE, CUT = "graceful", "crash", "silent", "freeze", "cut"
EXIT_MODES = (GRACEFUL, CRASH, SILENT)
MOST_PLACEMENTS = 64

Document = Mapping[str, Any]


def read_kind(value: object, kinds: Mapping[str, tuple[tuple[str, ...], Any]]) -> tuple[Document, Any]:
    """Return the change's document, checked to carry its kind's names and no others, and what ``kinds`` has for it."""
    document = fields.mapping(value, "change", 'an object such as {"kind": "join", "clients": [{"id": null}]}')
    require_fields(document, "change", {"kind": f"one of {', '.join(kinds)}"})
    kind = document["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise fields.refusal("change.kind", kind, f"one of {', '.join(kinds)}")
    names, reader = kinds[kind]
    fields.only_known(document, ("kind", *names), "change")
    return document, reader


def read_named_members(document: Document, ids: Sequence[str | None], noun: str) -> tuple[str, ...]:
    """Return the ids in ``change.clients``: at least one, each once, each of the group, which calls them ``noun``."""
    expected = f"a list of {noun} ids"
    require_fields(document, "change", {"clients": expected})
    known = [name for name in ids if name is not None]
    names = fields.sequence(document["clients"], "change.clients", expected)
    for index, name in enumerate(names):
        expect_known(fields.text(name, f"change.clients[{index}]"), known, f"change.clients[{index}]", "members")
    refuse_repeated(names, "change.clients", noun)
    refuse_none(names, noun, "changes")
    return tuple(names)


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


def exit_mode(document: Document) -> str:
    """Return ``change.how``."""
    require_fields(document, "change", {"how": f"one of {', '.join(EXIT_MODES)}"})
    if document["how"] not in EXIT_MODES:
        raise fields.refusal("change.how", document["how"], f"one of {', '.join(EXIT_MODES)}")
    return str(document["how"])


def expect_known(name: str, known: Sequence[str], field: str, nouns: str) -> None:
    """Refuse a name that the request does not know, and list those that it knows."""
    if name not in known:
        listed = ", ".join(known[:12]) or "none"
        raise UnknownNameError(f"{field}: {fields.shown(name)} is not in the request, whose {nouns} are {listed}")


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
