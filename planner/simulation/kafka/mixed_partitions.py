"""Kafka groups whose members differ in topics or racks: new members are drawn, and the assignor assigns each draw.

A new member is like a present one that is picked at random, or has the topics and the rack that the policy states. Its
id is its client's id and a random UUID, as the coordinator makes it (``GroupMetadata#generateMemberId``, Kafka 2.3 to
4.3). Where every present member has a client id of its own, so has the new one: another of their form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from typing import Any, ClassVar
from uuid import UUID

import numpy as np

from planner.allocation.kafka import Member, OwnAssignor, Request, assign, own_assignor
from planner.allocation.kafka.names import NO_GENERATION
from planner.allocation.kafka.racks import racks_matter
from planner.model.membership import KafkaMember
from planner.model.queues import Queue, TopicPartition
from planner.model.snapshot import GroupSnapshot
from planner.simulation.draws import FORECAST_DRAWS, Names, between, interval, seed_of_snapshot
from planner.simulation.figures import outcome_of
from planner.simulation.leaving import Counts, Leaving, Stays
from planner.simulation.moves import MoveRange
from planner.simulation.outcome import CandidateOutcome, DrawnIds
from planner.text.words import counted

DRAWS = 60
"""How many sets of new members each count is simulated for: the general assignors take longer than hashing does."""

Owners = Mapping[Queue, str | None]


RACK_AWARE = frozenset({"range", "sticky", "cooperative-sticky"})
"""Assignors that look at racks (KIP-881); the server's do not any more (KAFKA-16694)."""


def do_members_differ(snapshot: GroupSnapshot, assignor: str) -> bool:
    """Return whether it counts whom a newcomer is like: by its topics, or by its rack where the assignor goes by them;
    under a user's own assignor always.

    Racks that are nowhere a replica's, and replicas in every rack, change nothing
    (``AbstractPartitionAssignor#useRackAwareAssignment``: per topic for ``range``, over all for the sticky ones).
    """
    if own_of(snapshot, assignor) is not None:
        return True
    return has_mixed_topics(snapshot) or (asks_for_racks(snapshot, assignor) and _do_racks_matter(snapshot))


def own_of(snapshot: GroupSnapshot, assignor: str) -> OwnAssignor | None:
    """Return the user's own assignor of that name, ``None`` for Kafka's; what it goes by nobody knows beforehand."""
    return own_assignor(assignor, own_options(snapshot, assignor))


def own_options(snapshot: GroupSnapshot, assignor: str) -> Mapping[str, Any]:
    """Return the parameters: those that the snapshot states belong to the group's own assignor."""
    return snapshot.strategy_options if assignor == snapshot.strategy else {}


def asks_for_racks(snapshot: GroupSnapshot, assignor: str) -> bool:
    """Return whether the assignor weighs members' racks, and some member has one."""
    return bool(_homes(snapshot)) and (assignor in RACK_AWARE or own_of(snapshot, assignor) is not None)


def _homes(snapshot: GroupSnapshot) -> set[str]:
    stated = {snapshot.new_pods.rack} if snapshot.new_pods.rack else set()
    return stated | {member.rack for member in snapshot.members if member.rack}


def _do_racks_matter(snapshot: GroupSnapshot) -> bool:
    everywhere = {rack for state in snapshot.data_queues for rack in state.racks or ()}
    number = {rack: index for index, rack in enumerate(sorted(_homes(snapshot) | everywhere))}
    homes = {number[rack] for rack in _homes(snapshot)}
    by_topic: dict[str, list[list[int]]] = {}
    for state in snapshot.data_queues:
        by_topic.setdefault(state.queue.topic, []).append([number[rack] for rack in state.racks or ()])
    every = [racks for of_topic in by_topic.values() for racks in of_topic]
    return any(racks_matter(homes, replicas) for replicas in (every, *by_topic.values()))


def has_mixed_topics(snapshot: GroupSnapshot) -> bool:
    """Return whether present members, or new ones by the policy's word, differ in their topics."""
    stated = snapshot.new_pods.topics
    kinds = {tuple(sorted(member.topics or ())) for member in snapshot.members}
    return len(kinds | ({tuple(sorted(stated))} if stated else set())) > 1


def assigned(snapshot: GroupSnapshot, assignor: str, members: Sequence[KafkaMember]) -> Owners:
    """Return the owner of each partition when these members are assigned; present ones claim what they own now."""
    sizes: dict[str, int] = {}
    owned: dict[str, list[tuple[str, int]]] = {}
    for state in snapshot.data_queues:
        topic, number = state.queue.topic, state.queue.number
        sizes[topic] = max(sizes.get(topic, 0), number + 1)
        owned.setdefault(state.owner or "", []).append((topic, number))
    asked = tuple(_asking(member, owned.get(member.member_id, [])) for member in members)
    racks = partition_racks(snapshot, assignor)
    owners: dict[Queue, str | None] = dict.fromkeys(state.queue for state in snapshot.data_queues)
    asking = Request(assignor, sizes, asked, racks, own_options(snapshot, assignor))
    for name, partitions in assign(asking)["assignments"].items():
        owners |= {TopicPartition(topic, number): name for topic, number in partitions}
    return owners


