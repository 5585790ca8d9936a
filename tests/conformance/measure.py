"""From logs of one change to what was seen of it, as design.md section 4 defines it. Knows no system."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Queue = tuple[str | int, ...]
Document = dict[str, Any]

_DIGITS = 3


class NotSettledError(Exception):
    """The log does not show a whole change: a queue without one owner at its begin or end, or never delivered."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """One message handed to a listener, ``at_s`` seconds after the change; ``stored_s``: when the broker got it."""

    at_s: float
    member: str
    queue: Queue
    offset: int
    stored_s: float | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A member owns a queue: gained and dropped in seconds since the change; ``dropped_s`` is infinite at the end."""

    member: str
    queue: Queue
    gained_s: float
    dropped_s: float = math.inf


def parts(hold: Hold, away: Sequence[tuple[float, float]]) -> Iterator[Hold]:
    """Yield what is left of a hold whose member was away from and to these moments, the earliest absence first."""
    for gone_s, back_s in away:
        if hold.gained_s < gone_s < hold.dropped_s:
            yield replace(hold, dropped_s=gone_s)
        if hold.dropped_s <= back_s:
            if hold.dropped_s <= gone_s:
                yield hold
            return
        if hold.gained_s < back_s:
            hold = replace(hold, gained_s=back_s)
    yield hold


@dataclass(frozen=True, slots=True)
class Log:
    """Everything that was logged of one change; ``begins_s`` (negative) and ``ends_s`` bound what is looked at."""

    deliveries: Sequence[Delivered]
    holds: Sequence[Hold]
    begins_s: float
    ends_s: float


def measure(log: Log) -> Document:
    """Return ``moved``, ``pause_s`` and ``duplicates`` by queue, ``total`` and the ``course`` of every touched queue.

    Queues are written ``topic/broker/0``. ``total`` has the forecast's names; a figure that cannot be told is ``None``.
    Raise ``NotSettledError`` where the log does not hold a whole change.
    """
    if not log.holds:
        raise NotSettledError("nobody owns a queue")
    seen = [QueueLog.of(queue, log) for queue in sorted({hold.queue for hold in log.holds}, key=str)]
    moved = [queue for queue in seen if queue.moved]
    pauses = {queue.name: queue.pause_s() for queue in moved}
    duplicates = {queue.name: queue.duplicates() for queue in seen}
    return {
        "moved": [list(queue.queue) for queue in moved],
        "pause_s": _rounded(pauses),
        "duplicates": {name: count for name, count in duplicates.items() if count},
        "total": {
            **_rounded(
                {
                    "pause_s": _largest(pauses.values()),
                    "stall_s": _largest(queue.stall_s() for queue in seen if queue.stays),
                    "settle_s": max((queue.settle_s() for queue in seen), default=0.0),
                }
            ),
            "duplicates": sum(duplicates.values()),
            "burst_messages": _sum([queue.burst() for queue in moved]),
            "moved_queues": len(moved),
        },
        "course": {queue.name: queue.course() for queue in seen if queue.is_touched},
    }


def owners_of(assignments: Mapping[str, Iterable[Sequence[Any]]]) -> dict[Queue, set[str]]:
    """Return the owners of each queue, from the queues of each member as forecasts write them."""
    found: dict[Queue, set[str]] = {}
    for member, queues in assignments.items():
        for queue in queues:
            found.setdefault(tuple(queue), set()).add(member)
    return found


