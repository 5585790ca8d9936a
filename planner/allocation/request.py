"""What a RocketMQ strategy is asked, and its answer: design.md section 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.allocation.group import GroupAllocation, allocate_group
from planner.allocation.rocketmq import ConsistentHash, MachineRoomNearby, PopSharing
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue

MOST_QUEUES = 2_000_000
MOST_CLIENTS = 200_000
MOST_RING_POINTS = 20_000_000
MOST_SHARED_PAIRS = 20_000_000

QueueDocument = list[str | int]
"""A queue in an answer: topic, broker, queue id."""


@dataclass(frozen=True, slots=True)
class AllocationRequest:
    """Which strategy, for which group, over which queues and clients, in any order.

    Raises ``BadInputError`` for a queue that comes twice, a broker or client without the room that the strategy needs,
    and more than fits into memory.
    """

    strategy: Strategy
    group: str
    queues: Sequence[MessageQueue]
    clients: Sequence[str]

    def __post_init__(self) -> None:
        fields.distinct(self.queues, "queues")
        _check_together(self)

    def allocate(self) -> GroupAllocation:
        """Return the ownership."""
        return allocate_group(self.strategy, self.queues, self.clients, self.group)


def answer_document(allocation: GroupAllocation) -> dict[str, Any]:
    """Return the answer: ``assignments``, and beside it what needs attention, each key only when it has something.

    ``unowned``: queues that no client consumes; ``problems``: sentences about a user's own strategy.
    """
    document: dict[str, Any] = {
        "assignments": {client: _documents(queues) for client, queues in allocation.answer().items()}
    }
    if unowned := allocation.unowned:
        document["unowned"] = _documents(unowned)
    if allocation.problems:
        document["problems"] = list(allocation.problems)
    return document


def _documents(queues: Sequence[MessageQueue]) -> list[QueueDocument]:
    return [[queue.topic, queue.broker, queue.queue_id] for queue in queues]


def _check_together(request: AllocationRequest) -> None:
    """Refuse what only strategy, queues and clients together show."""
    strategy, queues, clients = request.strategy, request.queues, request.clients
    if isinstance(strategy, MachineRoomNearby):
        strategy.check(queues, clients)
        strategy = strategy.inner
    if isinstance(strategy, ConsistentHash) and strategy.virtual_nodes * len(clients) > MOST_RING_POINTS:
        raise BadInputError(
            f"options.virtual_nodes: found {strategy.virtual_nodes} for {len(clients)} clients, "
            f"expected at most {MOST_RING_POINTS} ring points together"
        )
    if isinstance(strategy, PopSharing) and len(queues) * len(clients) > MOST_SHARED_PAIRS:
        raise BadInputError(
            f"options.pop_share_queues: found {len(queues)} queues shared by {len(clients)} clients, "
            f"expected at most {MOST_SHARED_PAIRS} pairs"
        )
