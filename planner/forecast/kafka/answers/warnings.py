"""Sentences about a forecast: what is odd about the change, and what the forecast does not know."""

from collections.abc import Iterator, Sequence

import numpy as np

from planner.forecast.common.changes import GRACEFUL
from planner.forecast.common.readings import about_steps
from planner.forecast.kafka.handover.offsets import skips_new
from planner.forecast.kafka.membership.broker_outages import UNKNOWN_BROKERS
from planner.forecast.kafka.membership.scenario import NOBODY, Scenario
from planner.forecast.kafka.membership.unknown_ids import POSITIONAL
from planner.forecast.kafka.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Leave,
    PartitionCount,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    TopicCreated,
)
from planner.forecast.kafka.request.request import COOPERATIVE
from planner.forecast.kafka.request.settings import CONSUMER, RESET
from planner.forecast.kafka.simulate import Simulation

_NAMED = 3


def warnings(scenario: Scenario, simulation: Simulation) -> tuple[str, ...]:
    """Return every sentence, the request's own first."""
    return (
        *scenario.request.warnings,
        *_about_names(scenario, simulation),
        *_about_members(scenario, simulation),
        *_about_static_members(scenario),
        *_about_rolling(scenario, simulation),
        *_about_groups(scenario),
        *_about_brokers(scenario),
        *_about_subscriptions(scenario),
        *_about_partitions(scenario, simulation),
        *_about_load(scenario, simulation),
    )


