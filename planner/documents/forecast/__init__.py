"""Requests of ``planner forecast``, read into what a system's forecast takes, and answered: design.md section 4."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from planner.allocation import fields
from planner.errors import PlannerError
from planner.forecast import ForecastRequest, run_trials
from planner.forecast.trials import Document

READERS: Final[Mapping[str, str]] = {
    "rocketmq": "planner.documents.forecast.rocketmq",
    "kafka": "planner.documents.forecast.kafka",
}
"""Where the ``read_request`` of each system is. It is loaded when asked for, as its forecast is."""


@dataclass(frozen=True, slots=True)
class Forecasts:
    """One answer a request, in order; a request that is wrong has ``{"error": …}`` in its place."""

    documents: Sequence[Document]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Return index and error of every request that was not answered."""
        return [(index, document["error"]) for index, document in enumerate(self.documents) if "error" in document]


def read_request(request: object) -> ForecastRequest:
    """Return the request, checked; raise ``BadInputError`` naming field, found and expected."""
    document = fields.mapping(request, "request", "an object with system, group, queues, clients and a change")
    if "system" not in document:
        raise fields.missing("system", f"one of {', '.join(READERS)}")
    system = document["system"]
    if not isinstance(system, str) or system not in READERS:
        raise fields.refusal("system", system, f"one of {', '.join(READERS)}")
    reader: Any = import_module(READERS[system])
    read: ForecastRequest = reader.read_request(document)
    return read


def forecast(request: object) -> Document:
    """Return the answer to one request; raise ``BadInputError`` naming field, found and expected."""
    return run_trials(read_request(request)).document()


def forecast_all(requests: Sequence[object]) -> Forecasts:
    """Return one answer a request; one that is wrong keeps no other from its answer."""
    return Forecasts([_forecast_or_error(index, request) for index, request in enumerate(requests)])


def _forecast_or_error(index: int, request: object) -> Document:
    try:
        return forecast(request)
    except PlannerError as error:
        return {"error": f"request {index}: {error}"}
