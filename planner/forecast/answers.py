"""Answers of ``planner forecast``, whatever the system: one document in, one document out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.errors import PlannerError
from planner.forecast.trials import Document, Totals, Trials

SYSTEMS = ("rocketmq", "kafka")


@dataclass(frozen=True, slots=True)
class Forecasts:
    """One answer a request, in order; a request that is wrong has ``{"error": …}`` in its place."""

    documents: Sequence[Document]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Return index and error of every request that was not answered."""
        return [(index, document["error"]) for index, document in enumerate(self.documents) if "error" in document]


def run_trials(request: object) -> Trials:
    """Return the trials of one request; raise ``BadInputError`` naming field, found and expected."""
    # Only the system that is asked for is loaded: the other one takes some 50 ms of a command's start.
    document = _checked(request)
    if document["system"] == "kafka":
        from planner.forecast.kafka import forecast_kafka

        return forecast_kafka(document)
    from planner.forecast.rocketmq import forecast_rocketmq

    return forecast_rocketmq(document)


def run_totals(request: object) -> Totals:
    """Return the totals of one request, equal to those of ``run_trials``, sooner where its system can spare work."""
    document = _checked(request)
    if document["system"] == "kafka":
        return run_trials(document).totals()
    from planner.forecast.rocketmq import total_rocketmq

    return total_rocketmq(document)


def _checked(request: object) -> Mapping[str, Any]:
    """Return the request as a mapping whose system is known."""
    document = fields.mapping(request, "request", "an object with system, group, queues, clients and a change")
    if "system" not in document:
        raise fields.missing("system", f"one of {', '.join(SYSTEMS)}")
    system = document["system"]
    if not isinstance(system, str) or system not in SYSTEMS:
        raise fields.refusal("system", system, f"one of {', '.join(SYSTEMS)}")
    return document


def forecast(request: object) -> Document:
    """Return the answer to one request; raise ``BadInputError`` naming field, found and expected."""
    return run_trials(request).document()


def forecast_all(requests: Sequence[object]) -> Forecasts:
    """Return one answer a request; one that is wrong keeps no other from its answer."""
    return Forecasts([_forecast_or_error(index, request) for index, request in enumerate(requests)])


def _forecast_or_error(index: int, request: object) -> Document:
    try:
        return forecast(request)
    except PlannerError as error:
        return {"error": f"request {index}: {error}"}
