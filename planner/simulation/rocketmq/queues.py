"""Candidate counts of a RocketMQ group: what its strategy, run for other members, gives to whom."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from planner.allocation.custom import CheckedStrategy
from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy, runnable_strategy
from planner.allocation.rocketmq import Config, ConsistentHash, MachineRoomNearby
from planner.allocation.strategy import NOBODY, Owners, Strategy
from planner.errors import BadInputError
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.counts import largest_share, relieves
from planner.simulation.figures import outcome_of
from planner.simulation.leaving import ByName, ByPosition, ByShare, Leaving, count_owned
from planner.simulation.moves import MoveRange, common_queues, move_range
from planner.simulation.newcomers import Newcomer, known_newcomers
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.rocketmq.config_lists import lists_for, newcomers, stayers
from planner.simulation.rocketmq.newcomer_draws import assumptions, describe, possible_groups, weigh, why_not_drawn
from planner.simulation.rocketmq.positions import leave_range
from planner.simulation.rocketmq.sharing import shares_messages, simulate_shared
from planner.simulation.rocketmq.topics import Topics, topics_of
from planner.text.words import counted


def unsettled_by_strategy(snapshot: GroupSnapshot) -> int | None:
    """Return how many data queues are not owned as the group's strategy gives them to its present members.

    ``None`` where the strategy's parameters are unknown. Where members share messages no queue has one owner.
    """
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


def why_no_more(snapshot: GroupSnapshot, strategy_name: str) -> str | None:
    """Return why no count above the present one can be simulated under this strategy, ``None`` where each can."""
    strategy = runnable_strategy(strategy_name, own_options(snapshot, strategy_name))
    return None if strategy is None or knows_newcomers(snapshot, strategy) else why_not_drawn(snapshot, strategy)


def simulate_queues(
    snapshot: GroupSnapshot, count: int, strategy_name: str, staying: Sequence[str] | None
) -> CandidateOutcome:
    """Return what ``count`` members would mean under the strategy, whatever pods they run in.

    ``staying`` names the members who are left, where that is known. Raises ``UnknownNameError`` for a strategy not
    known here, ``BadInputError`` where newcomers cannot be drawn (``why_no_more``).
    """
    if strategy_name == snapshot.strategy and shares_messages(snapshot):
        return simulate_shared(snapshot, count, staying)
    strategy = find_strategy(strategy_name, own_options(snapshot, strategy_name))
    running = find_strategy(snapshot.strategy, snapshot.strategy_options) if snapshot.strategy else strategy
    topics = topics_of(snapshot)
    if isinstance(strategy, Config) and count != len(snapshot.clients):
        return _simulate_lists(snapshot, topics, running, strategy, count, staying)
    known = None if staying else known_newcomers(snapshot, count // (snapshot.members_per_pod or 1))
    if known and knows_newcomers(snapshot, strategy):
        return _with_newcomers(snapshot, topics, strategy, running, known)
    if count > len(snapshot.clients) and not strategy.is_positional:
        return _simulate_drawn(snapshot, topics, running, strategy_name, strategy, count)
    moves = (
        leaving_queues(snapshot).range_of(staying) if staying else _moves(snapshot, topics, running, strategy, count)
    )
    clients = _clients_after(snapshot.clients, count, moves)
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


def _simulate_lists(
    snapshot: GroupSnapshot,
    topics: Topics,
    running: Strategy,
    strategy: Config,
    count: int,
    staying: Sequence[str] | None,
) -> CandidateOutcome:
    """Return what ``count`` members would mean under ``CONFIG``, with the lists that they would need."""
    present = snapshot.clients
    more = newcomers(snapshot, strategy, max(count - len(present), 0))
    clients = (*(staying or stayers(strategy, present, count)), *more)
    lists = lists_for(snapshot, strategy, clients)
    before = _named_owners(topics, running, present)
    after = _named_owners(topics, lists.config, clients)
    moved = sum(owner is not None and after[queue] != owner for queue, owner in before.items())
    unknowns = () if lists.are_present else ("which lists the application will be given: shown for even ones",)
    return outcome_of(
        snapshot,
        strategy=strategy.name,
        is_current=False,
        is_useful=relieves((sum(topics.sizes),), count),
        largest_share=None,
        moves=MoveRange(moved, moved, (), ()),
        owners=after,
        clients=clients,
        unknowns=(*unknowns, *_unknown_capacity(snapshot)),
    )


def _simulate_drawn(
    snapshot: GroupSnapshot, topics: Topics, running: Strategy, strategy_name: str, strategy: Strategy, count: int
) -> CandidateOutcome:
    """Return what ``count`` members would mean where the ids of the new ones decide: a distribution over many ids.

    Shown is the draw at the policy's percentile of the busiest load. Raises ``BadInputError`` where none can be drawn.
    """
    if why := why_not_drawn(snapshot, strategy):
        raise BadInputError(f"cannot simulate more than {counted(len(snapshot.clients), 'member')}: {why}")
    present = snapshot.clients
    names = (*present, "")
    before = [names[position] for owners in topics.owners(running, present) for position in owners.tolist()]
    rates = [np.array([state.upper_arrival_rate or 0.0 for state in states]) for states in topics.states]
    draws = weigh(possible_groups(snapshot, strategy, count), topics.queues, rates, before)
    percentile = snapshot.new_pods.ids_percentile
    group = draws.groups[draws.at(percentile)]
    capacity = known.sure_messages_per_s if (known := snapshot.consumer_capacity) else None
    drawn = draws.summary(percentile, capacity)
    clients = (*present, *group.newcomers)
    outcome = outcome_of(
        snapshot,
        strategy=strategy_name,
        is_current=False,
        is_useful=True,
        largest_share=None,
        moves=MoveRange(int(drawn.moved.p05), int(drawn.moved.p95), (), ()),
        owners=_named_owners(topics, group.strategy, group.clients),
        clients=clients,
        unknowns=(
            describe(drawn, count - len(present), strategy.name),
            *assumptions(snapshot, strategy),
            *_unknown_capacity(snapshot),
            *_problems(snapshot, topics, group.strategy, group.clients),
        ),
    )
    return replace(outcome, drawn=drawn)


def knows_newcomers(snapshot: GroupSnapshot, strategy: Strategy) -> bool:
    """Return whether a strategy that goes by ids knows the new ones, and their room if it asks."""
    return known_newcomers(snapshot, snapshot.count + 1) is not None and not isinstance(strategy, MachineRoomNearby)


def _with_newcomers(
    snapshot: GroupSnapshot, topics: Topics, strategy: Strategy, running: Strategy, newcomers: Sequence[Newcomer]
) -> CandidateOutcome:
    """Return what newcomers of known ids mean, whatever the strategy goes by: who owns what is exact."""
    clients = tuple(sorted((*snapshot.clients, *(new.client for new in newcomers))))
    before = _named_owners(topics, running, snapshot.clients)
    owners = _named_owners(topics, strategy, clients)
    moved = sum(owner is not None and owner != owners[queue] for queue, owner in before.items())
    positions = tuple(clients.index(client) for client in snapshot.clients)
    return outcome_of(
        snapshot,
        strategy=strategy.name,
        is_current=False,
        is_useful=_is_useful(strategy, topics, len(clients)),
        largest_share=None,
        moves=MoveRange(moved, moved, positions, positions),
        owners=owners,
        clients=clients,
        unknowns=(*_unknown_capacity(snapshot), *_problems(snapshot, topics, strategy, clients)),
    )


def leaving_queues(snapshot: GroupSnapshot) -> Leaving:
    """Return what the stop of any members moves under the group's own strategy, which must be runnable."""
    topics, members = topics_of(snapshot), snapshot.clients
    if shares_messages(snapshot):
        nobody: list[Owners] = [np.full(size, NOBODY) for size in topics.sizes]
        return ByPosition(members, np.zeros(len(members), dtype=np.intp), nobody, lambda _: nobody)
    strategy = find_strategy(snapshot.strategy or "", snapshot.strategy_options)
    before = topics.owners(strategy, members)
    owned = count_owned(before, len(members))
    if strategy.is_positional:
        return ByPosition(members, owned, before, cache(lambda count: topics.owners(strategy, _placeholders(count))))
    if isinstance(strategy, ConsistentHash):
        return ByShare(members, owned, sum(topics.sizes), has_quota=False)
    return ByName(members, owned, strategy, topics.queues, before)


