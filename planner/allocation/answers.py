"""Answers of ``planner allocate``, whatever the system: one document in, one document out."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.allocation.request import answer_document, read_request
from planner.errors import BadInputError, PlannerError

SYSTEMS = ("rocketmq", "kafka")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer a request, in order; a request that is wrong has ``{"error": …}`` in its place."""

    documents: Sequence[Document]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Return index and error of every request that was not answered."""
        return [(index, found["error"]) for index, found in enumerate(self.documents) if "error" in found]


def answer(request: object) -> Document:
    """Return the answer to one request; raise ``BadInputError`` naming field, found and expected."""
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
    try:
        kafka = importlib.import_module("planner.allocation.kafka")
    except ModuleNotFoundError:
        raise BadInputError("system: found kafka, expected rocketmq: kafka is not built yet") from None
    return dict(kafka.assign(document))
