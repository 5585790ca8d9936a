"""Why partitions pause and records are redelivered in a forecast, and which setting would lower it."""

from collections.abc import Iterator, Mapping

import numpy as np

from planner.forecast.common.changes import CRASH, CUT, FREEZE, SILENT
from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Floats, Scenario
from planner.forecast.kafka.request.changes import BlueGreen
from planner.forecast.kafka.request.settings import CONSUMER
from planner.forecast.kafka.simulate import Simulation
from planner.forecast.trials import LEAST_REPORTED, Cause

Lever = Mapping[str, object]

_SHORT_SESSION_MS, _SHORT_BEAT_MS, _SHORT_COMMIT_MS, _SERVER_BEAT_MS = 10_000, 1_000, 1_000, 5_000


def find_causes(scenario: Scenario, simulation: Simulation) -> tuple[Cause, ...]:
    """Return what makes pauses and duplicates, the largest shares first; shares add up to 1 within each effect."""
    causes = [*_pause_causes(scenario, simulation), *_duplicate_causes(scenario, simulation)]
    return tuple(sorted((cause for cause in causes if cause.share >= LEAST_REPORTED), key=lambda cause: -cause.share))


def _pause_causes(scenario: Scenario, simulation: Simulation) -> Iterator[Cause]:
    """Yield the parts of the mean pause of a moved partition, along the first delivery of its new owner."""
    pause = np.where(simulation.owners.moves, np.nan_to_num(simulation.observed.pause_s), 0.0)
    paused = pause > 0
    if not paused.any():
        return
    whole, count = float(pause[paused].sum()), int(paused.sum())
    left = pause
    by_cause: dict[str, Floats] = {}
    for name, amounts in (
        ("poll_loop", _of_first(scenario, simulation, simulation.deliveries.queueing)),
        ("fetch", _of_first(scenario, simulation, simulation.deliveries.fetching)),
        ("expiry", _unnoticed(scenario, simulation)),
        ("handover", _between_groups(scenario, simulation)),
    ):
        by_cause[name] = np.minimum(amounts, left)
        left = left - by_cause[name]
    by_cause[_rest(scenario, simulation)] = left
    for name, amounts in by_cause.items():
        amount = float(amounts[paused].sum())
        yield Cause(name, "pause_s", amount / count, amount / whole, _lever(scenario, name))


def _of_first(scenario: Scenario, simulation: Simulation, values: Floats) -> Floats:
    """Return a figure of the tenure with which the new owner begins."""
    tenures = simulation.membership.tenures
    takes = simulation.deliveries.delivers & (scenario.member_of[tenures.process] == simulation.owners.after)
    first = np.where(takes, simulation.deliveries.first, np.inf).argmin(axis=0)[None]
    picked: Floats = np.take_along_axis(values, first, axis=0)[0]
    return picked


def _unnoticed(scenario: Scenario, simulation: Simulation) -> Floats:
    """Return how long the coordinator kept waiting for the old owner after its last delivery."""
    ends, times = np.zeros(simulation.owners.after.shape), simulation.times
    replaced = {
        process.follows for process in scenario.processes if scenario.members[process.member].instance_id is not None
    }
    for index, process in enumerate(scenario.processes):
        if index in replaced:
            continue
        if process.how in (CRASH, SILENT, FREEZE, CUT) or scenario.members[process.member].instance_id is not None:
            waits = np.isfinite(times.leaves[:, index]) & np.isfinite(times.stops[:, index])
            unnoticed = np.where(waits, times.leaves[:, index], 0.0) - np.where(waits, times.stops[:, index], 0.0)
            ends = np.where(simulation.owners.before == process.member, np.maximum(ends, unnoticed[:, None]), ends)
    return ends


def _between_groups(scenario: Scenario, simulation: Simulation) -> Floats:
    """Return how long it took from the last delivery of a group until a member of the one that takes over came."""
    shape = simulation.owners.after.shape
    if not any(process.succeeds for process in scenario.processes):
        return np.zeros(shape)
    old, new = (
        np.array([process.succeeds == succeeds for process in scenario.processes]) for succeeds in (False, True)
    )
    came, stopped = simulation.times.arrives[:, new].min(axis=1), simulation.times.stops[:, old].max(axis=1)
    return np.broadcast_to(np.maximum(came - stopped, 0.0)[:, None], shape)


def _rest(scenario: Scenario, simulation: Simulation) -> str:
    """Return the name of what lies between the coordinator's notice and the new owner's first fetch."""
    if (scenario.request.protocol == CONSUMER and not scenario.request.reverts) or scenario.request.converts:
        return "heartbeat"
    if isinstance(scenario.request.change, BlueGreen):
        return "first_members"
    tenures = simulation.membership.tenures
    cooperates = np.array([*(process.is_cooperative for process in scenario.processes), False])
    gives = (tenures.process != NOBODY) & np.isfinite(tenures.revoked_at) & cooperates[tenures.process]
    leavers = np.array([*(process.ends_s is not None for process in scenario.processes), False])
    return "second_round" if (gives & ~leavers[tenures.process]).any() else "barrier"


def _duplicate_causes(scenario: Scenario, simulation: Simulation) -> Iterator[Cause]:
    """Yield the parts of the mean number of duplicates of the whole change."""
    whole, trials = float(simulation.observed.duplicates.sum()), scenario.request.trials
    if not whole:
        return
    zombie = float(simulation.zombies.records.sum())
    unsaved = float(
        np.where(_lost(scenario, simulation), simulation.observed.duplicates - simulation.zombies.records, 0.0).sum()
    )
    rest = "clone" if isinstance(scenario.request.change, BlueGreen) else "revocation"
    by_cause = {"zombie": zombie, "unsaved": unsaved, rest: whole - zombie - unsaved}
    for name, amounts in by_cause.items():
        if amounts > 0:
            yield Cause(name, "duplicates", amounts / trials, amounts / whole, _lever(scenario, name))


def _lost(scenario: Scenario, simulation: Simulation) -> Booleans:
    """Return the partitions whose owner before the change ends without a commit."""
    gone = {process.member for process in scenario.processes if process.how in (CRASH, SILENT, FREEZE, CUT)}
    return np.isin(simulation.owners.before, sorted(gone))


def _lever(scenario: Scenario, cause: str) -> Lever:
    """Return settings that lower a cause of this change; empty where none is known or it is set already."""
    request, settings = scenario.request, scenario.request.settings
    is_classic, commits_itself = request.protocol != CONSUMER, settings.is_on("enable.auto.commit")

    def at_most(name: str, value: int) -> Lever:
        return {name: value} if settings.value(name) > value else {}

    if cause == "expiry" and is_classic:
        return at_most("session.timeout.ms", _SHORT_SESSION_MS)
    if cause == "first_members":
        return at_most("group.initial.rebalance.delay.ms", 0)
    if cause in ("barrier", "second_round") or (cause == "revocation" and is_classic):
        return at_most("heartbeat.interval.ms", _SHORT_BEAT_MS)
    if cause == "heartbeat":
        return at_most("group.consumer.heartbeat.interval.ms", _SERVER_BEAT_MS)
    if cause == "unsaved" and commits_itself:
        return at_most("auto.commit.interval.ms", _SHORT_COMMIT_MS)
    return {}
