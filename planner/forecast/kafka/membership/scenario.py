"""The group as numbers: its members' processes, one process each, and its partitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.allocation.ordering import java_sorted
from planner.forecast.common.changes import CUT, FREEZE, GRACEFUL
from planner.forecast.kafka.request.changes import (
    BlueGreen,
    CutOff,
    Freeze,
    Join,
    Leave,
    Member,
    OfMembers,
    PartitionCount,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    TopicCreated,
    Upgrade,
    newcomers,
)
from planner.forecast.kafka.request.request import COOPERATIVE, OF_PROTOCOL, ForecastRequest, Partition
from planner.forecast.kafka.request.settings import CLASSIC, CONSUMER

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]
Booleans = NDArray[np.bool_]

BEFORE, AFTER = 0, 1
NOBODY = -1
FRESH_S = 0.25
"""What came within this time is in hand or on its way, even of a member that keeps up and commits all the time."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a member: seconds at which it starts and ends, ``None`` where it is there all along.

    ``assignors``: its ``partition.assignment.strategy``. ``follows``: the process that must have ended before it
    starts. ``suspended_s`` to ``resumed_s`` it does nothing, but keeps its place in the group while its session lasts:
    frozen, cut off, or restarted under its instance id. ``replaces``: the process in whose stead it joins where that
    one's session expired. ``succeeds``: it is in the other group, which takes over from this one. ``rested_s``: when it
    is restarted in its place for the first of two times, without anybody's notice. ``topics``: what it subscribes to,
    ``None`` where that is what its member subscribes to.
    """

    member: int
    assignors: tuple[str, ...]
    starts_s: float | None = None
    ends_s: float | None = None
    how: str | None = None
    follows: int | None = None
    suspended_s: float | None = None
    resumed_s: float | None = None
    replaces: int | None = None
    succeeds: bool = False
    rested_s: float | None = None
    topics: frozenset[str] | None = None

    @property
    def is_server_side(self) -> bool:
        """True when it comes by the consumer protocol, where the server assigns."""
        return self.assignors[0] in OF_PROTOCOL[CONSUMER]

    @property
    def is_cooperative(self) -> bool:
        """True when it keeps its partitions in a rebalance: every assignor of its list must know how."""
        return set(self.assignors) == {COOPERATIVE}


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """All that the simulation needs to know of a request, by index.

    ``partitions`` are those of before and after the change, sorted; ``rates`` and ``lags`` belong to them. ``counts``
    are the partitions of each topic before and after.
    """

    request: ForecastRequest
    members: tuple[Member, ...]
    processes: tuple[Process, ...]
    partitions: tuple[tuple[str, int], ...]
    rates: Floats
    lags: Floats
    leaders: tuple[str | None, ...]
    counts: tuple[Mapping[str, int], Mapping[str, int]]

    @property
    def initial(self) -> tuple[int, ...]:
        """Return the processes that run before the change."""
        return tuple(index for index, process in enumerate(self.processes) if process.starts_s is None)

    @property
    def final(self) -> tuple[int, ...]:
        """Return the processes that run when all is over, one a member."""
        return tuple(
            index for index, process in enumerate(self.processes) if process.ends_s is None and process.replaces is None
        )

    @property
    def static_successors(self) -> dict[int, int]:
        """Return the processes that take over what a former process of their static member had, and which process that
        was."""
        static = {index for index, member in enumerate(self.members) if member.instance_id is not None}
        return {
            index: process.follows
            for index, process in enumerate(self.processes)
            if process.follows is not None and process.member in static
        }

    @property
    def has_static_successor(self) -> Booleans:
        """Return which processes end in a place that the next process of their static member takes over."""
        result: Booleans = np.isin(np.arange(len(self.processes)), list(self.static_successors.values()))
        return result

    @property
    def by_server(self) -> Booleans:
        """Return which processes are of the consumer protocol."""
        return np.array([process.is_server_side for process in self.processes], dtype=bool)

    @property
    def classic_members(self) -> Booleans:
        """Return which classic processes end when the first one of the consumer protocol has begun to convert the
        group."""
        converted_s = min(
            (process.starts_s or 0.0 for process in self.processes if process.is_server_side), default=np.inf
        )
        ends_s = [np.inf if process.ends_s is None else process.ends_s for process in self.processes]
        result: Booleans = ~self.by_server & (np.array(ends_s) > converted_s) & self.request.converts
        return result

    @property
    def resumes_by_server(self) -> Booleans:
        """Return which processes are of the consumer protocol in the end: static ones may come to it while
        suspended."""
        by_server = self.by_server
        for process in self.processes:
            if process.replaces is not None:
                by_server[process.replaces] = process.is_server_side
        return by_server

    @property
    def renamed(self) -> Booleans:
        """Return which processes have an id that their client has just made up (KIP-1082).

        Those who come by the consumer protocol to a classic group, and those who come again by it as another process.
        To who comes by the classic one to a group of the consumer protocol the coordinator gives such an id.
        """
        mixes = self.request.mixes
        comes = [process.follows is not None or (mixes and process.replaces is None) for process in self.processes]
        result: Booleans = (~self.by_server if self.request.reverts else self.by_server) & np.array(comes, dtype=bool)
        return result

    @property
    def member_of(self) -> Indexes:
        """Return each process's member, and at the end NOBODY, so that NOBODY's is NOBODY."""
        return np.array([*(process.member for process in self.processes), NOBODY], dtype=np.intp)

    @property
    def expands(self) -> bool:
        """True when a topic gets more partitions."""
        return self.counts[BEFORE] != self.counts[AFTER]

    def topics_of(self, process: int) -> frozenset[str]:
        """Return what a process subscribes to."""
        own = self.processes[process].topics
        return self.members[self.processes[process].member].topics if own is None else own

    @property
    def added(self) -> frozenset[str]:
        """Return the topics that the change's members subscribe to and that nobody did before."""
        change = self.request.change
        if not isinstance(change, SubscriptionChange):
            return frozenset()
        return change.topics.difference(*(member.topics for member in self.request.members))


