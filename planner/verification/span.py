"""``Span``: one change of a group as samples show it, from its effect until every queue is delivered again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.model.queues import Queue
from planner.model.samples import QueueOffsets
from planner.verification.observed_change import Between
from planner.verification.waiting import Waiting


@dataclass(frozen=True, slots=True)
class TimedObservation:
    """What one sample showed of a group, read from ``began_s`` to ``ended_s`` of a steady clock.

    ``owners`` are the members that reported to own a queue. ``is_calm``: every queue has one owner, the one that the
    strategy gives it, and no rebalance is under way. ``epoch`` counts rebalances where the broker does. ``capacity`` is
    what one consumer can do, in messages per second; ``None`` where that is unknown. ``shares_messages``: members take
    messages of every queue, so that there are no ``owners``; ``busiest_fraction`` of all that comes may be one member's
    then, ``None`` where each gets the same.
    """

    began_s: float
    ended_s: float
    members: frozenset[str]
    owners: Mapping[Queue, tuple[str, ...]]
    offsets: Mapping[Queue, QueueOffsets]
    is_calm: bool
    epoch: int | None = None
    capacity: Between | None = None
    shares_messages: bool = False
    busiest_fraction: float | None = None

    def is_same(self, other: "TimedObservation") -> bool:
        """True when both show the same members, owners and epoch."""
        return (self.members, self.owners, self.epoch) == (other.members, other.owners, other.epoch)


@dataclass(frozen=True, slots=True)
class Begun:
    """The newest effect that a plan may have had: of which step, and since when at the earliest.

    ``first_s`` is the same of the plan's first effect.
    """

    step: int
    at_s: float
    first_s: float


@dataclass(frozen=True, slots=True)
class Span:
    """One change of the group, by the step ``begun``.

    ``noticed_s``: a sample that ended then was the first to show other members or owners. ``absent_s``: for each owner
    of a queue when a sample began last that did not show it there. ``calm`` is the first observation of what the change
    ended in, ``base`` the next one: what is committed after it is by that owner. Later, by ``delivered_s`` every queue
    was delivered by its owner, by ``empty_s`` nothing waited anywhere, and ``wait_s`` is the longest that a message
    which came after ``calm`` can have waited.
    """

    begun: Begun
    noticed_s: float | None = None
    absent_s: Mapping[tuple[Queue, str], float] = field(default_factory=dict)
    calm: TimedObservation | None = None
    base: TimedObservation | None = None
    delivered_s: float | None = None
    empty_s: float | None = None
    wait_s: float | None = None

    @property
    def settle_s(self) -> Between | None:
        """How long it took until every queue was delivered by its owner; 0 where nothing changed."""
        if self.noticed_s is None:
            return Between.exactly(0)
        if self.calm is None or self.delivered_s is None:
            return None
        own = {(queue, owners[0]) for queue, owners in self.calm.owners.items()}
        late = max((at for owned, at in self.absent_s.items() if owned in own), default=0.0)
        least_s = max(0.0, late - self.noticed_s)
        # A clock that is set forward in between must not end the process that carries the plan out.
        return Between(least_s, max(least_s, self.delivered_s - self.begun.at_s))

    def after(
        self,
        before: TimedObservation,
        observation: TimedObservation,
        was: Mapping[Queue, Waiting],
        now: Mapping[Queue, Waiting],
    ) -> "Span":
        """Return the change after one more observation, with what waited before and after it."""
        same = observation.is_same(before)
        noticed_s = self.noticed_s if self.noticed_s is not None or same else observation.ended_s
        followed = Span(self.begun, noticed_s, self._absent(before, observation))
        if not observation.is_calm:
            return followed
        if not same or self.calm is None:
            return replace(followed, calm=observation)
        ended_s, base = observation.ended_s, self.base or observation
        is_delivered = all(
            self.is_past(waiting) or _has_moved_on(base, observation, queue) for queue, waiting in now.items()
        )
        return replace(
            followed,
            calm=self.calm,
            base=base,
            delivered_s=self.delivered_s or (ended_s if is_delivered else None),
            empty_s=self.empty_s
            or (ended_s if all(waiting.lag == 0 for waiting in observation.offsets.values()) else None),
            wait_s=max(
                [*self._waits(ended_s, was, now), *([] if self.wait_s is None else [self.wait_s])], default=None
            ),
        )

    def is_past(self, waiting: Waiting) -> bool:
        """True when all that came for a queue until the group was calm was delivered."""
        return self.calm is not None and waiting.clear.at_s >= self.calm.ended_s

    def _waits(self, ended_s: float, was: Mapping[Queue, Waiting], now: Mapping[Queue, Waiting]) -> Iterator[float]:
        for queue, new in now.items():
            old = was.get(queue)
            if old is not None and self.is_past(old) and new.clear.at_s > old.clear.at_s:
                yield ended_s - old.clear.at_s

    def _absent(self, before: TimedObservation, observation: TimedObservation) -> Mapping[tuple[Queue, str], float]:
        return {
            (queue, owner): self.absent_s.get((queue, owner), 0.0)
            if owner in before.owners.get(queue, ())
            else before.began_s
            for queue, owners in observation.owners.items()
            for owner in owners
        }


def _has_moved_on(base: TimedObservation, observation: TimedObservation, queue: Queue) -> bool:
    """Return whether more is committed than before, when only the present owner could."""
    before, now = base.offsets.get(queue), observation.offsets[queue]
    if before is None or before.consumer_offset is None or now.consumer_offset is None:
        return False
    return now.consumer_offset > before.consumer_offset
