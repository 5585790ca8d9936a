"""What requests of ``planner forecast`` have in common, whatever the system."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.changes import EXIT_MODES, expect_known, refuse_none, refuse_repeated
from planner.forecast.common.request_fields import DEFAULT_TRIALS, MOST_SECONDS, number
from planner.forecast.common.rolling_update import Rolling, roll

Document = Mapping[str, Any]

MOST_TRIALS = 10_000
LARGEST_SEED = 2**63 - 1


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


def exit_mode(document: Document) -> str:
    """Return ``change.how``."""
    require_fields(document, "change", {"how": f"one of {', '.join(EXIT_MODES)}"})
    if document["how"] not in EXIT_MODES:
        raise fields.refusal("change.how", document["how"], f"one of {', '.join(EXIT_MODES)}")
    return str(document["how"])


ROLLING_FIELDS = ("max_surge", "max_unavailable", "start_s", "ready_s", "min_ready_s", "grace_s")
"""What a change of kind ``rolling_update`` may carry, besides the ids of new pods."""


DEFAULT_SHARE = "25%"
DEFAULT_GRACE_S = 30.0
MOST_PODS = 10_000
MOST_PERCENT = 1_000
_PERCENT = re.compile(r"(\d{1,4})%")
_SHARE = f'a whole number from 0 to {MOST_PODS}, or a share from "0%" to "{MOST_PERCENT}%"'


def read_rolling(document: Mapping[str, Any], replicas: int) -> Rolling:
    """Return the rolling update that a change describes, for a group of so many pods, one client each.

    Shares are rounded as ``ResolveFenceposts`` does: surge up, unavailable down, and one pod where both come to none.
    Raise ``BadInputError`` for what the API server refuses, too.
    """
    given = {name: document.get(name, DEFAULT_SHARE) for name in ("max_surge", "max_unavailable")}
    surge = _pods(given["max_surge"], "change.max_surge", replicas, up=True)
    unavailable = _pods(given["max_unavailable"], "change.max_unavailable", replicas, up=False)
    if all(value in (0, "0%") for value in given.values()):
        raise BadInputError("change.max_unavailable: found 0 beside a max_surge of 0, expected at least one of them")
    return roll(
        replicas,
        surge,
        unavailable,
        start_s=seconds(document, "start_s", "change", 0.0),
        ready_s=seconds(document, "ready_s", "change"),
        min_ready_s=seconds(document, "min_ready_s", "change", 0.0),
        grace_s=seconds(document, "grace_s", "change", DEFAULT_GRACE_S),
    )


def _pods(value: object, field: str, replicas: int, *, up: bool) -> int:
    """Return a number of pods, or a share of all of them, rounded up or down."""
    if not isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_PODS:
            raise fields.refusal(field, value, _SHARE)
        return value
    percent = _PERCENT.fullmatch(value)
    if percent is None or int(percent[1]) > (MOST_PERCENT if up else 100):
        raise fields.refusal(field, value, _SHARE if up else 'a number of pods, or a share from "0%" to "100%"')
    whole, rest = divmod(int(percent[1]) * replicas, 100)
    return whole + (1 if up and rest else 0)
