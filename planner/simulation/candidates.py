"""Simulate one candidate count, or all useful ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from planner.allocation.custom import CheckedStrategy
from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy, runnable_strategy
from planner.allocation.rocketmq import ConsistentHash, MachineRoomNearby
from planner.allocation.strategy import NOBODY, Owners, Strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue, Queue
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.simulation.counts import largest_share, relieves, useful_counts
from planner.simulation.figures import outcome_of
from planner.simulation.leaving import ByName, ByPosition, ByShare, Leaving, count_owned
from planner.simulation.moves import MoveRange, common_queues, move_range
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.partitions import COMPARED as COMPARED_ASSIGNORS
from planner.simulation.partitions import (
    leaving_partitions,
    simulate_partitions,
    unsettled_partitions,
    useful_sizes,
    why_not_simulated,
)
from planner.simulation.pods import pod_leave_range
from planner.simulation.positions import leave_range
from planner.simulation.sharing import shares_messages, simulate_shared
from planner.words import counted


@dataclass(frozen=True, slots=True)
class Topics:
    """The data queues of one snapshot by topic, sorted, as the clients allocate them."""

    states: tuple[tuple[QueueState, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Queues of each topic."""
        return tuple(len(states) for states in self.states)

    @property
    def queues(self) -> list[list[MessageQueue]]:
        """The queues of each topic."""
        return [[_message_queue(state.queue) for state in states] for states in self.states]

    def owners(self, strategy: Strategy, clients: Sequence[str]) -> list[Owners]:
        """Return, for each topic, the position of every queue's owner."""
        return [strategy.owners(queues, clients) for queues in self.queues]


def _message_queue(queue: Queue) -> MessageQueue:
    if isinstance(queue, MessageQueue):
        return queue
    raise BadInputError(f"queue {queue}: found a Kafka partition, expected a RocketMQ queue")


def topics_of(snapshot: GroupSnapshot) -> Topics:
    """Return the snapshot's data queues by topic; ``%RETRY%`` queues carry no planned load and are left out."""
    ordered = sorted(snapshot.data_queues, key=lambda state: state.queue)
    by_topic = groupby(ordered, key=lambda state: state.queue.topic)
    return Topics(tuple(tuple(states) for _, states in by_topic))


def unsettled_queues(snapshot: GroupSnapshot) -> int | None:
    """Return how many data queues are not owned as the group's own strategy gives them to its present members.

    ``None`` where that cannot be computed: the strategy is unknown, or its parameters are. Of Kafka's sticky assignors
    it is only known that each partition has an owner. Where members share messages no queue has one.
    """
    if snapshot.strategy is None:
        return None
    if snapshot.system == "kafka":
        return unsettled_partitions(snapshot, snapshot.strategy)
    if shares_messages(snapshot):
        return 0
    strategy = runnable_strategy(snapshot.strategy, snapshot.strategy_options)
    if strategy is None:
        return None
    topics = topics_of(snapshot)
    return sum(
        state.owner != (snapshot.clients[position] if position >= 0 else None)
        for states, owners in zip(topics.states, topics.owners(strategy, snapshot.clients), strict=True)
        for state, position in zip(states, owners, strict=True)
    )


COMPARED = ("AVG", "AVG_BY_CIRCLE")
"""Strategies that every RocketMQ group is simulated under, beside its own."""


def can_simulate(snapshot: GroupSnapshot) -> bool:
    """Return whether there is something to compare, and a strategy whose answer for other counts is known."""
    own = snapshot.strategy
    if own is None or not snapshot.clients or not snapshot.data_queues:
        return False
    if snapshot.system == "kafka":
        return why_not_simulated(snapshot, own) is None
    return runnable_strategy(own, snapshot.strategy_options) is not None