@dataclass(frozen=True, slots=True)
class QueueLog:
    """One queue's part of a log: deliveries by time, holds by gain, its owners before and after."""

    queue: Queue
    deliveries: tuple[Delivered, ...]
    holds: tuple[Hold, ...]
    before: str | None
    after: str | None
    begins_s: float

    @classmethod
    def of(cls, queue: Queue, log: Log) -> "QueueLog":
        """Return the part of one queue; raise ``NotSettledError`` where it has two owners before or after."""
        mine = sorted((one for one in log.deliveries if one.queue == queue), key=lambda one: one.at_s)
        mine = [one for one in mine if log.begins_s <= one.at_s <= log.ends_s]
        holds = sorted((hold for hold in log.holds if hold.queue == queue), key=lambda hold: hold.gained_s)
        before = _owner(queue, (hold for hold in holds if hold.gained_s < 0 <= hold.dropped_s), "before the change")
        after = _owner(queue, (hold for hold in holds if hold.dropped_s > log.ends_s), "at the end")
        return cls(queue, tuple(mine), tuple(holds), before, after, log.begins_s)

    @property
    def name(self) -> str:
        """The queue in one word."""
        return "/".join(map(str, self.queue))

    @property
    def moved(self) -> bool:
        """True when it goes from one owner to another; a queue that comes or goes does not move."""
        return self.before is not None and self.after is not None and self.before != self.after

    @property
    def stays(self) -> bool:
        """True when it has the same owner afterwards."""
        return self.before is not None and self.before == self.after

    @property
    def is_touched(self) -> bool:
        """True when anybody gained or dropped it after the change."""
        return any(hold.gained_s >= 0 or 0 <= hold.dropped_s < math.inf for hold in self.holds)

    @property
    def spacing_s(self) -> float:
        """How far deliveries lay apart before the change, in the mean."""
        earlier = [one.at_s for one in self.deliveries if one.at_s < 0]
        if len(earlier) < 2:
            raise NotSettledError(f"{self.name}: {len(earlier)} deliveries before the change")
        return (earlier[-1] - earlier[0]) / (len(earlier) - 1)

    def pause_s(self) -> float | None:
        """Return first delivery by the new owner less last one by the old; ``None`` where it does not move.

        The contract wants messages always waiting: an owner with nothing to deliver for a moment would have gone on
        until it dropped the queue, but at most until its next message was due. A frozen owner that wakes up after
        another one has taken over does not undo the pause that was.
        """
        if self.after is None or not self.moved:
            return None
        first = self._first_by(self.after, 0.0)
        old = [one.at_s for one in self.deliveries if one.member == self.before]
        if not old:
            raise NotSettledError(f"{self.name}: {self.before} owned it and delivered nothing")
        earlier = [at for at in old if at < first]
        if earlier and earlier[-1] < min(old[-1], first - 2 * self.spacing_s):
            old = earlier
        drops = [hold.dropped_s for hold in self.holds if hold.member == self.before and hold.gained_s <= old[-1]]
        last = max(old[-1], min(max(drops), old[-1] + self.spacing_s))
        return max(first - last, 0.0)

    def stall_s(self) -> float:
        """Return the longest wait between two deliveries, 0 where it is no longer than two spacings."""
        times = [one.at_s for one in self.deliveries]
        waits = [later - earlier for earlier, later in itertools.pairwise(times) if later > 0]
        longest = max(waits, default=0.0)
        return 0.0 if longest < 2 * self.spacing_s else longest - self.spacing_s / 2

    def duplicates(self) -> int:
        """Return the deliveries after the change of messages that had been delivered already."""
        seen: set[int] = set()
        twice = 0
        for one in self.deliveries:
            twice += one.at_s >= 0 and one.offset in seen
            seen.add(one.offset)
        return twice

    def settle_s(self) -> float:
        """Return when its final owner delivers for good; 0 where it did all along, or nobody owns it afterwards."""
        final = self._final_hold()
        return 0.0 if final is None or final.gained_s < 0 else self._first_by(final.member, final.gained_s)

    def burst(self) -> int | None:
        """Return how many messages were due when its final owner began; ``None`` where the log does not tell."""
        final = self._final_hold()
        if final is None or final.gained_s < 0:
            return 0
        first = self._first_by(final.member, final.gained_s)
        mine = [one for one in self.deliveries if one.member == final.member and one.at_s >= final.gained_s]
        start = min(one.offset for one in mine)
        if any(one.stored_s is None for one in self.deliveries):
            return None
        if (max(self.deliveries, key=_offset).stored_s or 0.0) <= first:
            return None  # the log ends before the burst does
        return len({one.offset for one in self.deliveries if one.offset >= start and (one.stored_s or 0.0) <= first})

    def course(self) -> list[list[Any]]:
        """Return its holds: member, gained, first and last delivery, dropped; ``None`` for what never came."""
        rows = []
        for hold in self.holds:
            if hold.dropped_s < self.begins_s:
                continue
            within = [
                one.at_s
                for one in self.deliveries
                if one.member == hold.member and hold.gained_s <= one.at_s and one.at_s <= hold.dropped_s + 1
            ]
            times = (hold.gained_s, *((within[0], within[-1]) if within else (math.inf, math.inf)), hold.dropped_s)
            rows.append([hold.member, *(round(at, _DIGITS) if math.isfinite(at) else None for at in times)])
        return rows

    def _final_hold(self) -> Hold | None:
        return max((hold for hold in self.holds if hold.member == self.after), key=_gain, default=None)

    def _first_by(self, member: str, since_s: float) -> float:
        times = [one.at_s for one in self.deliveries if one.member == member and one.at_s >= since_s]
        if not times:
            raise NotSettledError(f"{self.name}: {member} owns it and never delivered")
        return times[0]


def _offset(delivered: Delivered) -> int:
    return delivered.offset


def _gain(hold: Hold) -> float:
    return hold.gained_s


def _owner(queue: Queue, holds: Iterable[Hold], when: str) -> str | None:
    members = sorted({hold.member for hold in holds})
    if len(members) > 1:
        raise NotSettledError(f"{'/'.join(map(str, queue))}: {', '.join(members)} own it {when}")
    return members[0] if members else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _rounded(values: Mapping[str, float | None]) -> Document:
    return {name: None if value is None else round(value, _DIGITS) for name, value in values.items()}
