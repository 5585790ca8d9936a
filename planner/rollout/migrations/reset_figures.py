"""How many messages come again or are left out once offsets are set, and how old they are, by one snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from planner.forecast.words import count_between
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.rollout.migrations.requests import ResetRequest
from planner.text.words import UNKNOWN, number


@dataclass(frozen=True, slots=True)
class ResetFigures:
    """How many messages come again and are left out, each as words; ``ages`` is a sentence on how old these are.

    ``unknowns`` name in half sentences what of that the snapshot does not show.
    """

    repeated: str
    skipped: str
    ages: str = ""
    unknowns: tuple[str, ...] = ()


def reset_figures(snapshot: GroupSnapshot, request: ResetRequest, states: Sequence[QueueState]) -> ResetFigures:
    """Return what becomes of the messages of ``states``, the queues whose offsets are set.

    A snapshot has each queue's offsets, but neither what brokers still keep nor how old a message is.
    """
    to = request.to
    if isinstance(to, datetime):
        return _since(snapshot, to, states, is_whole=len(states) == len(snapshot.data_queues))
    if isinstance(to, int):
        return _at_offset(to, states[0])
    return _to_earliest(states) if to == "earliest" else _to_latest(states)


def _to_earliest(states: Sequence[QueueState]) -> ResetFigures:
    consumed = _sum([state.consumer_offset for state in states])
    repeated = UNKNOWN if consumed is None else f"at most {number(consumed)}"
    unknowns = ("how many messages come again, and how old they are: as many as the brokers still keep",)
    return ResetFigures(repeated, "none", unknowns=unknowns if consumed != 0 else ())


def _to_latest(states: Sequence[QueueState]) -> ResetFigures:
    waiting = _waiting(states)
    unknowns = () if waiting == 0 else ("how old the messages are that are left out: no broker's answer has their age",)
    return ResetFigures("none", UNKNOWN if waiting is None else number(waiting), unknowns=unknowns)


def _at_offset(offset: int, state: QueueState) -> ResetFigures:
    if state.consumer_offset is None:
        why = f"how many messages come again or are left out: the group has no offset on {state.queue} yet"
        return ResetFigures(UNKNOWN, UNKNOWN, unknowns=(why,))
    back = state.consumer_offset - offset
    repeated, skipped = (f"at most {number(back)}", "none") if back > 0 else ("none", _or_none(-back))
    unknowns = ("how old these messages are, and whether the brokers keep them all",) if back else ()
    return ResetFigures(repeated, skipped, unknowns=unknowns)


def _or_none(count: int) -> str:
    return number(count) if count else "none"


def _since(snapshot: GroupSnapshot, to: datetime, states: Sequence[QueueState], *, is_whole: bool) -> ResetFigures:
    """Return what a time means: each queue goes back by what arrived since then, less what waits of it.

    The snapshot's past has the arrivals of the whole group alone, so between queues both may happen.
    """
    waiting, arrived = _waiting(states), _arrived_since(snapshot, to) if is_whole else None
    ages = f"What comes again arrived since {to:%Y-%m-%d %H:%M:%S %Z}, what is left out is older."
    if arrived is None or waiting is None:
        skipped = UNKNOWN if waiting is None else f"at most {number(waiting)}"
        why = "how many messages come again: the snapshot's past does not show what arrived since then on these queues"
        return ResetFigures(UNKNOWN, skipped, ages, (why,))
    repeated = count_between(max(arrived - waiting, 0), arrived)
    skipped = count_between(max(waiting - arrived, 0), waiting)
    return ResetFigures(f"about {repeated}", f"about {skipped}" if waiting else "none", ages)


def _arrived_since(snapshot: GroupSnapshot, to: datetime) -> int | None:
    """Return about how many messages arrived since then, ``None`` where the recent past has a gap or begins later."""
    points = snapshot.recent
    if not points or points[0].at - timedelta(seconds=points[0].seconds) > to:
        return None
    begins = [points[0].at - timedelta(seconds=points[0].seconds), *(point.at for point in points)]
    counts: list[float] = []
    for (began, ended), point in zip(pairwise(begins), points, strict=True):
        if ended <= to:
            continue
        if point.is_gap or point.arrival_rate is None:
            return None
        counts.append(point.arrival_rate * (ended - max(began, to)).total_seconds())
    return round(sum(counts))


def _waiting(states: Sequence[QueueState]) -> int | None:
    """Return how many messages wait in all, ``None`` as soon as one queue's offsets are unknown."""
    return _sum(
        [
            None
            if s.broker_offset is None or s.consumer_offset is None
            else max(s.broker_offset - s.consumer_offset, 0)
            for s in states
        ]
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
