"""Steps that write to a broker: in migrations alone, and with a phrase that a person types."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Literal

from planner.model.queues import Queue
from planner.rollout.steps.sense import check_limit, check_names, check_phrase
from planner.rollout.steps.words import grouped


@dataclass(frozen=True, slots=True)
class CloneOffsets:
    """Give another group the plan's group's committed offsets. ``confirmation`` is what a person types to allow it."""

    is_final: ClassVar[bool] = True
    undo: ClassVar[None] = None

    to_group: str
    confirmation: str
    time_limit_seconds: int
    kind: Literal["cloneOffsets"] = "cloneOffsets"
    group: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "groups", [self.to_group, *([self.group] if self.group is not None else [])])
        check_phrase(self.kind, self.confirmation, f"set the offsets of {self.to_group}")

    @property
    def action(self) -> str:
        """What it does."""
        return f"{self.confirmation} to those of {grouped(self.group)}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"group {self.to_group} has no member"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"group {self.to_group} has committed offsets on every queue that {grouped(self.group)} has them on"


MOST_OFFSET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ResetOffsets:
    """Set a group's offsets to one point. ``confirmation`` is what a person types for it.

    The point is one of three: the first message at or after ``to_time``; ``to_end``, the earliest message that brokers
    keep or the latest, behind all that has arrived once the group has stopped; ``to_offset``, of a single queue. With
    ``topic`` or ``queue`` (``orders/broker-a/3``, Kafka ``orders/3``) all other queues keep their offsets.
    """

    is_final: ClassVar[bool] = True
    undo: ClassVar[None] = None

    group: str
    confirmation: str
    time_limit_seconds: int
    kind: Literal["resetOffsets"] = "resetOffsets"
    to_time: datetime | None = None
    to_end: Literal["earliest", "latest"] | None = None
    to_offset: int | None = None
    topic: str | None = None
    queue: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "group", [self.group])
        check_phrase(self.kind, self.confirmation, f"set the offsets of {self.group}")
        self._check_point()
        if self.topic is not None and self.queue is not None:
            raise ValueError(f"{self.kind} to name a topic or a queue, not both: a queue's name begins with its topic")
        for name in (self.topic, self.queue):
            if name is not None:
                check_names(self.kind, "a topic or queue", [name])

    def _check_point(self) -> None:
        """Raise ``ValueError`` unless there is one point that makes sense."""
        if sum(point is not None for point in (self.to_time, self.to_end, self.to_offset)) != 1:
            raise ValueError(f"{self.kind} to name one of toTime, toEnd and toOffset")
        if self.to_time is not None and self.to_time.tzinfo is None:
            raise ValueError(f"{self.kind} to name a time with its zone, not {self.to_time.isoformat()}")
        if self.to_offset is not None and not (self.queue and 0 <= self.to_offset <= MOST_OFFSET):
            raise ValueError(f"{self.kind} to name an offset from 0 on together with its queue: {self.to_offset}")

    def selects(self, queue: Queue) -> bool:
        """True for a queue whose offset is set."""
        return self.topic in (None, queue.topic) and self.queue in (None, str(queue))

    @property
    def where(self) -> str:
        """What it is limited to: `` of topic orders``, nothing where it sets all queues."""
        return f" of topic {self.topic}" if self.topic else f" of queue {self.queue}" if self.queue else ""

    @property
    def point(self) -> str:
        """Where the group goes on, in words."""
        if self.to_time is not None:
            return f"the first messages since {self.to_time:%Y-%m-%d %H:%M:%S %Z}"
        if self.to_offset is not None:
            return f"offset {self.to_offset}"
        if self.to_end == "earliest":
            return "the earliest messages that the brokers keep"
        return "the latest, behind all messages that have arrived"

    @property
    def action(self) -> str:
        """What it does."""
        only = self.where.replace(" of ", " on ", 1)
        return f"{self.confirmation}{only} to {self.point}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"group {self.group} has no member"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        every = self.where.replace(" of ", " on ", 1) or " on every queue"
        if self.to_time is not None:
            at = f"{self.to_time:%Y-%m-%d %H:%M:%S %Z}"
            return f"group {self.group} has its committed offsets at {at}{every}"
        return f"group {self.group} has its committed offsets at {self.point}{'' if self.queue else every}"