def partition_racks(snapshot: GroupSnapshot, assignor: str) -> dict[str, tuple[frozenset[str], ...]]:
    """Return in which racks the replicas of each topic's partitions lie, for an assignor that weighs it."""
    if not asks_for_racks(snapshot, assignor):
        return {}
    racks: dict[str, list[frozenset[str]]] = {}
    for state in sorted(snapshot.data_queues, key=lambda state: state.queue):
        of_topic = racks.setdefault(state.queue.topic, [])
        of_topic += [frozenset() for _ in range(state.queue.number - len(of_topic))]
        of_topic.append(frozenset(state.racks or ()) - {""})
    return {topic: tuple(of_topic) for topic, of_topic in racks.items()}


def _asking(member: KafkaMember, owned: Sequence[tuple[str, int]]) -> Member:
    """Return the member as an assignor knows it."""
    topics, generation = frozenset(member.topics or ()), 1 if owned else NO_GENERATION
    return Member(member.member_id, topics, member.instance_id, member.rack or "", tuple(owned), generation)


def new_members(snapshot: GroupSnapshot, count: int, draws: int = DRAWS) -> list[tuple[KafkaMember, ...]]:
    """Return ``draws`` possible sets of so many new members; each begins with those of a smaller number."""
    seed = seed_of_snapshot(snapshot)
    return [
        tuple(_new_member(snapshot, np.random.default_rng((seed, number, index))) for index in range(count))
        for number in range(draws)
    ]


def _new_member(snapshot: GroupSnapshot, random: np.random.Generator) -> KafkaMember:
    like = snapshot.members[int(random.integers(len(snapshot.members)))]
    name = UUID(bytes=random.bytes(16), version=4)
    instance = None
    if like.instance_id is not None:
        instance = f"{Names([m.instance_id for m in snapshot.members if m.instance_id]).draw(random)}-{name.hex[:4]}"
    return replace(
        like,
        member_id=f"{_client_id(snapshot, like, random)}-{name}",
        instance_id=instance,
        topics=snapshot.new_pods.topics or like.topics,
        rack=snapshot.new_pods.rack or like.rack,
        owned=None,
        epoch=None,
    )


def _client_id(snapshot: GroupSnapshot, like: KafkaMember, random: np.random.Generator) -> str:
    """Return the client id of a new member: ``like``'s, or another of their form where no two members share theirs."""
    client_ids = {member.client_id for member in snapshot.members}
    return Names(client_ids).draw(random) if len(client_ids) == len(snapshot.members) > 1 else like.client_id


def some_new_members(snapshot: GroupSnapshot, count: int) -> list[tuple[KafkaMember, ...]]:
    """Return a few possible sets of new members, as forecasts play them."""
    return new_members(snapshot, count, FORECAST_DRAWS)


def simulate_mixed(
    snapshot: GroupSnapshot, count: int, assignor: str, staying: Sequence[str] | None
) -> CandidateOutcome:
    """Return what ``count`` members would mean; ``staying`` are those left where that is known."""
    present = len(snapshot.members)
    if count > present:
        return _simulate_join(snapshot, count, assignor)
    moves = _leave_range(snapshot, count, assignor, staying)
    members = snapshot.members
    stay = moves.fewest_stay if moves else tuple(range(count))
    left = [members[position] for position in stay] if count < present else list(members)
    unknowns = [] if staying or count == present else [_which_stop(present - count, is_known=moves is not None)]
    return _outcome(snapshot, assignor, left, assigned(snapshot, assignor, left), moves, unknowns)


def _which_stop(stopping: int, *, is_known: bool) -> str:
    shown = "those that move the fewest partitions" if is_known else "the last in order"
    return f"which {counted(stopping, 'member')} {'stops' if stopping == 1 else 'stop'}: shown for {shown}"


def _leave_range(snapshot: GroupSnapshot, count: int, assignor: str, staying: Sequence[str] | None) -> MoveRange | None:
    leaves = ByAssignor.of(snapshot, assignor)
    members = len(snapshot.members)
    if staying:
        return leaves.range_of(staying)
    if comb(members, count) > leaves.most_choices:
        return None
    stays = np.zeros((comb(members, count), members), dtype=np.bool_)
    for row, chosen in enumerate(combinations(range(members), count)):
        stays[row, list(chosen)] = True
    moved = leaves.moved(stays)
    least, most = int(moved.argmin()), int(moved.argmax())
    positions = [tuple(np.flatnonzero(stays[row]).tolist()) for row in (least, most)]
    return MoveRange(int(moved[least]), int(moved[most]), positions[0], positions[1])


