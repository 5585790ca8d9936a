"""The answer to one RocketMQ request: the simulation's arrays under the contract's names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.allocation.group import allocate_group
from planner.allocation.ordering import java_sorted
from planner.forecast.rocketmq.answers.broadcasting import broadcasting_trials
from planner.forecast.rocketmq.answers.causes import find_causes
from planner.forecast.rocketmq.answers.split_brain import find_split_brain
from planner.forecast.rocketmq.answers.timeline import find_timeline
from planner.forecast.rocketmq.answers.warnings import warnings
from planner.forecast.rocketmq.handover.tenures import NOBODY
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import World, build_world
from planner.forecast.rocketmq.request.changes import RollingUpdate, Upgrade
from planner.forecast.rocketmq.request.reader import read_request
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import Consumer
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT, Calibration
from planner.forecast.trials import Totals, Trials, interval, messages

_BY_COMMITS = frozenset({"duplicates", "burst_messages", "drained_s"})
_BY_PULLS = frozenset({"pause_s", "stall_s", "settle_s"})


def forecast_rocketmq(document: Mapping[str, Any], calibration: Calibration = DEFAULT) -> Trials:
    """Return the trials of one request document; raise ``BadInputError`` naming field, found and expected."""
    request = read_request(document)
    if request.broadcasts:
        return replace(broadcasting_trials(request, calibration), untold=_untold(request))
    world = build_world(request)
    found = simulate(world, calibration)
    return _told(_trials(world, found), world, found)


def total_rocketmq(document: Mapping[str, Any], calibration: Calibration = DEFAULT) -> Totals:
    """Return the totals of the same trials as ``forecast_rocketmq``, without what only a whole answer tells."""
    request = read_request(document)
    if request.broadcasts:
        return replace(broadcasting_trials(request, calibration), untold=_untold(request)).totals()
    world = build_world(request)
    return _trials(world, simulate(world, calibration)).totals()


def _told(trials: Trials, world: World, found: Simulation) -> Trials:
    """Return the trials with all that people ask about them."""
    return replace(
        trials,
        before=_assignments(world, found, BEFORE),
        after=_assignments(world, found, AFTER),
        warnings=warnings(world, found),
        causes=tuple(cause for cause in find_causes(world, found) if cause.effect not in trials.untold),
        timeline=find_timeline(world, found),
        extra={**find_split_brain(world, found), **_again(found)},
    )


def _again(found: Simulation) -> dict[str, Any]:
    """Return what POP gives again because of the change: how many messages late, and when the last one comes."""
    if found.again is None:
        return {}
    if not found.again.is_known:
        return {"late_messages": None, "redelivered_s": None}
    return {"late_messages": messages(found.again.late), "redelivered_s": interval(found.again.redelivered_s)}


def _trials(world: World, found: Simulation) -> Trials:
    labels = [*found.names.labels, None]
    queues = [[queue.topic, queue.broker, queue.queue_id] for queue in world.queues]
    before = found.owners.before.tolist()
    after = found.owners.shown.tolist()
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
        moves=found.owners.moves,
        pause_s=found.observed.pause_s,
        duplicates=found.observed.duplicates,
        burst=found.observed.burst,
        settle_s=found.observed.settle_s,
        drained_s=found.observed.drained_s,
        unread_s=found.observed.unread_s if isinstance(world.request.change, RollingUpdate | Upgrade) else None,
        untold=_untold(world.request) if found.again is None or found.again.is_known else _BY_PULLS | _BY_COMMITS,
    )


def _untold(request: ForecastRequest) -> frozenset[str]:
    """Return the figures that nobody can tell, as when the application pulls, and what it stores."""
    if request.consumer == Consumer.PULL:
        return _BY_PULLS | _BY_COMMITS
    return frozenset() if request.tells_commits else _BY_COMMITS


def _assignments(world: World, found: Simulation, side: int) -> dict[str, list[list[Any]]]:
    """Return the queues of every client in the order in which its class answers them, clients sorted."""
    ids, labels = found.names.placements[0], found.names.labels
    members = world.initial if side == BEFORE else world.final
    listed = [ids[world.lives[member].client] for member in members]
    label = {ids[world.lives[member].client]: labels[world.lives[member].client] for member in members}
    strategy = {ids[world.lives[member].client]: world.lives[member].strategy for member in members}
    queues = [world.queues[pick] for topic in world.topics for pick in topic.queues[side].tolist()]
    answers = {
        kind: allocate_group(world.strategies[kind], queues, listed, world.request.group).answer()
        for kind in set(strategy.values())
    }
    return {
        label[client]: [[queue.topic, queue.broker, queue.queue_id] for queue in answers[strategy[client]][client]]
        for client in java_sorted(listed)
    }
