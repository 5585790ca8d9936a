"""Sentences about a forecast: what is odd about the change, and what the forecast does not know."""

from collections.abc import Iterator, Sequence

import numpy as np

from planner.forecast.common.changes import GRACEFUL
from planner.forecast.kafka.handover.offsets import skips_new
from planner.forecast.kafka.membership.broker_outages import UNKNOWN_BROKERS
from planner.forecast.kafka.membership.scenario import NOBODY, World
from planner.forecast.kafka.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Leave,
    PartitionCount,
    Restart,
    RollingUpdate,
    StrategyChange,
)
from planner.forecast.kafka.request.request import COOPERATIVE
from planner.forecast.kafka.request.settings import CONSUMER
from planner.forecast.kafka.simulate import Simulation

_NAMED = 3


def warnings(world: World, found: Simulation) -> tuple[str, ...]:
    """Return every sentence, the request's own first."""
    return (
        *world.request.warnings,
        *_about_names(world, found),
        *_about_members(world, found),
        *_about_static_members(world),
        *_about_rolling(world, found),
        *_about_groups(world),
        *_about_brokers(world),
        *_about_partitions(world, found),
        *_about_load(world, found),
    )


def _about_names(world: World, found: Simulation) -> Iterator[str]:
    unknown = sum(member.id is None for member in world.members)
    if found.names.renamed:
        come = "come by the classic protocol" if world.request.reverts else "come by the consumer protocol"
        yield (
            f"the ids with which members {come} are made up as they come, and decide who gets "
            f"what: totals and partitions are sampled over them; after and moved show what is most frequent"
        )
    elif found.names.are_sampled and unknown:
        ids = "1 id is" if unknown == 1 else f"{unknown} ids are"
        yield (
            f"{ids} not known yet: totals and partitions are sampled over the places that new ids may sort into; after "
            f"and moved show the case in which they sort last"
        )
    if not world.request.is_java and COOPERATIVE in _assignors(world) and len({m.topics for m in world.members}) > 1:
        yield (
            "members subscribe to different topics, where librdkafka's cooperative-sticky may pick others than those "
            "that are shown"
        )
    if not found.assignments.is_determined:
        yield (
            f"which partitions {world.request.assignor_after} moves is settled by the hash order of the members' real "
            f"ids: how many is known, which is shown for one order"
        )


def _assignors(world: World) -> set[str]:
    return {name for life in world.lives for name in life.assignors}


def _about_members(world: World, found: Simulation) -> Iterator[str]:
    if not world.final:
        yield "the change leaves nobody: no partition is consumed afterwards"
        return
    if not world.initial:
        yield "nobody consumes before the change: there is no pause to measure"
    busy = set(found.shown.tolist())
    members = [world.lives[life].member for life in world.final]
    idle = [found.names.labels[member] for member in members if member not in busy]
    if idle:
        yield f"{_named(idle)} will be idle: {len(members)} members, {len(world.partitions)} partitions"


def _about_static_members(world: World) -> Iterator[str]:
    change = world.request.change
    static = {member.id for member in world.request.members if member.instance_id is not None}
    if isinstance(change, Leave) and change.how == GRACEFUL:
        stay = [name for name in change.members if name in static]
        if stay:
            yield (
                f"{_named(stay)} has a group.instance.id and does not leave when it closes: its partitions wait until "
                f"its session is over"
            )
    back = [name for name in change.members if name in static] if isinstance(change, StrategyChange) else []
    if back and not world.request.switches_static:
        yield (
            f"{_named(back)} takes over what its former process had, as it has a group.instance.id: "
            f"{world.request.assignor_after} shares partitions out anew only when somebody comes or goes"
        )
    if isinstance(change, Restart) and change.how != GRACEFUL and world.request.protocol == CONSUMER:
        refused = [name for name in change.members if name in static]
        if refused:
            yield (
                f"{_named(refused)} is refused (UNRELEASED_INSTANCE_ID) until the session of its killed process is over"
            )


def _about_rolling(world: World, found: Simulation) -> Iterator[str]:
    change = world.request.change
    if not isinstance(change, RollingUpdate):
        return
    yield (
        "which old pod stops when is the cluster's choice and drawn evenly; pauses run from the first owner to the "
        "last one, between whom others consume"
    )
    longest = float(found.loops.batch_s.max(initial=0.0))
    if longest > change.rolling.grace_s:
        yield (
            f"a poll loop may take {longest:.0f} s, longer than grace_s ({change.rolling.grace_s:g} s): such a member "
            f"is killed, which is not forecast"
        )


def _about_groups(world: World) -> Iterator[str]:
    change = world.request.change
    if not isinstance(change, BlueGreen):
        return
    yield (
        f"the group {change.to_group} starts from offsets copied after {change.clone_s:g} s: they can be set only "
        f"while it has no members"
    )
    if change.stop_s > change.clone_s:
        yield f"what is consumed in the {change.stop_s - change.clone_s:g} s between the copy and the stop comes twice"
    if change.stop_s > change.start_s:
        yield f"both groups consume everything for {change.stop_s - change.start_s:g} s"


def _about_brokers(world: World) -> Iterator[str]:
    change = world.request.change
    if not isinstance(change, BrokerDown | BrokerUp):
        return
    if not world.request.brokers:
        yield (
            f"which partitions {change.broker} leads is not told (partitions: leader): sampled as if it were one of "
            f"{UNKNOWN_BROKERS[0]} to {UNKNOWN_BROKERS[1]} brokers that lead alike"
        )
    if isinstance(change, BrokerDown):
        yield "forecast as if every partition had another replica in sync; one without it stays out of reach"
        if not world.request.settings.is_on("enable.auto.commit"):
            yield (
                f"whether {change.broker} coordinates the group is not known and sampled: until there is another "
                f"coordinator, commits wait and all members with them"
            )


def _about_partitions(world: World, found: Simulation) -> Iterator[str]:
    before, shown = found.owners.before, found.shown
    lost = [_text(world.partitions[pick]) for pick in np.flatnonzero((shown == NOBODY) & (before != NOBODY))]
    if lost and world.final:
        yield f"nobody consumes {_named(lost)} afterwards: no pause can be told"
    stranded = int(world.lags[shown == NOBODY].sum())
    if lost and stranded:
        yield f"{stranded} records wait in partitions that nobody consumes"
    change = world.request.change
    if isinstance(change, PartitionCount) and world.expands:
        if skips_new(world).any():
            yield (
                f"auto.offset.reset is not earliest: records that reach the new partitions of {change.topic} before "
                f"their owner looks for a position are skipped"
            )
        rates = {one.rate for one in world.request.partitions[change.topic]}
        if len(rates) > 1:
            yield f"the records of {change.topic} are forecast to spread evenly over more partitions: keys decide that"


def _about_load(world: World, found: Simulation) -> Iterator[str]:
    for life in world.final:
        member = world.lives[life].member
        arriving = float(world.rates[found.shown == member].sum())
        if arriving > found.loops.capacity:
            yield (
                f"{found.names.labels[member]} cannot keep up: {arriving:g} records a second come, "
                f"{found.loops.capacity:g} are what its loop can do"
            )
    longest = float(found.loops.batch_s.max(initial=0.0))
    limit = world.request.settings.seconds("max.poll.interval.ms")
    if longest > limit:
        yield (
            f"a poll loop may take {longest:.0f} s, longer than max.poll.interval.ms ({limit:g} s): members leave and "
            f"come again whatever changes, which is not forecast"
        )


def _text(partition: tuple[str, int]) -> str:
    return f"{partition[0]}/{partition[1]}"


def _named(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
