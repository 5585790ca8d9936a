"""Why partitions pause and records come twice in a forecast, and which setting would lower it."""

from collections.abc import Iterator, Mapping

import numpy as np

from planner.forecast.common.changes import CRASH, CUT, FREEZE, SILENT
from planner.forecast.kafka.membership.scenario import NOBODY, Booleans, Floats, World
from planner.forecast.kafka.request.changes import BlueGreen
from planner.forecast.kafka.request.settings import CONSUMER
from planner.forecast.kafka.simulate import Simulation
from planner.forecast.trials import LEAST_TOLD, Cause

Lever = Mapping[str, object]

_SHORT_SESSION_MS, _SHORT_BEAT_MS, _SHORT_COMMIT_MS, _SERVER_BEAT_MS = 10_000, 1_000, 1_000, 5_000


def find_causes(world: World, found: Simulation) -> tuple[Cause, ...]:
    """Return what makes pauses and duplicates, the largest shares first; shares add up to 1 within each effect."""
    causes = [*_pause_causes(world, found), *_duplicate_causes(world, found)]
    return tuple(sorted((cause for cause in causes if cause.share >= LEAST_TOLD), key=lambda cause: -cause.share))


def _pause_causes(world: World, found: Simulation) -> Iterator[Cause]:
    """Yield the parts of the mean pause of a moved partition, along the first delivery of its new owner."""
    pause = np.where(found.owners.moves, np.nan_to_num(found.observed.pause_s), 0.0)
    paused = pause > 0
    if not paused.any():
        return
    whole, count = float(pause[paused].sum()), int(paused.sum())
    left = pause
    parts: dict[str, Floats] = {}
    for name, part in (
        ("poll_loop", _of_first(world, found, found.found.queueing)),
        ("fetch", _of_first(world, found, found.found.fetching)),
        ("expiry", _unnoticed(world, found)),
        ("handover", _between_groups(world, found)),
    ):
        parts[name] = np.minimum(part, left)
        left = left - parts[name]
    parts[_rest(world, found)] = left
    for name, part in parts.items():
        amount = float(part[paused].sum())
        yield Cause(name, "pause_s", amount / count, amount / whole, _lever(world, name))


def _of_first(world: World, found: Simulation, values: Floats) -> Floats:
    """Return a figure of the hold with which the new owner begins."""
    holds = found.course.holds
    takes = found.found.delivers & (world.member_of[holds.life] == found.owners.after)
    first = np.where(takes, found.found.first, np.inf).argmin(axis=0)[None]
    picked: Floats = np.take_along_axis(values, first, axis=0)[0]
    return picked


def _unnoticed(world: World, found: Simulation) -> Floats:
    """Return how long the coordinator kept waiting for the old owner after its last delivery."""
    ends, times = np.zeros(found.owners.after.shape), found.times
    replaced = {life.follows for life in world.lives if world.members[life.member].instance_id is not None}
    for index, life in enumerate(world.lives):
        if index in replaced:
            continue
        if life.how in (CRASH, SILENT, FREEZE, CUT) or world.members[life.member].instance_id is not None:
            waits = np.isfinite(times.leaves[:, index]) & np.isfinite(times.stops[:, index])
            unnoticed = np.where(waits, times.leaves[:, index], 0.0) - np.where(waits, times.stops[:, index], 0.0)
            ends = np.where(found.owners.before == life.member, np.maximum(ends, unnoticed[:, None]), ends)
    return ends


def _between_groups(world: World, found: Simulation) -> Floats:
    """Return how long it took from the last delivery of a group until a member of the one that takes over came."""
    shape = found.owners.after.shape
    if not any(life.succeeds for life in world.lives):
        return np.zeros(shape)
    old, new = (np.array([life.succeeds == succeeds for life in world.lives]) for succeeds in (False, True))
    came, stopped = found.times.arrives[:, new].min(axis=1), found.times.stops[:, old].max(axis=1)
    return np.broadcast_to(np.maximum(came - stopped, 0.0)[:, None], shape)


def _rest(world: World, found: Simulation) -> str:
    """Return the name of what lies between the coordinator's notice and the new owner's first fetch."""
    if (world.request.protocol == CONSUMER and not world.request.reverts) or world.request.converts:
        return "heartbeat"
    if isinstance(world.request.change, BlueGreen):
        return "first_members"
    holds = found.course.holds
    cooperates = np.array([*(life.is_cooperative for life in world.lives), False])
    gives = (holds.life != NOBODY) & np.isfinite(holds.dropped) & cooperates[holds.life]
    leavers = np.array([*(life.ends_s is not None for life in world.lives), False])
    return "second_round" if (gives & ~leavers[holds.life]).any() else "barrier"


def _duplicate_causes(world: World, found: Simulation) -> Iterator[Cause]:
    """Yield the parts of the mean number of duplicates of the whole change."""
    whole, trials = float(found.observed.duplicates.sum()), world.request.trials
    if not whole:
        return
    zombie = float(found.zombies.records.sum())
    unsaved = float(np.where(_lost(world, found), found.observed.duplicates - found.zombies.records, 0.0).sum())
    rest = "clone" if isinstance(world.request.change, BlueGreen) else "revocation"
    parts = {"zombie": zombie, "unsaved": unsaved, rest: whole - zombie - unsaved}
    for name, part in parts.items():
        if part > 0:
            yield Cause(name, "duplicates", part / trials, part / whole, _lever(world, name))


def _lost(world: World, found: Simulation) -> Booleans:
    """Return the partitions whose owner before the change ends without a commit."""
    gone = {life.member for life in world.lives if life.how in (CRASH, SILENT, FREEZE, CUT)}
    return np.isin(found.owners.before, sorted(gone))


def _lever(world: World, cause: str) -> Lever:
    """Return settings that lower a cause of this change; empty where none is known or it is set already."""
    request, settings = world.request, world.request.settings
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
