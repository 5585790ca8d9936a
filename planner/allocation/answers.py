"""Answers of ``planner allocate``, whatever the system: one document in, one document out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.allocation.kafka import assign
from planner.allocation.ordering import java_sorted
from planner.allocation.request import answer_document, read_request
from planner.errors import PlannerError

SYSTEMS = ("rocketmq", "kafka")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer a request, in order; a request that is wrong has ``{"error": …}`` in its place."""

    documents: Sequence[Document]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Return index and error of every request that was not answered."""
        return [(index, document["error"]) for index, document in enumerate(self.documents) if "error" in document]


def answer(request: object) -> Document:
    """Return the answer to one request; raise ``BadInputError`` naming field, value and expectation."""
    document = fields.mapping(request, "request", "an object with system, strategy and what it allocates")
    if "system" not in document:
        raise fields.missing("system", f"one of {', '.join(SYSTEMS)}")
    system = document["system"]
    if system == "rocketmq":
        return answer_document(read_request(document).allocate())
    if system == "kafka":
        return _answer_kafka(document)
    raise fields.refusal("system", system, f"one of {', '.join(SYSTEMS)}")


def answer_all(requests: Sequence[object]) -> Answers:
    """Return one answer a request; one that is wrong keeps no other from its answer."""
    return Answers([_answer_or_error(index, request) for index, request in enumerate(requests)])


def _answer_or_error(index: int, request: object) -> Document:
    try:
        return answer(request)
    except PlannerError as error:
        return {"error": f"request {index}: {error}"}


def _answer_kafka(document: Mapping[str, Any]) -> Document:
    """Return the answer with ``unowned`` beside it where a topic has partitions that no member consumes."""
    response: Document = dict(assign(document))
    owned = {partition for partitions in response["assignments"].values() for partition in partitions}
    unowned = [
        (topic, number)
        for topic in java_sorted(document["partitions"])
        for number in range(document["partitions"][topic])
        if (topic, number) not in owned
    ]
    return {**response, "unowned": unowned} if unowned else response
