"""Why queues pause and messages are redelivered in a forecast, and which setting would lower it."""

from collections.abc import Iterator, Mapping

import numpy as np

from planner.forecast.common.changes import GRACEFUL, SILENT
from planner.forecast.rocketmq.handover.tenures import NOBODY
from planner.forecast.rocketmq.membership.scenario import Scenario
from planner.forecast.rocketmq.request.changes import (
    BlueGreen,
    Change,
    Freeze,
    Join,
    Leave,
    Partition,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    Upgrade,
)
from planner.forecast.rocketmq.request.settings import Settings
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.trials import LEAST_REPORTED, Cause

Lever = Mapping[str, int | bool]

_MORE_IS_BETTER = ("awaitTerminationMillisWhenShutdown",)
"""Of all other settings that are levers, less is better."""


def find_causes(scenario: Scenario, simulation: Simulation) -> tuple[Cause, ...]:
    """Return what makes pauses and duplicates, the largest shares first; shares add up to 1 within each effect."""
    causes = [*_pause_causes(scenario, simulation), *_duplicate_causes(scenario, simulation)]
    return tuple(sorted((cause for cause in causes if cause.share >= LEAST_REPORTED), key=lambda cause: -cause.share))


def _pause_causes(scenario: Scenario, simulation: Simulation) -> Iterator[Cause]:
    """Yield the parts of the mean pause of a moved queue, along the first delivery of its new owner."""
    queues = simulation.tenures.queues
    moves = simulation.owners.moves[:, queues]
    pause = np.where(moves, np.nan_to_num(simulation.observed.pause_s[:, queues]), 0.0)
    if not (pause > 0).any():
        return
    client = np.array([*(process.client for process in scenario.processes), NOBODY])[simulation.tenures.process]
    takes = simulation.deliveries.delivers & (client == simulation.owners.after[:, queues, None])
    first = np.where(takes, simulation.starts.first, np.inf).argmin(axis=2)[..., None]
    paused = pause > 0
    count, left = int(paused.sum()), pause[paused].sum()
    whole = left
    for name, delays in simulation.starts.delays.items():
        share = np.minimum(np.take_along_axis(delays, first, axis=2)[..., 0], pause)[paused].sum()
        left -= share
        yield Cause(name, "pause_s", float(share / count), float(share / whole), _lever(scenario, name))
    rest = _rest(scenario)
    left = max(float(left), 0.0)
    yield Cause(rest, "pause_s", left / count, left / float(whole), _lever(scenario, rest))


def _duplicate_causes(scenario: Scenario, simulation: Simulation) -> Iterator[Cause]:
    """Yield the parts of the mean number of duplicates of the whole change."""
    whole = float(simulation.deliveries.duplicates.sum())
    for name, share in simulation.deliveries.causes.items():
        if whole and share.sum():
            amount = float(share.sum())
            lever = _lever(scenario, name)
            yield Cause(name, "duplicates", amount / scenario.request.trials, amount / whole, lever)


def _rest(scenario: Scenario) -> str:
    """Return the name of what lies before the new owner's first pull."""
    change = scenario.request.change
    if isinstance(change, Leave | Restart) and change.how == SILENT:
        return "expiry"
    if scenario.route_changes:
        return "route"
    return "lock" if scenario.request.orderly else "notice"


def _lever(scenario: Scenario, cause: str) -> Lever:
    """Return settings that lower a cause of this change; empty where none is known or they are as good already."""
    better = _levers(scenario).get(cause, {})
    return {name: value for name, value in better.items() if _is_worse(scenario.request.settings, name, value)}


def _is_worse(settings: Settings, name: str, better: int | bool) -> bool:
    """Return whether the present value, given or the default, is on the worse side of the one that is wanted."""
    if isinstance(better, bool):
        return settings.is_on(name) != better
    present = settings.value(name)
    return present < better if name in _MORE_IS_BETTER else present > better


def _stores_no_more(change: Change) -> bool:
    """Return whether processes end, or are away, that others follow from what they stored before."""
    return isinstance(change, Freeze | Partition) or (isinstance(change, Leave | Restart) and change.how != GRACEFUL)


_STOPPING = StrategyChange | SubscriptionChange | Upgrade | RollingUpdate | BlueGreen
"""Changes that shut clients down in order."""


def _levers(scenario: Scenario) -> dict[str, Lever]:
    request, change = scenario.request, scenario.request.change
    leaves_gracefully = isinstance(change, Leave | Restart) and change.how == GRACEFUL
    polls_route = "loadBalancePollNameServerInterval" if request.is_broker_allocated else "pollNameServerInterval"
    faster_clocks = {polls_route: 5_000, "rocketmq.client.rebalance.waitInterval": 5_000}
    levers: dict[str, Lever] = {
        "route": faster_clocks,
        "expiry": {"serverChannelMaxIdleTimeSeconds": 40},
        "lock": {
            "rocketmq.broker.rebalance.lockMaxLiveTime": 15_000,
            "rocketmq.client.rebalance.lockMaxLiveTime": 10_000,
            "rocketmq.client.rebalance.lockInterval": 5_000,
        },
        "version_race": {"pullTimeDelayMillsWhenException": 100},
        "lost_heartbeat": {"heartbeatBrokerInterval": 5_000},
        "head_of_line": {"pullThresholdForQueue": 64},
    }
    by_commits = {"autoCommitIntervalMillis": 1_000} if request.settings.is_on("autoCommit") else {}
    by_stores = {"persistConsumerOffsetInterval": 1_000} if _stores_no_more(change) else {}
    levers["uncommitted"] = {**by_commits, **by_stores}
    if scenario.route_changes:
        levers["overlap"] = faster_clocks
    elif isinstance(change, Join) and request.generation.has_min_gap:
        levers["overlap"] = {"rocketmq.client.rebalance.minInterval": 100}
    stops = leaves_gracefully or isinstance(change, _STOPPING)
    if stops and not request.pops and not request.polls:  # a shutdown waits for listener calls of pulled messages alone
        levers["in_flight"] = {"awaitTerminationMillisWhenShutdown": 5_000}
    if not request.settings.is_on("notifyConsumerIdsChangedEnable"):
        levers["notice"] = levers["overlap"] = {"notifyConsumerIdsChangedEnable": True}
    return levers