def strategies_to_compare(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Return the group's own strategy and the common ones of its system; members that share messages need no other."""
    if snapshot.strategy is not None and shares_messages(snapshot):
        return (snapshot.strategy,)
    common = COMPARED_ASSIGNORS if snapshot.system == "kafka" else COMPARED
    return tuple(dict.fromkeys([*([snapshot.strategy] if snapshot.strategy else []), *common]))


def candidate_counts(snapshot: GroupSnapshot, lowest: int, highest: int) -> tuple[int, ...]:
    """Return the useful counts of pods from ``lowest`` to ``highest`` and the current one, in ascending order.

    Where members share messages every one more relieves the others.
    """
    if shares_messages(snapshot):
        return tuple(sorted({*range(lowest, highest + 1), snapshot.count}))
    is_kafka = snapshot.system == "kafka" and snapshot.strategy is not None
    sizes = useful_sizes(snapshot, snapshot.strategy or "") if is_kafka else topics_of(snapshot).sizes
    useful = useful_counts(sizes, lowest, highest, snapshot.members_per_pod or 1)
    current = snapshot.count
    return tuple(sorted({*useful, *([current] if current else [])}))


def why_no_more(snapshot: GroupSnapshot, strategy_name: str) -> str | None:
    """Return why no count above the present one can be simulated under this strategy, ``None`` where each can.

    A room counts for each member under ``MACHINE_ROOM_NEARBY``; new ones are taken to be where all present ones are.
    """
    if snapshot.system == "kafka":
        return None
    strategy = runnable_strategy(strategy_name, _options(snapshot, strategy_name))
    if not isinstance(strategy, MachineRoomNearby):
        return None
    rooms = _present_rooms(snapshot, strategy)
    if len(rooms) < 2:
        return None
    return (
        f"more than {len(snapshot.clients)} consumers: group {snapshot.group} has its members in rooms "
        f"{', '.join(rooms)}, and which one a new one is in is not known before it runs"
    )


def _present_rooms(snapshot: GroupSnapshot, strategy: MachineRoomNearby) -> list[str]:
    return sorted({room for client in snapshot.clients if (room := strategy.client_rooms.get(client))})


def simulable_counts(snapshot: GroupSnapshot, strategy_name: str, counts: Iterable[int]) -> tuple[int, ...]:
    """Return those of the counts that can be simulated under this strategy: see ``why_no_more``."""
    most = None if why_no_more(snapshot, strategy_name) is None else snapshot.count
    return tuple(count for count in counts if most is None or count <= most)


def check_comparable(snapshot: GroupSnapshot) -> None:
    """Raise ``BadInputError`` when the snapshot has no queue or no consumer."""
    if not snapshot.data_queues:
        raise BadInputError(f"group {snapshot.group} has no queues in its snapshot: check that its topics have a route")
    if not snapshot.clients:
        raise BadInputError(
            f"group {snapshot.group} has no consumers in its snapshot: start one, as moves are counted from what runs"
        )


def simulate_candidate(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None = None
) -> CandidateOutcome:
    """Return what ``count`` pods, each with the snapshot's ``members_per_pod``, would mean under ``strategy_name``.

    The ownership before is the one that the group's strategy computes for its present members. ``staying`` names the
    members who are left, where that is known; the group's own strategy stays then, too. Raises ``BadInputError`` for a
    count below 1 and ``UnknownNameError`` for a strategy not known here.
    """
    if count < 1:
        raise BadInputError(f"count {count} of group {snapshot.group}: expected at least 1 consumer")
    per_pod = snapshot.members_per_pod
    if per_pod is None:
        outcome = _simulate_members(snapshot, count, strategy_name, staying)
        unknown = f"how many members a pod runs: counts are of members, as {snapshot.members_per_pod_source}"
        return replace(outcome, unknowns=(*outcome.unknowns, unknown))
    if per_pod == 1:
        return _simulate_members(snapshot, count, strategy_name, staying)
    outcome = _simulate_pods(snapshot, count, strategy_name, staying)
    return replace(
        outcome,
        count=count,
        is_useful=_is_useful_pod_count(snapshot, count, strategy_name),
        members_per_pod=per_pod,
        unknowns=(*outcome.unknowns, *_unknown_of_pod(snapshot, per_pod)),
    )


def _unknown_of_pod(snapshot: GroupSnapshot, per_pod: int) -> Iterator[str]:
    if snapshot.capacity is not None and snapshot.capacity.pod_messages_per_s is None:
        yield (
            f"what one pod can do when all of its {per_pod} consumers are busy: none was seen so, and each is taken to "
            "do as much as alone"
        )


def _simulate_pods(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None
) -> CandidateOutcome:
    """Return what the members of ``count`` pods would mean: those of a pod come and go together."""
    members = snapshot.members_at(count)
    if staying is None and members < len(snapshot.clients) and strategy_name == snapshot.strategy:
        leaves = leaving(snapshot)
        moves = pod_leave_range(snapshot, leaves, count)
        if moves is not None:
            least = tuple(leaves.members[position] for position in moves.fewest_stay)
            outcome = _simulate_members(snapshot, members, strategy_name, least)
            stopped = counted(snapshot.count - count, "pod")
            unknown = f"which {stopped} of {snapshot.count} stop: shown for those that move the fewest queues"
            return replace(
                outcome,
                moved_fewest=moves.fewest,
                moved_most=moves.most,
                unknowns=(unknown, *outcome.unknowns),
            )
        unknown = (
            "which members run in one pod, so that they stop together: the range holds for every choice of members"
        )
        outcome = _simulate_members(snapshot, members, strategy_name, None)
        return replace(outcome, unknowns=(unknown, *outcome.unknowns))
    return _simulate_members(snapshot, members, strategy_name, staying)


def _is_useful_pod_count(snapshot: GroupSnapshot, count: int, strategy_name: str) -> bool:
    """Return whether one pod fewer would leave some member with more; where names decide, no count is ruled out."""
    sizes = topics_of(snapshot).sizes
    if snapshot.system == "kafka":
        sizes = useful_sizes(snapshot, strategy_name)
    elif shares_messages(snapshot) or not find_strategy(strategy_name, _options(snapshot, strategy_name)).is_positional:
        return True
    return relieves(sizes, count, snapshot.members_per_pod or 1)


def _simulate_members(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None
) -> CandidateOutcome:
    """Return what ``count`` members would mean, whatever pods they run in."""
    if snapshot.system == "kafka":
        return simulate_partitions(snapshot, count, strategy_name, staying)
    if strategy_name == snapshot.strategy and shares_messages(snapshot):
        return simulate_shared(snapshot, count, staying)
    strategy = find_strategy(strategy_name, _options(snapshot, strategy_name))
    running = find_strategy(snapshot.strategy, snapshot.strategy_options) if snapshot.strategy else strategy
    topics = topics_of(snapshot)
    moves = leaving(snapshot).range_of(staying) if staying else _moves(snapshot, topics, running, strategy, count)
    clients = _clients_after(snapshot.clients, count, moves)
    if count > len(snapshot.clients) and isinstance(strategy, MachineRoomNearby):
        strategy = _with_rooms(snapshot, strategy, clients)
    return outcome_of(
        snapshot,
        strategy=strategy_name,
        is_current=count == len(snapshot.clients) and strategy.name == running.name,
        is_useful=_is_useful(strategy, topics, count),
        largest_share=largest_share(topics.sizes, count) if strategy.is_positional else None,
        moves=moves,
        owners=_named_owners(topics, strategy, clients),
        clients=clients,
        unknowns=(
            *_unknowns(snapshot, count, strategy, moves, are_named=staying is not None),
            *_problems(snapshot, topics, strategy, clients),
        ),
    )


def leaving(snapshot: GroupSnapshot) -> Leaving:
    """Return what the stop of any members moves under the group's own strategy; ``can_simulate`` must hold."""
    if snapshot.system == "kafka":
        return leaving_partitions(snapshot, snapshot.strategy or "")
    strategy = find_strategy(snapshot.strategy or "", snapshot.strategy_options)
    topics, members = topics_of(snapshot), snapshot.clients
    if shares_messages(snapshot):
        nobody: list[Owners] = [np.full(size, NOBODY) for size in topics.sizes]
        return ByPosition(members, np.zeros(len(members), dtype=np.intp), nobody, lambda _: nobody)
    before = topics.owners(strategy, members)
    owned = count_owned(before, len(members))
    if strategy.is_positional:
        return ByPosition(members, owned, before, cache(lambda count: topics.owners(strategy, _placeholders(count))))
    if isinstance(strategy, ConsistentHash):
        return ByShare(members, owned, sum(topics.sizes), has_quota=False)
    return ByName(members, owned, strategy, topics.queues, before)


def _options(snapshot: GroupSnapshot, strategy_name: str) -> dict[str, Any]:
    """The parameters that are known belong to the group's own strategy."""
    return snapshot.strategy_options if strategy_name == snapshot.strategy else {}


def _is_useful(strategy: Strategy, topics: Topics, count: int) -> bool:
    """Return whether one consumer fewer would own more; where names decide, no count can be ruled out."""
    return not strategy.is_positional or relieves(topics.sizes, count)


def _moves(
    snapshot: GroupSnapshot, topics: Topics, running: Strategy, strategy: Strategy, count: int
) -> MoveRange | None:
    """Return the exact range of moved queues; ``None`` where names decide and are not known."""
    present = snapshot.clients
    if not (running.is_positional and strategy.is_positional) and count != len(present):
        if count > len(present) or running != strategy:
            return None
        return leave_range(strategy, topics.queues, present, count)
    before = topics.owners(running, present)
    after = topics.owners(strategy, present if count == len(present) else _placeholders(count))
    common = common_queues(before, after, len(present), count)
    return move_range(common, int(sum((owners != NOBODY).sum() for owners in before)))


def _with_rooms(snapshot: GroupSnapshot, strategy: MachineRoomNearby, clients: Sequence[str]) -> MachineRoomNearby:
    """Return the strategy with a room for the new ones. Raises ``BadInputError`` where theirs is unknown."""
    if (why := why_no_more(snapshot, snapshot.strategy or "")) is not None:
        raise BadInputError(f"cannot simulate {why}: try counts up to {snapshot.count}")
    rooms = _present_rooms(snapshot, strategy)
    homes = dict.fromkeys(clients, rooms[0]) if rooms else {}
    return replace(strategy, client_rooms={**homes, **strategy.client_rooms})


def _placeholders(count: int) -> tuple[str, ...]:
    return tuple(f"position {position}" for position in range(count))


def _clients_after(present: Sequence[str], count: int, moves: MoveRange | None) -> tuple[str, ...]:
    """Return who would be there: survivors with the fewest moves for a leave, nameless newcomers last for a join."""
    if count >= len(present):
        newcomers = (f"new consumer {number}" for number in range(1, count - len(present) + 1))
        return (*present, *newcomers)
    stay = moves.fewest_stay if moves else range(count)
    return tuple(present[position] for position in stay)


def _named_owners(topics: Topics, strategy: Strategy, clients: Sequence[str]) -> Mapping[Queue, str | None]:
    owners: dict[Queue, str | None] = {}
    for states, positions in zip(topics.states, topics.owners(strategy, clients), strict=True):
        for state, position in zip(states, positions, strict=True):
            owners[state.queue] = None if position == NOBODY else clients[position]
    return owners


def _unknowns(
    snapshot: GroupSnapshot, count: int, strategy: Strategy, moves: MoveRange | None, *, are_named: bool
) -> tuple[str, ...]:
    unknowns = []
    present = len(snapshot.clients)
    if count > present and strategy.is_positional:
        unknowns.append(
            f"where the {count - present} new client ids sort among the present ones: shown as if they came last"
        )
    if count > present and not strategy.is_positional:
        unknowns.append(
            f"what the {count - present} new client ids will be: shown for made-up ones, "
            f"and {strategy.name} goes by ids"
        )
    if count > present and isinstance(strategy, MachineRoomNearby):
        (room,) = _present_rooms(snapshot, strategy)
        unknowns.append(f"which room the new consumers are in: shown for {room}, where all present ones are")
    if count < present and not are_named:
        shown = "those that move the fewest queues" if moves else "the last in order"
        unknowns.append(f"which {present - count} consumers stop: shown for {shown}")
    if count != present and moves is None:
        unknowns.append(f"how many queues move: {strategy.name} goes by the client ids themselves")
    if snapshot.capacity is None:
        unknowns.append("what one consumer can do: no utilisation, wait or drain time follows")
    return tuple(unknowns)


def _problems(snapshot: GroupSnapshot, topics: Topics, strategy: Strategy, clients: Sequence[str]) -> tuple[str, ...]:
    """Return what a user's own strategy does wrong, in sentences with group, topic and client."""
    if not isinstance(strategy, CheckedStrategy):
        return ()
    queues = [queue for queues in topics.queues for queue in queues]
    return allocate_group(strategy, queues, clients, snapshot.group, is_sorted=True).problems
