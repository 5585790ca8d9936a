"""What many trials of one change say, whatever the system: arrays in, the answer's intervals out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = {"p05": 0.05, "p50": 0.50, "p95": 0.95}
_DIGITS = 4
_LEAST_SHARE = 0.05
LEAST_REPORTED = 0.02
"""A cause that makes less of its effect is not reported."""

Document = dict[str, Any]
Interval = dict[str, float]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for pauses or duplicates, with how much of the total it makes in the mean trial.

    ``effect`` is ``pause_s`` or ``duplicates``; ``lever`` are settings that would lower it, empty where none does.
    """

    name: str
    effect: str
    amount: float
    share: float
    lever: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Figures over all queues, one number a trial: longest pause and stall, sums of messages, last owner in place.

    ``None`` where there is no such figure: no pause where nobody consumes before or after, nothing settles where nobody
    does after, no end of the backlog where one client never keeps up, and none that rests on what is unknown.
    ``unread_s``, of changes in which queues pass through several hands: the longest that some queue has nobody; the
    pause runs from the first of them to the last one.
    """

    pause_s: Floats | None
    stall_s: Floats | None
    duplicates: Floats | None
    burst_messages: Floats | None
    settle_s: Floats | None
    drained_s: Floats | None
    moved_queues: NDArray[Any]
    unread_s: Floats | None = None

    def document(self) -> Document:
        """Return every figure's interval."""
        return {
            "pause_s": _interval_or_none(self.pause_s),
            "stall_s": _interval_or_none(self.stall_s),
            "duplicates": None if self.duplicates is None else messages(self.duplicates),
            "burst_messages": None if self.burst_messages is None else messages(self.burst_messages),
            "settle_s": _interval_or_none(self.settle_s),
            "drained_s": _interval_or_none(self.drained_s),
            "moved_queues": messages(self.moved_queues),
        }


def pool_totals(all_totals: Sequence[Totals]) -> Totals:
    """Return the trials of all parts as one; a figure that one of them lacks has no interval."""
    return Totals(
        _joined([totals.pause_s for totals in all_totals]),
        _joined([totals.stall_s for totals in all_totals]),
        _joined([totals.duplicates for totals in all_totals]),
        _joined([totals.burst_messages for totals in all_totals]),
        _joined([totals.settle_s for totals in all_totals]),
        _joined([totals.drained_s for totals in all_totals]),
        np.concatenate([totals.moved_queues for totals in all_totals]),
        _joined([totals.unread_s for totals in all_totals]),
    )


def _joined(columns: Sequence[Floats | None]) -> Floats | None:
    known = [values for values in columns if values is not None]
    return np.concatenate(known) if len(known) == len(columns) else None


