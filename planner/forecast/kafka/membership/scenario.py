"""The group as numbers: its members' processes, one life each, and its partitions."""

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
class Life:
    """One process of a member: seconds at which it starts and ends, ``None`` where it is there all along.

    ``assignors``: its ``partition.assignment.strategy``. ``follows``: the life that must have ended before it starts.
    ``asleep_s`` to ``awake_s`` it does nothing, but keeps its place in the group while its session lasts: frozen, cut
    off, or restarted under its instance id. ``replaces``: the life in whose stead it joins where that one's session
    expired. ``succeeds``: it is in the other group, which takes over from this one. ``rested_s``: when it is restarted
    in its place for the first of two times, without anybody's notice.
    """

    member: int
    assignors: tuple[str, ...]
    starts_s: float | None = None
    ends_s: float | None = None
    how: str | None = None
    follows: int | None = None
    asleep_s: float | None = None
    awake_s: float | None = None
    replaces: int | None = None
    succeeds: bool = False
    rested_s: float | None = None

    @property
    def is_server_side(self) -> bool:
        """True when it comes by the consumer protocol, where the server assigns."""
        return self.assignors[0] in OF_PROTOCOL[CONSUMER]

    @property
    def is_cooperative(self) -> bool:
        """True when it keeps its partitions in a rebalance: every assignor of its list must know how."""
        return set(self.assignors) == {COOPERATIVE}


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """All that the simulation needs to know of a request, by index.

    ``partitions`` are those of before and after the change, sorted; ``rates`` and ``lags`` belong to them. ``counts``
    are the partitions of each topic before and after.
    """

    request: ForecastRequest
    members: tuple[Member, ...]
    lives: tuple[Life, ...]
    partitions: tuple[tuple[str, int], ...]
    rates: Floats
    lags: Floats
    leaders: tuple[str | None, ...]
    counts: tuple[Mapping[str, int], Mapping[str, int]]

    @property
    def initial(self) -> tuple[int, ...]:
        """Return the lives that run before the change."""
        return tuple(index for index, life in enumerate(self.lives) if life.starts_s is None)

    @property
    def final(self) -> tuple[int, ...]:
        """Return the lives that run when all is over, one a member."""
        return tuple(index for index, life in enumerate(self.lives) if life.ends_s is None and life.replaces is None)

    @property
    def heirs(self) -> dict[int, int]:
        """Return the lives that take over what a former process of their static member had, and which life that was."""
        static = {index for index, member in enumerate(self.members) if member.instance_id is not None}
        return {
            index: life.follows
            for index, life in enumerate(self.lives)
            if life.follows is not None and life.member in static
        }

    @property
    def has_heir(self) -> Booleans:
        """Return which lives end in a place that the next process of their static member takes over."""
        found: Booleans = np.isin(np.arange(len(self.lives)), list(self.heirs.values()))
        return found

    @property
    def by_server(self) -> Booleans:
        """Return which lives are of the consumer protocol."""
        return np.array([life.is_server_side for life in self.lives], dtype=bool)

    @property
    def hosted(self) -> Booleans:
        """Return which classic lives end when the first one of the consumer protocol has begun to convert the group."""
        converted_s = min((life.starts_s or 0.0 for life in self.lives if life.is_server_side), default=np.inf)
        ends_s = [np.inf if life.ends_s is None else life.ends_s for life in self.lives]
        found: Booleans = ~self.by_server & (np.array(ends_s) > converted_s) & self.request.converts
        return found

    @property
    def wakes_by_server(self) -> Booleans:
        """Return which lives are of the consumer protocol in the end: static ones may come to it in their sleep."""
        found = self.by_server
        for life in self.lives:
            if life.replaces is not None:
                found[life.replaces] = life.is_server_side
        return found

    @property
    def renamed(self) -> Booleans:
        """Return which lives have an id that their client has just made up (KIP-1082).

        Those who come by the consumer protocol to a classic group, and those who come again by it as another process.
        To who comes by the classic one to a group of the consumer protocol the coordinator gives such an id.
        """
        mixes = self.request.mixes
        comes = [life.follows is not None or (mixes and life.replaces is None) for life in self.lives]
        found: Booleans = (~self.by_server if self.request.reverts else self.by_server) & np.array(comes, dtype=bool)
        return found

    @property
    def member_of(self) -> Indexes:
        """Return each life's member, and at the end NOBODY, so that NOBODY's is NOBODY."""
        return np.array([*(life.member for life in self.lives), NOBODY], dtype=np.intp)

    @property
    def expands(self) -> bool:
        """True when a topic gets more partitions."""
        return self.counts[BEFORE] != self.counts[AFTER]


