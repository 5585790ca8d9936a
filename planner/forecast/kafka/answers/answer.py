"""The answer to one Kafka request: the simulation's arrays under the contract's names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.allocation.ordering import java_sorted
from planner.forecast.common.tails import describe_tails
from planner.forecast.kafka.answers.causes import find_causes
from planner.forecast.kafka.answers.subscription import find_subscription
from planner.forecast.kafka.answers.timeline import find_timeline
from planner.forecast.kafka.answers.warnings import warnings
from planner.forecast.kafka.membership.scenario import NOBODY, Scenario, build_scenario
from planner.forecast.kafka.request.changes import RollingUpdate, SubscriptionChange, Upgrade
from planner.forecast.kafka.request.refusals import check_size
from planner.forecast.kafka.request.request import ForecastRequest
from planner.forecast.kafka.simulate import Simulation, simulate
from planner.forecast.kafka.timing import DEFAULT, Calibration
from planner.forecast.trials import Totals, Trials

_STAGGERED = RollingUpdate | Upgrade | SubscriptionChange
"""Changes in which a partition passes through several hands."""


def forecast_kafka(request: ForecastRequest, calibration: Calibration = DEFAULT) -> Trials:
    """Return the trials of one request; raise ``BadInputError`` where they would not fit into memory."""
    check_size(request)
    scenario = build_scenario(request)
    simulation = simulate(scenario, calibration)
    trials = _trials(scenario, simulation)
    totals = trials.totals()
    figures = {"pause_s": totals.pause_s, "stall_s": totals.stall_s, "settle_s": totals.settle_s}
    return replace(trials, extra={**describe_tails(figures, {}), **find_subscription(scenario, simulation)})


def total_kafka(request: ForecastRequest) -> Totals:
    """Return the totals of the trials of ``forecast_kafka``, of whose work causes and timeline are a small share."""
    return forecast_kafka(request).totals()


def _trials(scenario: Scenario, simulation: Simulation) -> Trials:
    labels = [*simulation.names.labels, None]
    partitions = [list(partition) for partition in scenario.partitions]
    before, after = simulation.owners.before.tolist(), simulation.shown.tolist()
    initial = [scenario.processes[process].member for process in scenario.initial]
    final = [scenario.processes[process].member for process in scenario.final]
    return Trials(
        queues=partitions,
        before=_assignments(partitions, before, initial, simulation.names.labels),
        after=_assignments(partitions, after, final, simulation.names.labels),
        owner_before=[labels[owner] for owner in before],
        owner_after=[labels[owner] for owner in after],
        moved=[
            partition
            for partition, old, new in zip(partitions, before, after, strict=True)
            if NOBODY not in {old, new} and old != new
        ],
        moves=simulation.owners.moves,
        pause_s=simulation.observed.pause_s,
        duplicates=simulation.observed.duplicates,
        burst=simulation.observed.burst,
        settle_s=simulation.observed.settle_s,
        drained_s=simulation.observed.drained_s,
        unread_s=simulation.observed.unread_s if isinstance(scenario.request.change, _STAGGERED) else None,
        warnings=warnings(scenario, simulation),
        causes=find_causes(scenario, simulation),
        timeline=find_timeline(scenario, simulation),
    )


def _assignments(
    partitions: Sequence[list[Any]], owners: Sequence[int], members: Sequence[int], labels: Sequence[str]
) -> dict[str, list[list[Any]]]:
    """Return every member's partitions, members in the order of their ids, partitions sorted."""
    mine: dict[int, list[list[Any]]] = {member: [] for member in members}
    for partition, owner in zip(partitions, owners, strict=True):
        if owner in mine:
            mine[owner].append(partition)
    label = {labels[member]: member for member in mine}
    return {name: mine[label[name]] for name in java_sorted(label)}