def own_options(snapshot: GroupSnapshot, strategy_name: str) -> dict[str, Any]:
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
        return leave_range(strategy, topics.queues, present, count) or _try_leaves(leaving_queues(snapshot), count)
    before = topics.owners(running, present)
    after = topics.owners(strategy, present if count == len(present) else _placeholders(count))
    common = common_queues(before, after, len(present), count)
    return move_range(common, int(sum((owners != NOBODY).sum() for owners in before)))


def _try_leaves(leaves: Leaving, count: int) -> MoveRange | None:
    """Return the exact range over every choice of ``count`` members that stay; ``None`` where these are too many."""
    members = len(leaves.members)
    if not 0 < count < members or comb(members, count) > leaves.most_choices:
        return None
    stays = np.zeros((comb(members, count), members), dtype=np.bool_)
    for row, chosen in enumerate(combinations(range(members), count)):
        stays[row, list(chosen)] = True
    moved = leaves.moved(stays)
    least, most = int(moved.argmin()), int(moved.argmax())
    positions = [tuple(np.flatnonzero(stays[row]).tolist()) for row in (least, most)]
    return MoveRange(int(moved[least]), int(moved[most]), positions[0], positions[1])


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
    if count < present and not are_named:
        shown = "those that move the fewest queues" if moves else "the last in order"
        unknowns.append(f"which {present - count} consumers stop: shown for {shown}")
    if count != present and moves is None:
        unknowns.append(f"how many queues move: {strategy.name} goes by the client ids themselves")
    return (*unknowns, *_unknown_capacity(snapshot))


def _unknown_capacity(snapshot: GroupSnapshot) -> Iterator[str]:
    if snapshot.capacity is None:
        yield "what one consumer can do: no utilisation, wait or drain time follows"


def _problems(snapshot: GroupSnapshot, topics: Topics, strategy: Strategy, clients: Sequence[str]) -> tuple[str, ...]:
    """Return what a user's own strategy does wrong, in sentences with group, topic and client."""
    if not isinstance(strategy, CheckedStrategy):
        return ()
    queues = [queue for queues in topics.queues for queue in queues]
    return allocate_group(strategy, queues, clients, snapshot.group, is_sorted=True).problems


def fresh_owners(snapshot: GroupSnapshot, clients: Sequence[str]) -> dict[Queue, str | None]:
    """Return who owns what when these clients are the group's first."""
    strategy = find_strategy(snapshot.strategy or "", snapshot.strategy_options)
    if isinstance(strategy, MachineRoomNearby):
        # Rooms without a consumer are shared by all: whichever room the first ones are in, they own every queue.
        rooms = dict.fromkeys(clients, next(iter(strategy.broker_rooms.values()), ""))
        strategy = replace(strategy, client_rooms={**strategy.client_rooms, **rooms})
    return dict(_named_owners(topics_of(snapshot), strategy, clients))
