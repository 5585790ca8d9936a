"""One look at one group: what the brokers said at one time. The raw material of the lag history."""

from dataclasses import dataclass
from datetime import datetime

from planner.model.membership import Member
from planner.model.queues import MessageQueue
from planner.model.routes import RouteTable


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """Offsets of one queue, in messages.

    ``broker_offset`` is the offset that the next message will get, ``consumer_offset`` the next one to be
    consumed as the broker has it stored. The broker answers 0 for a group that never committed on the queue.
    ``last_timestamp_ms`` is the store time of the newest consumed message, 0 when there is none or it is gone.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    last_timestamp_ms: int = 0

    @property
    def lag(self) -> int:
        """Messages between the two offsets, never below 0: they are read one after the other."""
        return max(0, self.broker_offset - self.consumer_offset)


@dataclass(frozen=True, slots=True)
class GroupSample:
    """Routes, members and offsets of one group, read within ``took_s`` seconds from ``at`` on (UTC).

    ``members`` and ``offsets`` are sorted by client id and by queue. ``problems`` names, in sentences, every
    part that could not be read or that brokers disagree on; an empty tuple means that the sample is complete.
    """

    system: str
    cluster: str
    group: str
    at: datetime
    took_s: float
    routes: RouteTable
    members: tuple[Member, ...]
    offsets: tuple[QueueOffsets, ...]
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise ValueError(f"sample of group {self.group} carries a time without zone: {self.at.isoformat()}")

    @property
    def owners(self) -> dict[MessageQueue, tuple[str, ...]]:
        """Who owns each queue by the members' own word; two names mean that both consume it."""
        owners: dict[MessageQueue, tuple[str, ...]] = {}
        for member in self.members:
            for queue in member.owned or ():
                owners[queue] = (*owners.get(queue, ()), member.client_id)
        return owners
