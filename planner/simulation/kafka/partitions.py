"""Candidate counts of a Kafka group: the assignors, seen from what the coordinator shows.

``range`` and ``roundrobin`` count by a member's position, so that what a change moves is exact over every
position that a newcomer may take. The sticky assignors and the server's ``uniform`` start from what members own: which
partitions move depends on hash order, how many does not (kafka.md 1.2).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from planner.allocation.kafka import ASSIGNORS, Member, Request, Topics, assign, equal_group, find_assignor
from planner.allocation.kafka.assignment import known_names
from planner.allocation.kafka.group import NOBODY, IntArray
from planner.allocation.ordering import java_key
from planner.allocation.plugins import is_path
from planner.errors import BadInputError, UnknownNameError
from planner.model.membership import KafkaMember
from planner.model.queues import Queue, TopicPartition
from planner.model.snapshot import GroupSnapshot
from planner.simulation.counts import largest_share, relieves
from planner.simulation.figures import outcome_of
from planner.simulation.kafka.mixed_partitions import (
    ByAssignor,
    asks_for_racks,
    assigned,
    do_members_differ,
    own_of,
    own_options,
    simulate_mixed,
)
from planner.simulation.leaving import ByPosition, ByShare, Leaving, count_owned
from planner.simulation.moves import MoveRange, common_queues, move_range, moves_at
from planner.simulation.newcomers import Newcomer, known_newcomers
from planner.simulation.outcome import CandidateOutcome

POSITIONAL = frozenset({"range", "range-server", "roundrobin"})
STICKY = frozenset({"sticky", "cooperative-sticky", "uniform"})
LAST = "\uffff new consumer "
"""Sorts behind every real id."""


def in_ring_order(members: Sequence[KafkaMember]) -> tuple[KafkaMember, ...]:
    """Return the members as ``range`` and ``roundrobin`` sort them: static ones by instance id, then the others by id.

    Source: ``AbstractPartitionAssignor.MemberInfo#compareTo``, Kafka 2.4 and later.
    """
    return tuple(
        sorted(members, key=lambda m: (m.instance_id is None, java_key(m.instance_id or ""), java_key(m.member_id)))
    )


def why_not_simulated(snapshot: GroupSnapshot, assignor: str) -> str | None:
    """Return why no other count of the group can be simulated under ``assignor``, ``None`` when it can."""
    own = own_of(snapshot, assignor)
    if own is None and assignor not in POSITIONAL | STICKY:
        return f"assignor {assignor} is not one that can be foreseen"
    if own is not None and own.is_cooperative:
        return f"assignor {assignor} is your own and cooperative: in how many rounds it settles is not known"
    subscriptions = {member.topics and tuple(sorted(member.topics)) for member in snapshot.members}
    if None in subscriptions:
        return "not every member shows what it subscribes to"
    if asks_for_racks(snapshot, assignor) and any(state.racks is None for state in snapshot.data_queues):
        return (
            f"members have racks, and {assignor} weighs them against those of the partitions' replicas, which this "
            "snapshot does not have: take a new one from the brokers"
        )
    return None


def useful_sizes(snapshot: GroupSnapshot, assignor: str) -> tuple[int, ...]:
    """Return the sizes that are divided one by one: each topic's under ``range``, all partitions together elsewhere."""
    sizes = topic_sizes(snapshot)
    return sizes if assignor in ("range", "range-server") else (sum(sizes),)


def topic_sizes(snapshot: GroupSnapshot) -> tuple[int, ...]:
    """Return the partitions of each topic, topics sorted."""
    return tuple(_sizes(snapshot).values())


def unsettled_partitions(snapshot: GroupSnapshot, assignor: str) -> int:
    """Return how many partitions are not owned as a settled group's are.

    Under ``range``, ``roundrobin`` and a user's own that is not sticky that is known for each; elsewhere only that each
    has an owner.
    """
    if do_members_differ(snapshot, assignor):
        return _unsettled_mixed(snapshot, assignor)
    owners = _present_owners(snapshot)
    if assignor in POSITIONAL and why_not_simulated(snapshot, assignor) is None:
        return int((owners != _by_position(snapshot, assignor, len(snapshot.clients))).sum())
    return int((owners == NOBODY).sum())