def _interval_or_none(values: Floats | None) -> Interval | None:
    return None if values is None else interval(values)


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Every trial of one change: one row a trial, one column a queue, queues in the order of allocation.

    ``pause_s`` is NaN where nobody delivers the queue before or after; ``moves`` says where the owner changes, then
    ``pause_s`` lies between two owners, else it is a stall of a queue that stays. ``owner_before`` and ``owner_after``
    name the client of each queue, ``None`` for nobody. ``moved`` are the queues that the answer lists as such.
    ``settle_s`` and ``drained_s`` are by trial; the latter is when no backlog is left, NaN for never. ``unread_s``, by
    trial, too, is for how long some queue has nobody, where queues pass through several hands. ``unknown`` are
    the figures, by their names in the answer, that rest on what is unknown: each of them is ``null`` there.
    """

    queues: Sequence[list[Any]]
    before: Mapping[str, Sequence[list[Any]]]
    after: Mapping[str, Sequence[list[Any]]]
    owner_before: Sequence[str | None]
    owner_after: Sequence[str | None]
    moved: Sequence[list[Any]]
    moves: NDArray[np.bool_]
    pause_s: Floats
    duplicates: Floats
    burst: Floats
    settle_s: Floats
    drained_s: Floats | None = None
    warnings: Sequence[str] = ()
    causes: Sequence[Cause] = ()
    timeline: Sequence[Document] = ()
    unread_s: Floats | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()

    def document(self) -> Document:
        """Return the answer as design.md section 4 has it, with ``causes`` and ``timeline`` beside it."""
        return {
            "before": {client: list(queues) for client, queues in self.before.items()},
            "after": {client: list(queues) for client, queues in self.after.items()},
            "moved": list(self.moved),
            "queues": [self._queue(column) for column in self._listed()],
            "total": self.totals().document(),
            "warnings": list(self.warnings),
            "causes": [_cause_document(cause) for cause in self.causes],
            "timeline": list(self.timeline),
            **({} if self.unread_s is None else {"unread_s": interval(self.unread_s)}),
            **self.extra,
        }

    def totals(self) -> Totals:
        """Return the figures over all queues."""
        had, has = (any(owner is not None for owner in owners) for owners in (self.owner_before, self.owner_after))
        never_drained = self.drained_s is None or bool(np.isnan(self.drained_s).any())
        totals = Totals(
            pause_s=_longest(self.pause_s, self.moves) if had == has else None,
            stall_s=_longest(self.pause_s, ~self.moves & ~np.isnan(self.pause_s)),
            duplicates=self.duplicates.sum(axis=1),
            burst_messages=np.where(self.moves, self.burst, 0.0).sum(axis=1),
            settle_s=self.settle_s if has or not had else None,
            drained_s=None if never_drained else self.drained_s,
            moved_queues=self.moves.sum(axis=1),
            unread_s=self.unread_s,
        )
        unknown: dict[str, Any] = dict.fromkeys(self.unknown)
        return replace(totals, **unknown)

    def _listed(self) -> list[int]:
        """Return the columns of queues that move, come, go, or stall in one trial of twenty."""
        moves = self.moves.any(axis=0)
        comes_or_goes = np.isnan(self.pause_s).all(axis=0)
        stalls = (self.pause_s > 0).mean(axis=0) >= _LEAST_SHARE
        return np.flatnonzero(moves | comes_or_goes | stalls).tolist()

    def _queue(self, column: int) -> Document:
        moves = self.moves[:, column]
        pauses = self.pause_s[moves, column] if moves.any() else self.pause_s[:, column]
        document: Document = {
            "queue": self.queues[column],
            "from": self.owner_before[column],
            "to": self.owner_after[column],
            "pause_s": None if "pause_s" in self.unknown else interval(pauses),
            "duplicates": None if "duplicates" in self.unknown else messages(self.duplicates[:, column]),
        }
        share = float(moves.mean())
        return document if share in {0.0, 1.0} else {**document, "moves_in": round(share, _DIGITS)}


def interval(values: Floats) -> Interval | None:
    """Return p05, p50 and p95 of the values that are known; ``None`` when none is."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    quantiles = np.quantile(known, list(LEVELS.values()))
    return {name: round(float(value), _DIGITS) for name, value in zip(LEVELS, quantiles, strict=True)}


def messages(values: NDArray[Any]) -> dict[str, int]:
    """Return p05, p50 and p95 of whole messages; every one is a count that some trial had."""
    quantiles = np.quantile(values, list(LEVELS.values()), method="nearest")
    return {name: math.floor(value) for name, value in zip(LEVELS, quantiles.tolist(), strict=True)}


def _longest(pauses: Floats, among: NDArray[np.bool_]) -> Floats:
    """Return each trial's longest known pause among these; 0 where none is among them, NaN where all are unknown."""
    known = among & ~np.isnan(pauses)
    longest = np.where(known, pauses, 0.0).max(axis=1, initial=0.0)
    return np.where(among.any(axis=1) & ~known.any(axis=1), np.nan, longest)


def _cause_document(cause: Cause) -> Document:
    document: Document = {
        "cause": cause.name,
        "effect": cause.effect,
        "mean": round(cause.amount, _DIGITS),
        "share": round(cause.share, _DIGITS),
    }
    return {**document, "lever": dict(cause.lever)} if cause.lever else document
