"""Requests of ``planner allocate`` for RocketMQ, and their answers: design.md section 4."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.allocation.group import GroupAllocation, allocate_group
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import ConsistentHash, MachineRoomNearby, PopSharing
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue

MOST_QUEUES = 2_000_000
MOST_CLIENTS = 200_000
MOST_RING_POINTS = 20_000_000
MOST_SHARED_PAIRS = 20_000_000
_FIELDS = ("system", "strategy", "group", "queues", "clients", "options")

QueueDocument = list[str | int]
"""A queue in an answer: topic, broker, queue id."""


@dataclass(frozen=True, slots=True)
class AllocationRequest:
    """One checked request: which strategy, for which group, over which queues and clients, in any order."""

    strategy: Strategy
    group: str
    queues: Sequence[MessageQueue]
    clients: Sequence[str]

    def allocate(self) -> GroupAllocation:
        """Return the ownership."""
        return allocate_group(self.strategy, self.queues, self.clients, self.group)


def read_request(document: Mapping[str, Any]) -> AllocationRequest:
    """Return the request, checked; raise ``BadInputError`` naming field, value and expectation."""
    fields.only_known(document, _FIELDS, "request")
    for name, expected in (
        ("strategy", "a strategy's name"),
        ("queues", "a list of queues"),
        ("clients", "a list of client ids"),
    ):
        if name not in document:
            raise fields.missing(name, expected)
    strategy_name = fields.text(document["strategy"], "strategy", "a strategy's name")
    options = document.get("options")
    strategy = find_strategy(strategy_name, fields.mapping({} if options is None else options, "options"))
    group = document.get("group", "")
    if not isinstance(group, str):
        raise fields.refusal("group", group, "a text")
    request = AllocationRequest(strategy, group, _queues(document["queues"]), _clients(document["clients"]))
    _check_together(request)
    return request


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


def _queues(value: object) -> Sequence[MessageQueue]:
    _check_size(value, "queues", MOST_QUEUES)
    return fields.distinct(fields.message_queues(value, "queues"), "queues")


def _clients(value: object) -> Sequence[str]:
    _check_size(value, "clients", MOST_CLIENTS)
    for index, client in enumerate(fields.sequence(value, "clients", "a list of client ids")):
        fields.text(client, f"clients[{index}]", "a client id that is not empty")
    return tuple(fields.sequence(value, "clients"))


def _check_size(value: object, field: str, most: int) -> None:
    if isinstance(value, list) and len(value) > most:
        raise BadInputError(f"{field}: found {len(value)} entries, expected at most {most} in one request")


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