def _about_names(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    unknown = sum(member.id is None for member in scenario.members)
    if simulation.names.renamed:
        come = "come by the classic protocol" if scenario.request.reverts else "come by the consumer protocol"
        yield (
            f"the ids with which members {come} are made up as they come, and decide who gets "
            f"what: totals and partitions are sampled over them; after and moved show what is most frequent"
        )
    elif simulation.names.are_sampled and unknown:
        ids = "1 id is" if unknown == 1 else f"{unknown} ids are"
        yield (
            f"{ids} not known yet: totals and partitions are sampled over the places that new ids may sort into; after "
            f"and moved show the case in which they sort last"
        )
    if (
        not scenario.request.is_java
        and COOPERATIVE in _assignors(scenario)
        and len({m.topics for m in scenario.members}) > 1
    ):
        yield (
            "members subscribe to different topics, where librdkafka's cooperative-sticky may pick others than those "
            "that are shown"
        )
    by_ends = "other ids, over which totals and partitions are sampled; after and moved show what is most frequent"
    if not simulation.assignments.is_determined:
        shown = "how many is known, which is shown for one order"
        yield (
            f"which partitions {scenario.request.assignor_after} moves is settled by the hash order of the members' "
            f"real ids: {f'members that come again get {by_ends}' if simulation.names.successor_ids else shown}"
        )
    elif simulation.names.successor_ids and _assignors(scenario) <= POSITIONAL:
        yield (
            "several members have one client.id, so that the random ends of their ids decide who gets what: members "
            f"that come again get {by_ends}; a client.id of its own for each member keeps its partitions"
        )


def _assignors(scenario: Scenario) -> set[str]:
    return {name for process in scenario.processes for name in process.assignors}


def _about_members(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    if not scenario.final:
        yield "the change leaves nobody: no partition is consumed afterwards"
        return
    if not scenario.initial:
        yield "nobody consumes before the change: there is no pause to measure"
    busy = set(simulation.shown.tolist())
    members = [scenario.processes[process].member for process in scenario.final]
    idle = [simulation.names.labels[member] for member in members if member not in busy]
    if idle:
        yield f"{_named(idle)} will be idle: {len(members)} members, {len(scenario.partitions)} partitions"


def _about_static_members(scenario: Scenario) -> Iterator[str]:
    change = scenario.request.change
    static = {member.id for member in scenario.request.members if member.instance_id is not None}
    if isinstance(change, Leave) and change.how == GRACEFUL:
        stay = [name for name in change.members if name in static]
        if stay:
            yield (
                f"{_named(stay)} has a group.instance.id and does not leave when it closes: its partitions wait until "
                f"its session is over"
            )
    back = [name for name in change.members if name in static] if isinstance(change, StrategyChange) else []
    if back and not scenario.request.switches_static:
        yield (
            f"{_named(back)} takes over what its former process had, as it has a group.instance.id: "
            f"{scenario.request.assignor_after} shares partitions out anew only when somebody comes or goes"
        )
    if isinstance(change, Restart) and change.how != GRACEFUL and scenario.request.protocol == CONSUMER:
        refused = [name for name in change.members if name in static]
        if refused:
            yield (
                f"{_named(refused)} is refused (UNRELEASED_INSTANCE_ID) until the session of its killed process is over"
            )


def _about_rolling(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    change = scenario.request.change
    if not isinstance(change, RollingUpdate):
        return
    yield (
        "which old pod stops when is the cluster's choice and drawn evenly; pauses run from the first owner to the "
        "last one, between whom others consume"
    )
    longest = float(simulation.poll_loops.batch_s.max(initial=0.0))
    if longest > change.rolling.grace_s:
        yield (
            f"a poll loop may take {longest:.0f} s, longer than grace_s ({change.rolling.grace_s:g} s): such a member "
            f"is killed, which is not forecast"
        )


def _about_groups(scenario: Scenario) -> Iterator[str]:
    change = scenario.request.change
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


def _about_subscriptions(scenario: Scenario) -> Iterator[str]:
    change = scenario.request.change
    if not isinstance(change, SubscriptionChange | TopicCreated):
        return
    new = {change.topic} if isinstance(change, TopicCreated) else scenario.added
    for topic in sorted(new):
        if scenario.request.settings.text(RESET) != "earliest":
            yield (
                f"records that reach {topic} before its owners look for a position are skipped, as auto.offset.reset "
                f"is not earliest, unless the group has committed offsets of {topic}"
            )
    if isinstance(change, SubscriptionChange):
        yield from about_steps(len(change.members), len(scenario.partitions))
    if isinstance(change, SubscriptionChange) and len(change.members) < len(scenario.request.members):
        yield (
            f"{len(change.members)} of {len(scenario.request.members)} members come back with other topics: the others "
            "keep theirs, and only members that subscribe to a topic share its partitions"
        )


def _about_brokers(scenario: Scenario) -> Iterator[str]:
    change = scenario.request.change
    if not isinstance(change, BrokerDown | BrokerUp):
        return
    if not scenario.request.brokers:
        yield (
            f"which partitions {change.broker} leads is not given (partitions: leader): sampled as if it were one of "
            f"{UNKNOWN_BROKERS[0]} to {UNKNOWN_BROKERS[1]} brokers that lead alike"
        )
    if isinstance(change, BrokerDown):
        yield "forecast as if every partition had another replica in sync; one without it stays out of reach"
        if not scenario.request.settings.is_on("enable.auto.commit"):
            yield (
                f"whether {change.broker} coordinates the group is not known and sampled: until there is another "
                f"coordinator, commits wait and all members with them"
            )


def _about_partitions(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    before, shown = simulation.owners.before, simulation.shown
    lost = [_text(scenario.partitions[pick]) for pick in np.flatnonzero((shown == NOBODY) & (before != NOBODY))]
    if lost and scenario.final:
        yield f"nobody consumes {_named(lost)} afterwards: no pause can be given"
    stranded = int(scenario.lags[shown == NOBODY].sum())
    if lost and stranded:
        yield f"{stranded} records wait in partitions that nobody consumes"
    change = scenario.request.change
    if isinstance(change, PartitionCount) and scenario.expands:
        if skips_new(scenario).any():
            yield (
                f"auto.offset.reset is not earliest: records that reach the new partitions of {change.topic} before "
                f"their owner looks for a position are skipped"
            )
        rates = {partition.rate for partition in scenario.request.partitions[change.topic]}
        if len(rates) > 1:
            yield f"the records of {change.topic} are forecast to spread evenly over more partitions: keys decide that"


def _about_load(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    for process in scenario.final:
        member = scenario.processes[process].member
        arriving = float(scenario.rates[simulation.shown == member].sum())
        if arriving > simulation.poll_loops.capacity:
            yield (
                f"{simulation.names.labels[member]} cannot keep up: {arriving:g} records a second come, "
                f"{simulation.poll_loops.capacity:g} are what its loop can do"
            )
    longest = float(simulation.poll_loops.batch_s.max(initial=0.0))
    limit = scenario.request.settings.seconds("max.poll.interval.ms")
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
