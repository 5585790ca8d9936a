"""Answers of ``planner forecast``, whatever the system: one document in, one document out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.errors import PlannerError
from planner.simulation.dynamics.kafka import forecast_kafka
from planner.simulation.dynamics.rocketmq import forecast_rocketmq, total_rocketmq
from planner.simulation.dynamics.trials import Document, Totals, Trials

SYSTEMS: dict[str, Callable[[Mapping[str, Any]], Trials]] = {"rocketmq": forecast_rocketmq, "kafka": forecast_kafka}
"""The simulation of each system."""

TOTALS: dict[str, Callable[[Mapping[str, Any]], Totals]] = {"rocketmq": total_rocketmq}
"""The same for systems that can tell totals with less work."""


@dataclass(frozen=True, slots=True)
class Forecasts:
    """One answer a request, in order; a request that is wrong has ``{"error": …}`` in its place."""

    documents: Sequence[Document]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Return index and error of every request that was not answered."""
        return [(index, found["error"]) for index, found in enumerate(self.documents) if "error" in found]


def run_trials(request: object) -> Trials:
    """Return the trials of one request; raise ``BadInputError`` naming field, found and expected."""
    document = _checked(request)
    return SYSTEMS[document["system"]](document)


def run_totals(request: object) -> Totals:
    """Return the totals of one request, equal to those of ``run_trials``, sooner where its system can spare work."""
    document = _checked(request)
    system = document["system"]
    return TOTALS[system](document) if system in TOTALS else SYSTEMS[system](document).totals()


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
