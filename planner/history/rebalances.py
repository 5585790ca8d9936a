"""When queues changed their owners, who came and who left, and when a broker was away."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from planner.model.intervals import QueueInterval
from planner.model.queues import MessageQueue, Queue

QUIET = timedelta(seconds=20)
"""Moves closer together belong to one rebalance: a RocketMQ client that heard nothing looks again after 20 s."""

_KAFKA_MEMBER = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One change of ownership, as far as samples show it.

    It began after ``started_at``, the last look before, and was over by ``ended_at``, the look that found the last
    move. ``moved`` queues have other owners afterwards, sorted. ``came`` and ``left`` are clients that owned queues
    only after or only before it, sorted; ``restarted`` pairs those of them that are one place: who left, who came.
    """

    started_at: datetime
    ended_at: datetime
    moved: tuple[Queue, ...]
    came: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def duration_s(self) -> float:
        """The longest that it can have taken, in seconds."""
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def restarted(self) -> tuple[tuple[str, str], ...]:
        """Clients that came back under another id: the same address (RocketMQ) or client id (Kafka)."""
        came = {_place_of(client): client for client in self.came}
        return tuple((client, came[_place_of(client)]) for client in self.left if _place_of(client) in came)


def _place_of(client: str) -> str:
    """``10.0.0.7@4711#123`` gives ``10.0.0.7``; a Kafka member id gives its client id."""
    member = _KAFKA_MEMBER.fullmatch(client)
    return member[1] if member else client.partition("@")[0]


def rebalances(intervals: Iterable[QueueInterval]) -> tuple[Rebalance, ...]:
    """Return the rebalances that one group's intervals show, in the order of time.

    A queue that is back with its owner at the end has not moved. Clients that own nothing are not seen.
    """
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in sorted(intervals, key=lambda interval: interval.ended_at):
        by_queue.setdefault(interval.queue, []).append(interval)
    moves = [interval for of_queue in by_queue.values() for interval in of_queue if interval.moved_from]
    events = (_rebalance(moves, by_queue) for moves in _together(moves))
    return tuple(event for event in events if event.moved)


def _together(moves: Iterable[QueueInterval]) -> Iterator[list[QueueInterval]]:
    """Yield the moves of one rebalance after the other."""
    together: list[QueueInterval] = []
    for move in sorted(moves, key=lambda move: (move.ended_at, move.queue)):
        if together and move.started_at - together[-1].ended_at > QUIET:
            yield together
            together = []
        together.append(move)
    if together:
        yield together


def _rebalance(moves: Sequence[QueueInterval], by_queue: dict[Queue, list[QueueInterval]]) -> Rebalance:
    before: dict[Queue, tuple[str, ...]] = {}
    after: dict[Queue, tuple[str, ...]] = {}
    for move in moves:
        before.setdefault(move.queue, move.moved_from)
        after[move.queue] = move.owners
    ended_at = max(move.ended_at for move in moves)
    stayed = {client for queue in by_queue.keys() - before.keys() for client in _owners_at(by_queue[queue], ended_at)}
    had = stayed.union(*before.values())
    have = stayed.union(*after.values())
    return Rebalance(
        started_at=min(move.started_at for move in moves),
        ended_at=ended_at,
        moved=tuple(sorted(queue for queue in before if before[queue] != after[queue])),
        came=tuple(sorted(have - had)),
        left=tuple(sorted(had - have)),
    )


def _owners_at(of_queue: Sequence[QueueInterval], at: datetime) -> tuple[str, ...]:
    return next((i.owners for i in reversed(of_queue) if i.ended_at <= at and i.owners), ())


@dataclass(frozen=True, slots=True)
class BrokerAbsence:
    """A time in which no queue of a broker was seen although others of the group were: it was down or out of reach."""

    broker: str
    started_at: datetime
    ended_at: datetime


def broker_absences(intervals: Iterable[QueueInterval]) -> tuple[BrokerAbsence, ...]:
    """Return when each RocketMQ broker was away and came back, in the order of time.

    Gaps that all queues of the broker have in common while the queues of another broker were seen.
    """
    of_broker: dict[str, dict[Queue, set[tuple[datetime, datetime]]]] = {}
    seen: list[tuple[str, datetime]] = []
    for interval in intervals:
        if isinstance(interval.queue, MessageQueue):
            gaps = of_broker.setdefault(interval.queue.broker, {}).setdefault(interval.queue, set())
            if interval.is_gap:
                gaps.add((interval.started_at, interval.ended_at))
            seen.append((interval.queue.broker, interval.ended_at))
    found = (
        BrokerAbsence(broker, start, end)
        for broker, queues in of_broker.items()
        for start, end in set.intersection(*queues.values())
        if any(other != broker and start < at < end for other, at in seen)
    )
    return tuple(sorted(found, key=lambda absence: (absence.started_at, absence.broker)))