def _unsettled_mixed(snapshot: GroupSnapshot, assignor: str) -> int:
    present = {state.queue: state.owner for state in snapshot.data_queues}
    own = own_of(snapshot, assignor)
    follows = assignor in POSITIONAL if own is None else not own.is_sticky
    if follows and why_not_simulated(snapshot, assignor) is None:
        return sum(owner != present[queue] for queue, owner in assigned(snapshot, assignor, snapshot.members).items())
    subscribed = {topic for member in snapshot.members for topic in member.topics or ()}
    return sum(owner is None and queue.topic in subscribed for queue, owner in present.items())


def simulate_partitions(
    snapshot: GroupSnapshot, count: int, assignor: str, staying: Sequence[str] | None = None
) -> CandidateOutcome:
    """Return what ``count`` members would mean under ``assignor``; ``staying`` are those left where that is known.

    Raises ``UnknownNameError`` for an assignor not known here, ``BadInputError`` where a newcomer's part is unknown
    (``why_not_simulated``).
    """
    if assignor not in known_names() and not is_path(assignor):
        raise UnknownNameError(f"assignor {assignor!r} is not known here: choose one of {', '.join(known_names())}")
    if assignor not in ASSIGNORS:
        find_assignor(assignor, own_options(snapshot, assignor))
    why = why_not_simulated(snapshot, assignor)
    if why is not None:
        raise BadInputError(f"group {snapshot.group} cannot be simulated with {count} members: {why}")
    if do_members_differ(snapshot, assignor):
        return simulate_mixed(snapshot, count, assignor, staying)
    ring = in_ring_order(snapshot.members)
    known = known_newcomers(snapshot, count // (snapshot.members_per_pod or 1))
    if staying:
        moves = leaving_partitions(snapshot, assignor).range_of(staying)
    else:
        moves = _moves(snapshot, assignor, count, known)
    stay = moves.fewest_stay if count < len(ring) else range(len(ring))
    newcomers = tuple(new.client for new in known) if known else _newcomers(count - len(ring))
    clients = (*(ring[position].member_id for position in stay), *newcomers)
    sizes = useful_sizes(snapshot, assignor)
    return outcome_of(
        snapshot,
        strategy=assignor,
        is_current=count == len(ring) and assignor == snapshot.strategy,
        is_useful=relieves(sizes, count),
        largest_share=largest_share(sizes, count),
        moves=moves,
        owners=_owners(snapshot, assignor, clients, known or ()),
        clients=clients,
        unknowns=_unknowns(snapshot, assignor, count, are_named=bool(staying or known)),
    )


def leaving_partitions(snapshot: GroupSnapshot, assignor: str) -> Leaving:
    """Return what the stop of any members moves, members in the order of the ring."""
    if do_members_differ(snapshot, assignor):
        return ByAssignor.of(snapshot, assignor)
    members = tuple(member.member_id for member in in_ring_order(snapshot.members))
    before = _present_owners(snapshot)
    owned = count_owned([before], len(members))
    if assignor in POSITIONAL:
        return ByPosition(members, owned, [before], cache(lambda count: [_by_position(snapshot, assignor, count)]))
    return ByShare(members, owned, len(before), has_quota=True)


def _newcomers(count: int) -> tuple[str, ...]:
    return tuple(f"new consumer {number}" for number in range(1, count + 1))


def _positions(snapshot: GroupSnapshot, known: Sequence[Newcomer]) -> tuple[int, ...]:
    """Return where the present members stand in the ring once the newcomers are in it."""
    ring = in_ring_order(snapshot.members)
    new = [replace(ring[0], member_id=each.client, instance_id=each.instance, owned=None) for each in known]
    positions = {member.member_id: index for index, member in enumerate(in_ring_order([*ring, *new]))}
    return tuple(positions[member.member_id] for member in ring)


def _moves(snapshot: GroupSnapshot, assignor: str, count: int, known: Sequence[Newcomer] | None = None) -> MoveRange:
    """Return the exact range of partitions that change owner."""
    before = _present_owners(snapshot)
    present = len(snapshot.members)
    owned = int((before != NOBODY).sum())
    if assignor in POSITIONAL:
        after = _by_position(snapshot, assignor, count)
        common = common_queues([before], [after], present, count)
        return moves_at(common, owned, _positions(snapshot, known)) if known else move_range(common, owned)
    if count >= present:
        after = ASSIGNORS[assignor](equal_group(_topics(snapshot), count, before)).owners
        moved = int(((before != NOBODY) & (before != after)).sum())
        return MoveRange(moved, moved, tuple(range(present)), tuple(range(present)))
    return _sticky_leave(before, present, count)


def _sticky_leave(before: IntArray, present: int, count: int) -> MoveRange:
    """Return what leaves with the members that own least, and with those that own most: the others keep theirs."""
    sizes = np.bincount(before[before != NOBODY], minlength=present)
    order = np.argsort(sizes, kind="stable")
    fewest, most = order[: present - count], order[count:]
    return MoveRange(
        int(sizes[fewest].sum()),
        int(sizes[most].sum()),
        tuple(sorted(order[present - count :].tolist())),
        tuple(sorted(order[:count].tolist())),
    )


def _by_position(snapshot: GroupSnapshot, assignor: str, count: int) -> IntArray:
    """Return each partition's owner as a position among ``count`` members."""
    return ASSIGNORS[assignor](equal_group(_topics(snapshot), count)).owners


def _present_owners(snapshot: GroupSnapshot) -> IntArray:
    """Return each partition's owner as the members report it, as a position in the ring."""
    positions = {member.member_id: position for position, member in enumerate(in_ring_order(snapshot.members))}
    states = sorted(snapshot.data_queues, key=lambda state: state.queue)
    return np.array([positions.get(state.owner or "", NOBODY) for state in states], dtype=np.intp)


def _sizes(snapshot: GroupSnapshot) -> Mapping[str, int]:
    return Counter(queue.topic for queue in sorted(state.queue for state in snapshot.data_queues))


def _topics(snapshot: GroupSnapshot) -> Topics:
    return Topics(topic_sizes(snapshot))


def _owners(
    snapshot: GroupSnapshot, assignor: str, clients: Sequence[str], newcomers: Sequence[Newcomer]
) -> dict[Queue, str | None]:
    """Return one answer of the assignor itself, newcomers last in the order unless they are known."""
    named = {new.client: new for new in newcomers}
    known = {member.member_id: member for member in snapshot.members}
    owned: dict[str, list[tuple[str, int]]] = {}
    for state in snapshot.data_queues:
        owned.setdefault(state.owner or "", []).append((state.queue.topic, state.queue.number))
    topics = frozenset(_sizes(snapshot))

    def member(client: str) -> Member:
        if client in named:
            return Member(client, topics, named[client].instance)
        if client not in known:
            return Member(LAST + client, topics)
        return Member(client, topics, known[client].instance_id, "", tuple(owned.get(client, ())), 1)

    answer = assign(Request(assignor, _sizes(snapshot), tuple(map(member, clients))))["assignments"]
    owner_of_partition: dict[Queue, str | None] = dict.fromkeys(sorted(state.queue for state in snapshot.data_queues))
    for name, partitions in answer.items():
        for topic, number in partitions:
            owner_of_partition[TopicPartition(topic, number)] = name.removeprefix(LAST)
    return owner_of_partition


def _unknowns(snapshot: GroupSnapshot, assignor: str, count: int, *, are_named: bool) -> tuple[str, ...]:
    present = len(snapshot.members)
    unknowns = []
    if count > present and assignor in POSITIONAL and not are_named:
        unknowns.append(f"where the {count - present} new member ids sort: shown as if they came last")
    if count < present and not are_named:
        unknowns.append(f"which {present - count} members stop: shown for those that move the fewest partitions")
    if assignor in STICKY and count != present:
        unknowns.append(f"which partitions {assignor} moves, as hash order decides: how many is known")
    if snapshot.capacity is None:
        unknowns.append("what one consumer can do: no utilisation, wait or drain time follows")
    return tuple(unknowns)


def fresh_partition_owners(snapshot: GroupSnapshot, clients: Sequence[str]) -> dict[Queue, str | None]:
    """Return one answer of the assignor for members that subscribe to every topic."""
    numbers = _sizes(snapshot)
    members = tuple(Member(client, frozenset(numbers)) for client in clients)
    name = snapshot.strategy or ""
    answer = assign(Request(name, numbers, members, options=own_options(snapshot, name)))["assignments"]
    owner_of = {(topic, number): client for client, owned in answer.items() for topic, number in owned}
    queues = sorted(state.queue for state in snapshot.data_queues)
    return {queue: owner_of.get((queue.topic, queue.number)) for queue in queues}
