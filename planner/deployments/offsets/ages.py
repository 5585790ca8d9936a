"""``ask_brokers``: what a reset means by the brokers' own word, how many messages and how old, before anything is set.

Brokers of both systems answer which message is the first since a time (RocketMQ: store time; Kafka: the record's
timestamp). So the age of an offset's message is the time up to which that answer is the offset or one before it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from planner.deployments.offsets.actions import GroupOffsets, KeptOffsets, Offsets, point_of
from planner.model.queues import Queue
from planner.rollout.migrations.requests import ResetMessages
from planner.rollout.steps import ResetOffsets
from planner.text.words import some

OLDEST_S: Final = 20 * 365 * 86_400.0
"""Ages beyond are not looked for: what is older is of a producer that sets its own times, or of nobody's."""

_PRECISION: Final = 1.05
"""An age is known to a twentieth."""


def ask_brokers(offsets: GroupOffsets, step: ResetOffsets, at: datetime) -> ResetMessages:
    """Return how many messages come again and are left out, and the age of the oldest of each; ``at`` is now.

    Raises ``OutOfReachError`` for what does not answer, ``BadInputError`` for an offset of which no message is kept.
    """
    point, kept, committed = point_of(offsets, step), offsets.kept(step.group), offsets.committed(step.group)
    begins = {queue: committed[queue] for queue in point if queue in committed}
    unknowns = []
    if without := sorted(str(queue) for queue in point.keys() - begins.keys()):
        unknowns.append(f"what becomes of the messages of {some(without)}: the group has no offset there yet")
    repeated, skipped = _ranges(point, begins, kept)
    ages: list[float | None] = []
    for what, ranges in (("come again", repeated), ("are left out", skipped)):
        age_s, unknown = _oldest_s(offsets, step.group, {queue: first for queue, (first, _) in ranges.items()}, at)
        ages.append(age_s)
        if unknown:
            unknowns.append(f"how old the messages are that {what}: {unknown}")
    return ResetMessages(
        at=at,
        repeated=sum(end - first for first, end in repeated.values()),
        skipped=sum(end - first for first, end in skipped.values()),
        oldest_repeated_s=ages[0],
        oldest_skipped_s=ages[1],
        unknowns=tuple(unknowns),
    )


def _ranges(
    point: Offsets, begins: Offsets, kept: Mapping[Queue, KeptOffsets]
) -> tuple[dict[Queue, tuple[int, int]], dict[Queue, tuple[int, int]]]:
    """Return the offsets that come again and those that are left out, first and end, of what brokers keep."""
    repeated: dict[Queue, tuple[int, int]] = {}
    skipped: dict[Queue, tuple[int, int]] = {}
    for queue, begin in begins.items():
        earliest, target = kept[queue].earliest, point[queue]
        if (first := max(target, earliest)) < begin:
            repeated[queue] = first, begin
        elif (first := max(begin, earliest)) < target:
            skipped[queue] = first, target
    return repeated, skipped


def _oldest_s(
    offsets: GroupOffsets, group: str, firsts: Mapping[Queue, int], at: datetime
) -> tuple[float | None, str | None]:
    """Return the age of the oldest of these messages in seconds, at most a twentieth too high, or why it is unknown."""
    if not firsts:
        return None, None

    def begins_by(age_s: float) -> bool:
        """Return whether each of the messages was stored at or after that age."""
        since = offsets.since(group, at - timedelta(seconds=age_s))
        return all(since[queue] <= first for queue, first in firsts.items())

    now = offsets.since(group, at + timedelta(seconds=1))
    if nearest := sorted(str(queue) for queue, first in firsts.items() if now[queue] <= first):
        return None, f"for a time of which {some(nearest)} has no message yet, its broker answers with an older one"
    age_s = _smallest(begins_by)
    return age_s, "their times are none that a broker finds them by" if age_s is None else None


def _smallest(begins_by: Callable[[float], bool]) -> float | None:
    """Return the smallest age at which it holds, to a twentieth; it holds at every higher one."""
    low, high = 0.0, 1.0
    while not begins_by(high):
        low, high = high, high * 4
        if low > OLDEST_S:
            return None
    while high > max(low, 0.5) * _PRECISION and high - low > 0.5:
        middle = (low * high) ** 0.5 if low else high / 2
        low, high = (low, middle) if begins_by(middle) else (middle, high)
    return round(high, 1)
