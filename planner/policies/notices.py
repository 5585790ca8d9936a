"""What people should know of a policy that no single run shows: a hold that lasts, and decisions that stay away.

What is known of earlier runs is kept in one file of the data folder, ``last-decisions.json``. Runs that are cleared or
come late change nothing in it, so nothing is noticed twice.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from planner.decision.decision import HoldCause
from planner.documents.data import DataKind
from planner.errors import BadInputError
from planner.storage.files import write_atomically
from planner.text.words import duration

log = logging.getLogger(__name__)

FILE: Final = "last-decisions.json"
FINE: Final = (HoldCause.RIGHT_ALREADY,)
"""Holds that may last for ever."""


class Notice(NamedTuple):
    """An event by name, and the sentence that says which policy and why."""

    event: str
    sentence: str


@dataclass(frozen=True, slots=True)
class NoticeRules:
    """When a policy is noticed: after so many runs with one cause to hold, or so long without a decision."""

    hold_runs: int
    overdue_after: timedelta


@dataclass(frozen=True, slots=True)
class Result:
    """What one run made of a policy: ``hold`` is the cause of a hold, ``reason`` says why in a sentence."""

    policy: str
    is_decided: bool
    hold: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class PastResults:
    """What earlier runs made of one policy.

    ``decided_at`` is the time of its last decision, of the first run that knew it where there is none yet. ``hold`` is
    the last decision's cause to hold, for ``runs`` runs in a row since ``held_since``.
    """

    decided_at: datetime
    hold: str | None = None
    held_since: datetime | None = None
    runs: int = 0
    is_overdue: bool = False


@dataclass(frozen=True, slots=True)
class LastDecisions:
    """What is known of all policies, by name, up to the run of ``at``."""

    at: datetime
    policies: dict[str, PastResults] = field(default_factory=dict)


LAST_DECISIONS: DataKind[LastDecisions] = DataKind("LastDecisions", TypeAdapter(LastDecisions))


def record_results(data: Path, at: datetime, results: Sequence[Result], rules: NoticeRules) -> Sequence[Notice]:
    """Add a run's results to the data folder's file; return what is to be noticed of them.

    The run of ``at`` has results for all policies; one that has none is forgotten. Nothing for a run that the file
    knows already, or that is older than what it knows.
    """
    path = data / FILE
    before = _read(path)
    if before is not None and at <= before.at:
        return ()
    known = {} if before is None else before.policies
    after = {result.policy: _after(known.get(result.policy), result, at) for result in results}
    notices = [notice for result in results for notice in _notices(after[result.policy], result, at, rules)]
    overdue = {name: replace(past, is_overdue=_is_overdue(past, at, rules)) for name, past in after.items()}
    write_atomically(path, LAST_DECISIONS.dump(LastDecisions(at, overdue)))
    return notices


def _after(before: PastResults | None, result: Result, at: datetime) -> PastResults:
    if not result.is_decided:
        return before or PastResults(at)
    if before is not None and result.hold is not None and before.hold == result.hold:
        return PastResults(at, result.hold, before.held_since, before.runs + 1)
    return PastResults(at, result.hold, None if result.hold is None else at, 0 if result.hold is None else 1)


def _is_overdue(past: PastResults, at: datetime, rules: NoticeRules) -> bool:
    return at - past.decided_at > rules.overdue_after


def _notices(past: PastResults, result: Result, at: datetime, rules: NoticeRules) -> Iterator[Notice]:
    if _is_overdue(past, at, rules) and not past.is_overdue:
        ago = duration((at - past.decided_at).total_seconds())
        yield Notice("overdue", f"{result.policy} has had no decision for {ago}: {result.reason}")
    is_news = result.is_decided and past.runs == rules.hold_runs
    if is_news and past.hold not in FINE and past.held_since is not None:
        since = f"{past.held_since:%Y-%m-%d %H:%M} UTC"
        yield Notice("holding", f"{result.policy} holds since {since}, {past.runs} runs in a row: {result.reason}")


def policies_known(data: Path) -> Mapping[str, PastResults]:
    """Return what earlier runs made of the policies, by name."""
    before = _read(data / FILE)
    return {} if before is None else before.policies


def _read(path: Path) -> LastDecisions | None:
    """Return what earlier runs left, ``None`` where that is nothing.

    A file that cannot be read is set aside, and notices begin anew: no decision rests on it, so no run fails by it.
    """
    if not path.exists():
        return None
    try:
        return LAST_DECISIONS.read(path)
    except BadInputError as error:
        aside = path.with_name(f"{path.name}.unreadable")
        path.replace(aside)
        log.warning("%s: notices begin anew, and the file is kept as %s", error, aside.name)
        return None
