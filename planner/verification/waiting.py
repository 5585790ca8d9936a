"""``Waiting``: how long messages of one queue can have waited without any delivery, by offsets alone.

What proves a delivery: a message that came after one sample and was consumed before a later one was delivered between
the two. What was committed late was delivered earlier, never later, so an upper bound holds however rarely clients
commit. A lower one does not follow: a missing commit does not prove that nothing was delivered.
"""

import math
from dataclasses import dataclass
from typing import Final

from planner.model.samples import QueueOffsets

MOST_MARKS: Final = 64
"""Of a longer backlog every second sample is forgotten, which makes bounds wider, never wrong."""


@dataclass(frozen=True, slots=True)
class Mark:
    """At ``at_s``, at the earliest, the queue's next message was to get ``offset``: a later message came after that."""

    at_s: float
    offset: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """One queue, folded sample by sample; times in seconds of a steady clock.

    Whatever waited before ``clear`` was delivered, or nothing waited then. ``marks`` are of later samples, oldest
    first, of which that is not known yet. ``longest_s`` is the longest that messages can have waited without any
    delivery, since it was last set to 0, among the waits that are over.
    """

    clear: Mark
    marks: tuple[Mark, ...] = ()
    longest_s: float = 0.0

    @classmethod
    def since(cls, at_s: float, began_s: float, offsets: QueueOffsets) -> "Waiting":
        """Return what the first sample shows, which began at ``began_s``; from ``at_s`` until then there was none."""
        mark = Mark(began_s, offsets.broker_offset)
        return cls(Mark(at_s, offsets.broker_offset), () if offsets.lag == 0 and at_s == began_s else (mark,))

    def after(self, began_s: float, ended_s: float, offsets: QueueOffsets) -> "Waiting":
        """Return what is known after one more sample, which was read between the two times."""
        newest = max([self.clear.offset, *(mark.offset for mark in self.marks[-1:])])
        if offsets.broker_offset < newest:  # the topic was made anew: offsets prove nothing any more
            return Waiting(Mark(began_s, offsets.broker_offset), (), math.inf)
        mark = Mark(began_s, offsets.broker_offset)
        if offsets.lag == 0:
            had_work = bool(self.marks) or offsets.broker_offset > self.clear.offset
            return Waiting(mark, (), self._longest(ended_s) if had_work else self.longest_s)
        passed = [earlier for earlier in self.marks if self._is_past(earlier, offsets)]
        # Of two samples with the same offset the later one proves more.
        kept = [earlier for earlier in self.marks[len(passed) :] if earlier.offset < mark.offset]
        marks = (*(kept[::2] if len(kept) >= MOST_MARKS else kept), mark)
        return (
            Waiting(passed[-1], marks, self._longest(ended_s)) if passed else Waiting(self.clear, marks, self.longest_s)
        )

    def from_now(self) -> "Waiting":
        """Return the same with waits counted anew."""
        return Waiting(self.clear, self.marks)

    def oldest_s(self, ended_s: float, offsets: QueueOffsets) -> float | None:
        """Return the longest that the oldest waiting message can have waited at the end of the newest sample.

        0 when nothing waits; ``None`` when it came before the first sample, or the lag is unknown.
        """
        if offsets.lag is None or offsets.consumer_offset is None:
            return None if offsets.lag is None else 0.0
        if offsets.lag == 0:
            return 0.0
        known = [mark.at_s for mark in (self.clear, *self.marks) if mark.offset <= offsets.consumer_offset]
        return ended_s - known[-1] if known else None

    def _longest(self, ended_s: float) -> float:
        return max(self.longest_s, ended_s - self.clear.at_s)

    @staticmethod
    def _is_past(mark: Mark, offsets: QueueOffsets) -> bool:
        return offsets.consumer_offset is not None and offsets.consumer_offset > mark.offset
