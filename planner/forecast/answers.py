"""Forecasts, whatever the system: one request in, its trials out."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Final, Protocol

from planner.forecast.trials import Totals, Trials

SYSTEMS: Final[Mapping[str, str]] = {"rocketmq": "planner.forecast.rocketmq", "kafka": "planner.forecast.kafka"}
"""The room of each system, which has a ``Forecaster``. It is loaded when asked for: each takes some 50 ms to start."""


class ForecastRequest(Protocol):
    """What the requests of all systems have: each room has a frozen dataclass of its own."""

    system: ClassVar[str]

    @property
    def trials(self) -> int:
        """How many trials are run."""

    @property
    def seed(self) -> int:
        """What their random numbers follow from."""


class Forecaster(Protocol):
    """What a system's room offers."""

    def run_trials(self, request: Any) -> Trials:
        """Return the trials of one of its requests; raise ``BadInputError`` where they would not fit into memory."""

    def run_totals(self, request: Any) -> Totals:
        """Return the totals of one request, equal to those of ``run_trials``, sooner where work can be spared."""


def run_trials(request: ForecastRequest) -> Trials:
    """Return the trials of one request; raise ``BadInputError`` where they would not fit into memory."""
    return _forecaster(request).run_trials(request)


def run_totals(request: ForecastRequest) -> Totals:
    """Return the totals of one request, equal to those of ``run_trials``, sooner where its system can spare work."""
    return _forecaster(request).run_totals(request)


def _forecaster(request: ForecastRequest) -> Forecaster:
    room: Any = import_module(SYSTEMS[request.system])
    forecaster: Forecaster = room
    return forecaster