def build_scenario(request: ForecastRequest) -> Scenario:
    """Return the scenario of one request."""
    change = request.change
    before = {topic: len(partitions_of_topic) for topic, partitions_of_topic in request.partitions.items()}
    after = {**before, change.topic: change.partitions} if isinstance(change, PartitionCount) else before
    if isinstance(change, TopicCreated):
        before = {**after, change.topic: 0}
    partitions = tuple((topic, number) for topic in java_sorted(after) for number in range(after[topic]))
    rates, lags, leaders = _loads(request, partitions, before, after)
    matched = {change.topic} if isinstance(change, TopicCreated) else set()
    return Scenario(
        request,
        (*(replace(member, topics=member.topics | matched) for member in request.members), *newcomers(change)),
        tuple(_processes(request)),
        partitions,
        rates,
        lags,
        leaders,
        (before, after),
    )


def _loads(
    request: ForecastRequest,
    partitions: Sequence[tuple[str, int]],
    before: Mapping[str, int],
    after: Mapping[str, int],
) -> tuple[Floats, Floats, tuple[str | None, ...]]:
    """Return rate, lag and leader of every partition; a topic that grows spreads the same records over more."""
    rates, lags, leaders = [], [], []
    for topic, number in partitions:
        present = request.partitions[topic]
        if number < len(present):
            rate = present[number].rate
            rates.append(rate * before[topic] / after[topic] if before[topic] else rate)
            lags.append(_backlog(request, present[number]))
            leaders.append(present[number].leader)
        else:
            rates.append(sum(partition.rate for partition in present) / after[topic])
            lags.append(0.0)
            leaders.append(None)
    return np.array(rates, dtype=float), np.array(lags, dtype=float), tuple(leaders)


def _backlog(request: ForecastRequest, partition: Partition) -> float:
    """Return the records that wait: lag counts from the last commit, so what came since then is being worked off."""
    settings = request.settings
    commits_s = settings.seconds("auto.commit.interval.ms") if settings.is_on("enable.auto.commit") else 0.0
    return partition.lag if partition.lag > partition.rate * (commits_s + FRESH_S) + 1 else 0.0


def _processes(request: ForecastRequest) -> list[Process]:
    """Return every process of the change, those that run before it first, in the members' order."""
    change, own = request.change, (request.strategy,)
    processes = [Process(index, own) for index in range(len(request.members))]
    begun = range(len(processes), len(processes) + len(newcomers(change)))
    match change:
        case Join():
            started = enumerate(begun)
            return [*processes, *(Process(member, own, starts_s=order * change.stagger_s) for order, member in started)]
        case RollingUpdate():
            # Which one ends at which of the times is drawn later.
            had, gets = _lists(request, change)
            ended = zip(processes, change.rolling.pods_stop_s, strict=True)
            old = [replace(process, assignors=had, ends_s=at, how=GRACEFUL) for process, at in ended]
            starts = zip(begun, change.rolling.clients_start_s, strict=True)
            return [*old, *(Process(member, gets, starts_s=at) for member, at in starts)]
        case BlueGreen():
            old = [replace(process, ends_s=change.stop_s, how=GRACEFUL) for process in processes]
            return [*old, *(Process(member, own, starts_s=change.start_s, succeeds=True) for member in begun)]
        case SubscriptionChange():
            _resubscribe(processes, request, change)
        case Leave() | Restart() | Freeze() | CutOff() | Upgrade() | StrategyChange():
            _change_members(processes, request, change)
    return processes


