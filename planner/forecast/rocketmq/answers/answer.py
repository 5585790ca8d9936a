"""The answer to one RocketMQ request: the simulation's arrays under the contract's names."""

from dataclasses import replace
from typing import Any

import numpy as np

from planner.allocation.group import allocate_group
from planner.allocation.ordering import java_sorted
from planner.forecast.common.tails import describe_tails
from planner.forecast.rocketmq.answers.broadcasting import broadcasting_trials
from planner.forecast.rocketmq.answers.causes import find_causes
from planner.forecast.rocketmq.answers.split_brain import find_split_brain
from planner.forecast.rocketmq.answers.subscription import find_subscription
from planner.forecast.rocketmq.answers.timeline import find_timeline
from planner.forecast.rocketmq.answers.warnings import warnings
from planner.forecast.rocketmq.handover.tenures import NOBODY
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import Scenario, build_scenario
from planner.forecast.rocketmq.request.changes import RollingUpdate, SubscriptionChange, Upgrade
from planner.forecast.rocketmq.request.refusals import check_size
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import Consumer
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT, Calibration
from planner.forecast.trials import Totals, Trials, interval, messages

_BY_COMMITS = frozenset({"duplicates", "burst_messages", "drained_s"})
_BY_PULLS = frozenset({"pause_s", "stall_s", "settle_s"})
_STAGGERED = RollingUpdate | Upgrade | SubscriptionChange
"""Changes in which a queue passes through several hands."""


def forecast_rocketmq(request: ForecastRequest, calibration: Calibration = DEFAULT) -> Trials:
    """Return the trials of one request; raise ``BadInputError`` where they would not fit into memory."""
    check_size(request)
    if request.broadcasts:
        return replace(broadcasting_trials(request, calibration), unknown=_unknown_figures(request))
    scenario = build_scenario(request)
    simulation = simulate(scenario, calibration)
    return _with_details(_trials(scenario, simulation), scenario, simulation)


def total_rocketmq(request: ForecastRequest, calibration: Calibration = DEFAULT) -> Totals:
    """Return the totals of the same trials as ``forecast_rocketmq``, without what only a whole answer contains."""
    check_size(request)
    if request.broadcasts:
        return replace(broadcasting_trials(request, calibration), unknown=_unknown_figures(request)).totals()
    scenario = build_scenario(request)
    return _trials(scenario, simulate(scenario, calibration)).totals()


def _with_details(trials: Trials, scenario: Scenario, simulation: Simulation) -> Trials:
    """Return the trials with all that people ask about them."""
    return replace(
        trials,
        before=_assignments(scenario, simulation, BEFORE),
        after=_assignments(scenario, simulation, AFTER),
        warnings=warnings(scenario, simulation),
        causes=tuple(cause for cause in find_causes(scenario, simulation) if cause.effect not in trials.unknown),
        timeline=find_timeline(scenario, simulation),
        extra={
            **find_split_brain(scenario, simulation),
            **find_subscription(scenario, simulation),
            **_redelivery(simulation),
            **_tails(trials.totals(), simulation),
        },
    )


def _tails(totals: Totals, simulation: Simulation) -> dict[str, Any]:
    """Return which figures have a long tail, with the delay of first deliveries that makes it."""
    parts = {
        name: np.where(simulation.deliveries.delivers, delays, 0.0).max(axis=(1, 2), initial=0.0)
        for name, delays in simulation.starts.delays.items()
    }
    return describe_tails({"pause_s": totals.pause_s, "stall_s": totals.stall_s, "settle_s": totals.settle_s}, parts)


def _redelivery(simulation: Simulation) -> dict[str, Any]:
    """Return what POP gives again because of the change: how many messages late, and when the last one comes."""
    if simulation.redelivery is None:
        return {}
    if not simulation.redelivery.is_known:
        return {"late_messages": None, "redelivered_s": None}
    return {
        "late_messages": messages(simulation.redelivery.late),
        "redelivered_s": interval(simulation.redelivery.redelivered_s),
    }


def _trials(scenario: Scenario, simulation: Simulation) -> Trials:
    labels = [*simulation.names.labels, None]
    queues = [[queue.topic, queue.broker, queue.queue_id] for queue in scenario.queues]
    before = simulation.owners.before.tolist()
    after = simulation.owners.shown.tolist()
    return Trials(
        queues=queues,
        before={},
        after={},
        owner_before=[labels[owner] for owner in before],
        owner_after=[labels[owner] for owner in after],
        moved=[
            queue
            for queue, old, new in zip(queues, before, after, strict=True)
            if NOBODY not in {old, new} and old != new
        ],
        moves=simulation.owners.moves,
        pause_s=simulation.observed.pause_s,
        duplicates=simulation.observed.duplicates,
        burst=simulation.observed.burst,
        settle_s=simulation.observed.settle_s,
        drained_s=simulation.observed.drained_s,
        unread_s=simulation.observed.unread_s if isinstance(scenario.request.change, _STAGGERED) else None,
        unknown=_unknown_figures(scenario.request)
        if simulation.redelivery is None or simulation.redelivery.is_known
        else _BY_PULLS | _BY_COMMITS,
    )


def _unknown_figures(request: ForecastRequest) -> frozenset[str]:
    """Return the unknown figures, as when the application pulls, and what it stores."""
    if request.consumer == Consumer.PULL:
        return _BY_PULLS | _BY_COMMITS
    return frozenset() if request.reports_commits else _BY_COMMITS


def _assignments(scenario: Scenario, simulation: Simulation, side: int) -> dict[str, list[list[Any]]]:
    """Return the queues of every client in the order in which its class answers them, clients sorted."""
    ids, labels = simulation.names.placements[0], simulation.names.labels
    members = scenario.initial if side == BEFORE else scenario.final
    listed = [ids[scenario.processes[member].client] for member in members]
    label = {ids[scenario.processes[member].client]: labels[scenario.processes[member].client] for member in members}
    strategy = {ids[scenario.processes[member].client]: scenario.processes[member].strategy for member in members}
    process_of = {ids[scenario.processes[member].client]: member for member in members}
    queues = [scenario.queues[pick] for topic in scenario.topics for pick in topic.queues[side].tolist()]
    answers = {
        kind: allocate_group(scenario.strategies[kind], queues, listed, scenario.request.group).answer()
        for kind in set(strategy.values())
    }
    return {
        label[client]: [
            [queue.topic, queue.broker, queue.queue_id]
            for queue in answers[strategy[client]][client]
            if scenario.subscribes_to(process_of[client], queue.topic)
        ]
        for client in java_sorted(listed)
    }
