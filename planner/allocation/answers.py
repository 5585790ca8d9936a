"""Answers of ``planner allocate``, whatever the system."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from planner.allocation.kafka import Request, assign, find_assignor, own_assignor
from planner.allocation.ordering import java_sorted
from planner.allocation.registry import find_strategy
from planner.allocation.request import AllocationRequest, answer_document

Document = dict[str, Any]


def answer(request: AllocationRequest | Request) -> Document:
    """Return the answer as a document; raise ``BadInputError`` for an assignor or options that are not known."""
    return _assignment(request) if isinstance(request, Request) else answer_document(request.allocate())


def _assignment(request: Request) -> Document:
    """Return the answer with ``unowned`` beside it where a topic has partitions that no member consumes."""
    response: Document = dict(assign(request))
    owned = {partition for partitions in response["assignments"].values() for partition in partitions}
    unowned = [
        (topic, number)
        for topic in java_sorted(request.partitions)
        for number in range(request.partitions[topic])
        if (topic, number) not in owned
    ]
    return {**response, "unowned": unowned} if unowned else response


FINDERS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], object]]] = {
    "rocketmq": find_strategy,
    "kafka": find_assignor,
}
"""What returns a strategy by its name and options, by its system; raises ``BadInputError`` for wrong ones."""
OWN: Final = {"kafka": own_assignor}
"""What returns a user's own class that reports its name to the group, by the system where there are such classes."""


def reported_name(system: str, strategy: str | None, options: Mapping[str, Any]) -> str | None:
    """Return the name under which a Kafka group reports a user's own assignor, ``None`` for everything else.

    RocketMQ's members report a class of the user's own by a name that says nothing of the file that is its twin.
    """
    find_own = OWN.get(system)
    own = find_own(strategy, options) if find_own else None
    return own.name if own else None