def _simulate_join(snapshot: GroupSnapshot, count: int, assignor: str) -> CandidateOutcome:
    before = {state.queue: state.owner for state in snapshot.data_queues}
    rates = {state.queue: state.upper_arrival_rate or 0.0 for state in snapshot.data_queues}
    futures = [(*snapshot.members, *more) for more in new_members(snapshot, count - len(snapshot.members))]
    owners = [assigned(snapshot, assignor, members) for members in futures]
    moved = np.array([count_moved(before, after) for after in owners])
    shares, loads = (np.array([_busiest(after, weights) for after in owners]) for weights in (None, rates))
    percentile = snapshot.new_pods.ids_percentile
    order = np.lexsort((shares, loads))
    shown = int(order[max(int(np.ceil(percentile / 100 * len(order))), 1) - 1])
    capacity = known.sure_messages_per_s if (known := snapshot.consumer_capacity) else None
    drawn = DrawnIds(
        draws=len(futures),
        percentile=percentile,
        moved=interval(moved),
        largest_share=interval(shares),
        utilisation=interval(loads / capacity) if capacity else None,
    )
    moves = MoveRange(int(drawn.moved.p05), int(drawn.moved.p95), (), ())
    unknowns = [_which_topics(snapshot, count - len(snapshot.members), drawn)]
    outcome = _outcome(snapshot, assignor, futures[shown], owners[shown], moves, unknowns)
    return replace(outcome, drawn=drawn)


def _which_topics(snapshot: GroupSnapshot, newcomers: int, drawn: DrawnIds) -> str:
    members = counted(newcomers, "new member")
    unknown = [
        (has_mixed_topics(snapshot) and not snapshot.new_pods.topics, "topics"),
        (len({member.rack for member in snapshot.members}) > 1 and not snapshot.new_pods.rack, "rack"),
    ]
    missing = [name for is_unknown, name in unknown if is_unknown]
    subscribed = f"what the ids of {members} will be"
    if missing:
        fields = " and ".join(f"spec.newPods.{name}" for name in missing)
        subscribed = (
            f"which {' and '.join(missing)} {members} {'has' if newcomers == 1 else 'have'}: each drawn like a present "
            f"one; {fields} {'states it' if missing == ['rack'] else 'state them'}"
        )
    return (
        f"{subscribed}. {between(drawn.moved, 'partition')} move and the busiest consumer owns "
        f"{between(drawn.largest_share, 'partition')} in 90 of 100 draws; loads are shown for the draw that "
        f"{drawn.percentile:g} of 100 do not exceed"
    )


def _busiest(owners: Owners, weights: Mapping[Queue, float] | None) -> float:
    loads: dict[str, float] = {}
    for queue, owner in owners.items():
        if owner is not None:
            loads[owner] = loads.get(owner, 0.0) + (1.0 if weights is None else weights[queue])
    return max(loads.values(), default=0.0)


def count_moved(before: Owners, after: Owners) -> int:
    """Return how many owned partitions have another owner afterwards, or none."""
    return sum(owner is not None and after[queue] != owner for queue, owner in before.items())


def _outcome(
    snapshot: GroupSnapshot,
    assignor: str,
    members: Sequence[KafkaMember],
    owners: Owners,
    moves: MoveRange | None,
    unknowns: Sequence[str],
) -> CandidateOutcome:
    no_figures = ("what one consumer can do: no utilisation, wait or drain time follows",)
    return outcome_of(
        snapshot,
        strategy=assignor,
        is_current=len(members) == len(snapshot.members) and assignor == snapshot.strategy,
        is_useful=True,
        largest_share=None,
        moves=moves,
        owners=owners,
        clients=[member.member_id for member in members],
        unknowns=(*unknowns, *(no_figures if snapshot.capacity is None else ())),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ByAssignor(Leaving):
    """Groups with different topics: each choice of those who stay is assigned anew."""

    most_choices: ClassVar[int] = 200

    members: tuple[str, ...]
    owned: Counts
    snapshot: GroupSnapshot
    assignor: str
    before: Owners = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: GroupSnapshot, assignor: str) -> "ByAssignor":
        """Return the leaves of the snapshot's group, members in the snapshot's order."""
        members = tuple(member.member_id for member in snapshot.members)
        before = {state.queue: state.owner for state in snapshot.data_queues}
        owned = np.array([list(before.values()).count(member) for member in members], dtype=np.intp)
        return cls(members, owned, snapshot, assignor, before)

    def moved(self, stays: Stays) -> Counts:
        """Return for each choice how many partitions move."""
        return np.array([self._moved(row.tolist()) for row in stays], dtype=np.intp)

    def cheapest(self, count: int) -> None:  # noqa: ARG002 - only trying shows it
        """Return ``None``."""
        return

    def _moved(self, stays: Sequence[bool]) -> int:
        left = [member for member, stays_here in zip(self.snapshot.members, stays, strict=True) if stays_here]
        return count_moved(self.before, assigned(self.snapshot, self.assignor, left))