def _lists(request: ForecastRequest, change: RollingUpdate) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lists of assignors of old pods and of new ones.

    A clients' assignor comes in two rolls, as ``rolls`` has it of members that restart: this is one of them.
    """
    own, asked = request.strategy, request.assignor_after
    if change.beside is not None:
        return (own,), (own, change.beside)
    in_rolls = asked != own and request.protocol == CLASSIC and not request.converts
    return (own, asked) if in_rolls else (own,), (asked,)


def _change_members(processes: list[Process], request: ForecastRequest, change: OfMembers) -> None:
    """Let those that the change names end, sleep, or come again, in its order."""
    index_of = {member.id: index for index, member in enumerate(request.members)}
    order = [index_of[name] for name in change.members]
    if isinstance(change, StrategyChange):
        _roll(processes, order, change, request)
        return
    for order_index, old in enumerate(order):
        instance_id = request.members[old].instance_id
        match change:
            case Leave():
                processes[old] = replace(processes[old], ends_s=order_index * change.stagger_s, how=change.how)
            case Restart():
                at_s = order_index * change.stagger_s
                _restart(processes, old, at_s, at_s + change.interval_s, change.how, instance_id)
            case Upgrade():
                at_s = order_index * change.interval_s
                _restart(processes, old, at_s, at_s, GRACEFUL, instance_id)
            case Freeze():
                _sleep(processes, old, 0.0, change.for_s, FREEZE)
            case CutOff():
                _sleep(processes, old, 0.0, change.for_s, CUT)


def _resubscribe(processes: list[Process], request: ForecastRequest, change: SubscriptionChange) -> None:
    """Let members, none of them static, come again in turn with other topics."""
    index_of = {member.id: index for index, member in enumerate(request.members)}
    for order_index, name in enumerate(change.members):
        at_s = order_index * change.interval_s
        _restart(processes, index_of[name], at_s, at_s, GRACEFUL, None)
        processes[-1] = replace(processes[-1], topics=change.topics)


def _restart(processes: list[Process], old: int, at_s: float, back_s: float, how: str, instance_id: str | None) -> None:
    if instance_id is not None:
        _sleep(processes, old, at_s, back_s, how)
        return
    processes[old] = replace(processes[old], ends_s=at_s, how=how)
    processes.append(Process(processes[old].member, processes[old].assignors, starts_s=back_s, follows=old))


def _sleep(
    processes: list[Process], old: int, from_s: float, until_s: float, how: str, resumes_with: tuple[str, ...] = ()
) -> None:
    processes[old] = replace(processes[old], suspended_s=from_s, resumed_s=until_s, how=how)
    processes.append(
        Process(processes[old].member, resumes_with or processes[old].assignors, starts_s=until_s, replaces=old)
    )


def _roll(processes: list[Process], order: Sequence[int], change: StrategyChange, request: ForecastRequest) -> None:
    """End and start each member in turn, twice where a list with both assignors has to come in between (3.6 A, C).

    A static one that comes to a group of the consumer protocol, or by it, takes over what its former process had, epoch
    and all (``getOrMaybeSubscribeStaticConsumerGroupMember``): nobody else notices. Beside members that are not static
    it is another process, as what becomes of the others is not the same before and after.
    """
    if request.switches_static and not request.is_mixed:
        _switch_static(processes, order, change)
        return
    current = {member: member for member in order}
    for roll, assignors in enumerate(rolls(request, change)):
        for order_index, member in enumerate(order):
            at, old = (roll * len(order) + order_index) * change.interval_s, current[member]
            if request.members[member].instance_id is not None and not request.is_mixed:
                _sleep(processes, old, at, at, GRACEFUL, assignors)
                continue
            processes[old] = replace(processes[old], ends_s=at, how=GRACEFUL)
            current[member] = len(processes)
            processes.append(Process(member, assignors, starts_s=at, follows=old))


def _switch_static(processes: list[Process], order: Sequence[int], change: StrategyChange) -> None:
    """Let static members of a classic group come again in turn, in two rolls, with one round in all of it.

    Who comes again in its old place changes nothing while the group would choose the same assignor
    (``updateStaticMemberThenRebalanceOrCompleteJoin``, 4.3): that is so in the whole first roll, as the old assignor is
    listed first. The first that lists the new one alone makes everybody rejoin; those after it change nothing again.
    """
    begins_s = len(order) * change.interval_s
    for order_index, member in enumerate(order):
        both, rested_s = (processes[member].assignors[0], change.to), order_index * change.interval_s
        processes[member] = replace(processes[member], assignors=both, rested_s=rested_s)
        at_s = begins_s + rested_s
        if order_index:
            _sleep(processes, member, at_s, at_s, GRACEFUL, (change.to,))
        else:
            processes[member] = replace(processes[member], ends_s=at_s, how=GRACEFUL)
            processes.append(Process(member, (change.to,), starts_s=at_s, follows=member))


def rolls(request: ForecastRequest, change: StrategyChange) -> Iterator[tuple[str, ...]]:
    """Yield the list of assignors that members have after each roll.

    Members that share no name cannot be in one group (INCONSISTENT_GROUP_PROTOCOL), so the classic protocol needs two;
    those of the two protocols can (3.6 D).
    """
    if request.protocol != CONSUMER and change.to != request.strategy and not request.converts:
        yield request.strategy, change.to
    yield (change.to,)