def build_world(request: ForecastRequest) -> World:
    """Return the world of one request."""
    change = request.change
    before = {topic: len(found) for topic, found in request.partitions.items()}
    after = {**before, change.topic: change.partitions} if isinstance(change, PartitionCount) else before
    partitions = tuple((topic, number) for topic in java_sorted(after) for number in range(after[topic]))
    rates, lags, leaders = _loads(request, partitions, before, after)
    return World(
        request,
        (*request.members, *newcomers(change)),
        tuple(_lives(request)),
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
            rates.append(present[number].rate * before[topic] / after[topic])
            lags.append(_backlog(request, present[number]))
            leaders.append(present[number].leader)
        else:
            rates.append(sum(one.rate for one in present) / after[topic])
            lags.append(0.0)
            leaders.append(None)
    return np.array(rates, dtype=float), np.array(lags, dtype=float), tuple(leaders)


def _backlog(request: ForecastRequest, partition: Partition) -> float:
    """Return the records that wait: lag counts from the last commit, so what came since then is being worked off."""
    settings = request.settings
    commits_s = settings.seconds("auto.commit.interval.ms") if settings.is_on("enable.auto.commit") else 0.0
    return partition.lag if partition.lag > partition.rate * (commits_s + FRESH_S) + 1 else 0.0


def _lives(request: ForecastRequest) -> list[Life]:
    """Return every process of the change, those that run before it first, in the members' order."""
    change, own = request.change, (request.strategy,)
    lives = [Life(index, own) for index in range(len(request.members))]
    begun = range(len(lives), len(lives) + len(newcomers(change)))
    match change:
        case Join():
            started = enumerate(begun)
            return [*lives, *(Life(member, own, starts_s=order * change.stagger_s) for order, member in started)]
        case RollingUpdate():
            # Which one ends at which of the times is drawn later.
            had, gets = _lists(request, change)
            ended = zip(lives, change.rolling.pods_stop_s, strict=True)
            old = [replace(life, assignors=had, ends_s=at, how=GRACEFUL) for life, at in ended]
            starts = zip(begun, change.rolling.clients_start_s, strict=True)
            return [*old, *(Life(member, gets, starts_s=at) for member, at in starts)]
        case BlueGreen():
            old = [replace(life, ends_s=change.stop_s, how=GRACEFUL) for life in lives]
            return [*old, *(Life(member, own, starts_s=change.start_s, succeeds=True) for member in begun)]
        case Leave() | Restart() | Freeze() | CutOff() | Upgrade() | StrategyChange():
            _change_members(lives, request, change)
    return lives


def _lists(request: ForecastRequest, change: RollingUpdate) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lists of assignors of old pods and of new ones.

    A clients' assignor comes in two rolls, as ``rolls`` has it of members that restart: this is one of them.
    """
    own, asked = request.strategy, request.assignor_after
    if change.beside is not None:
        return (own,), (own, change.beside)
    in_rolls = asked != own and request.protocol == CLASSIC and not request.converts
    return (own, asked) if in_rolls else (own,), (asked,)


def _change_members(lives: list[Life], request: ForecastRequest, change: OfMembers) -> None:
    """Let those that the change names end, sleep, or come again, in its order."""
    place = {member.id: index for index, member in enumerate(request.members)}
    order = [place[name] for name in change.members]
    if isinstance(change, StrategyChange):
        _roll(lives, order, change, request)
        return
    for turn, old in enumerate(order):
        instance_id = request.members[old].instance_id
        match change:
            case Leave():
                lives[old] = replace(lives[old], ends_s=turn * change.stagger_s, how=change.how)
            case Restart():
                at_s = turn * change.stagger_s
                _restart(lives, old, at_s, at_s + change.interval_s, change.how, instance_id)
            case Upgrade():
                at_s = turn * change.interval_s
                _restart(lives, old, at_s, at_s, GRACEFUL, instance_id)
            case Freeze():
                _sleep(lives, old, 0.0, change.for_s, FREEZE)
            case CutOff():
                _sleep(lives, old, 0.0, change.for_s, CUT)


def _restart(lives: list[Life], old: int, at_s: float, back_s: float, how: str, instance_id: str | None) -> None:
    if instance_id is not None:
        _sleep(lives, old, at_s, back_s, how)
        return
    lives[old] = replace(lives[old], ends_s=at_s, how=how)
    lives.append(Life(lives[old].member, lives[old].assignors, starts_s=back_s, follows=old))


def _sleep(
    lives: list[Life], old: int, from_s: float, until_s: float, how: str, wakes_with: tuple[str, ...] = ()
) -> None:
    lives[old] = replace(lives[old], asleep_s=from_s, awake_s=until_s, how=how)
    lives.append(Life(lives[old].member, wakes_with or lives[old].assignors, starts_s=until_s, replaces=old))


def _roll(lives: list[Life], order: Sequence[int], change: StrategyChange, request: ForecastRequest) -> None:
    """End and start each member in turn, twice where a list with both assignors has to come in between (3.6 A, C).

    A static one that comes to a group of the consumer protocol, or by it, takes over what its former process had, epoch
    and all (``getOrMaybeSubscribeStaticConsumerGroupMember``): nobody else notices. Beside members that are not static
    it is another life, as what becomes of the others is not the same before and after.
    """
    if request.switches_static and not request.is_mixed:
        _switch_static(lives, order, change)
        return
    current = {member: member for member in order}
    for roll, assignors in enumerate(rolls(request, change)):
        for turn, member in enumerate(order):
            at, old = (roll * len(order) + turn) * change.interval_s, current[member]
            if request.members[member].instance_id is not None and not request.is_mixed:
                _sleep(lives, old, at, at, GRACEFUL, assignors)
                continue
            lives[old] = replace(lives[old], ends_s=at, how=GRACEFUL)
            current[member] = len(lives)
            lives.append(Life(member, assignors, starts_s=at, follows=old))


def _switch_static(lives: list[Life], order: Sequence[int], change: StrategyChange) -> None:
    """Let static members of a classic group come again in turn, in two rolls, with one round in all of it.

    Who comes again in its old place changes nothing while the group would choose the same assignor
    (``updateStaticMemberThenRebalanceOrCompleteJoin``, 4.3): that is so in the whole first roll, as the old assignor is
    listed first. The first that lists the new one alone makes everybody rejoin; those after it change nothing again.
    """
    begins_s = len(order) * change.interval_s
    for turn, member in enumerate(order):
        both, rested_s = (lives[member].assignors[0], change.to), turn * change.interval_s
        lives[member] = replace(lives[member], assignors=both, rested_s=rested_s)
        at_s = begins_s + rested_s
        if turn:
            _sleep(lives, member, at_s, at_s, GRACEFUL, (change.to,))
        else:
            lives[member] = replace(lives[member], ends_s=at_s, how=GRACEFUL)
            lives.append(Life(member, (change.to,), starts_s=at_s, follows=member))


def rolls(request: ForecastRequest, change: StrategyChange) -> Iterator[tuple[str, ...]]:
    """Yield the list of assignors that members have after each roll.

    Members that share no name cannot be in one group (INCONSISTENT_GROUP_PROTOCOL), so the classic protocol needs two;
    those of the two protocols can (3.6 D).
    """
    if request.protocol != CONSUMER and change.to != request.strategy and not request.converts:
        yield request.strategy, change.to
    yield (change.to,)
