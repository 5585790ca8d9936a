"""Kafka candidates: the range of moved partitions against every way that it can come about."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import pytest

from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.errors import BadInputError, UnknownNameError
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.snapshot import GroupSnapshot, NewPods, QueueState
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.simulation.kafka.mixed_partitions import assigned, count_moved, new_members
from planner.simulation.kafka.partitions import POSITIONAL, STICKY, unsettled_partitions
from planner.simulation.transition import with_transition
from tests.allocations import assign
from tests.builders import AT, OBJECTIVE, TIMING, snapshot

IDS = ("b", "d", "f", "h")
Owned = dict[str, list[tuple[str, int]]]


def answer(assignor: str, sizes: dict[str, int], owned: Owned, instance_ids: dict[str, str] | None = None) -> Owned:
    members = [
        {
            "id": name,
            "instance_id": (instance_ids or {}).get(name),
            "topics": sorted(sizes),
            "owned": claims,
            "generation": 1,
        }
        for name, claims in owned.items()
    ]
    return assign({"strategy": assignor, "partitions": sizes, "members": members})["assignments"]


def settled(
    assignor: str, sizes: dict[str, int], ids: Sequence[str] = IDS[:3], instance_ids: dict[str, str] | None = None
) -> GroupSnapshot:
    owned = answer(assignor, sizes, {name: [] for name in ids}, instance_ids)
    owners = {TopicPartition(*claim): name for name, claims in owned.items() for claim in claims}
    members = tuple(
        KafkaMember(name, name, "10.0.0.1", (instance_ids or {}).get(name), None, tuple(sorted(sizes)), (assignor,))
        for name in ids
    )
    return replace(
        snapshot(),
        system="kafka",
        strategy=assignor,
        clients=tuple(sorted(ids)),
        members=members,
        queues=tuple(QueueState(queue, 100, 90, 10, 5.0, 6.0, 5.0, owner) for queue, owner in sorted(owners.items())),
    )


def moved(before: dict[str, list[tuple[str, int]]], after: Owned) -> int:
    owner = {claim: name for name, claims in after.items() for claim in claims}
    return sum(owner[claim] != name for name, claims in before.items() for claim in claims)


def every_way(taken: GroupSnapshot, assignor: str, sizes: dict[str, int], count: int) -> Iterator[int]:
    """Yield what moves for every set of leavers, and for newcomers at every place and in every order of arrival."""
    before: Owned = {name: [] for name in taken.clients}
    for state in taken.queues:
        before[state.owner or ""].append((state.queue.topic, state.queue.number))
    if count <= len(before):
        for stay in combinations(before, count):
            yield moved(before, answer(assignor, sizes, {name: before[name] for name in stay}))
        return
    free = ("a", "aa", "c", "cc", "e", "ee", "g", "gg", "i", "ii")
    for newcomers in combinations(free, count - len(before)):
        together: Owned = {**before, **{name: [] for name in newcomers}}
        orders = list(permutations(together)) if len(together) < 5 else [tuple(together), tuple(reversed(together))]
        for order in random.Random(len(newcomers)).sample(orders, min(4, len(orders))):
            yield moved(before, answer(assignor, sizes, {name: together[name] for name in order}))


@pytest.mark.parametrize("assignor", sorted(POSITIONAL | STICKY))
@pytest.mark.parametrize("sizes", [{"t": 6}, {"t": 7, "u": 2}, {"t": 1, "u": 5, "v": 3}], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_moves_are_the_exact_range_over_everything_unknown(assignor: str, sizes: dict[str, int], count: int) -> None:
    taken = settled(assignor, sizes)
    outcome = simulate_candidate(taken, count, assignor)
    seen = set(every_way(taken, assignor, sizes, count))
    assert (outcome.moved_fewest, outcome.moved_most) == (min(seen), max(seen))


@pytest.mark.parametrize("assignor", sorted(POSITIONAL | STICKY))
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_every_partition_has_one_owner_and_the_share_is_the_largest(assignor: str, count: int) -> None:
    taken = settled(assignor, {"t": 7, "u": 2})
    outcome = simulate_candidate(taken, count, assignor)
    assert sorted(owned.queue for owned in outcome.owners) == [state.queue for state in taken.queues]
    assert {owned.owner for owned in outcome.owners} <= {load.client for load in outcome.loads}
    assert max(load.queues for load in outcome.loads) == outcome.largest_share
    assert len(outcome.loads) == count


def test_useful_counts_go_by_topic_under_range_and_by_all_partitions_elsewhere() -> None:
    sizes = {"t": 2, "u": 2}
    assert candidate_counts(settled("range", sizes, IDS[:1]), 1, 6) == (1, 2)
    assert candidate_counts(settled("roundrobin", sizes, IDS[:1]), 1, 6) == (1, 2, 4)


def test_static_members_come_before_dynamic_ones() -> None:
    taken = settled("range", {"t": 5}, ("b", "d"), {"d": "pod-0"})
    assert {state.owner for state in taken.queues[:3]} == {"d"}
    assert unsettled_partitions(taken, "range") == 0
    assert simulate_candidate(taken, 2, "range").moved_most == 0


def test_a_group_on_the_move_is_not_settled() -> None:
    taken = settled("range", {"t": 6})
    swapped = (replace(taken.queues[0], owner="f"), *taken.queues[1:])
    assert unsettled_partitions(replace(taken, queues=swapped), "range") == 1
    without = (replace(taken.queues[0], owner=None), *taken.queues[1:])
    assert unsettled_partitions(replace(taken, queues=without), "sticky") == 1
    ground = first_reason_to_hold(replace(taken, queues=swapped), OBJECTIVE, AT)
    assert ground is not None
    assert ground[0] is HoldCause.UNSETTLED


@pytest.mark.parametrize(
    ("change", "said"),
    [({"topics": None}, "not every member shows"), ({"rack": "r1"}, "does not have: take a new one")],
    ids=str,
)
def test_hold_where_a_newcomers_part_cannot_be_told(change: dict[str, object], said: str) -> None:
    taken = settled("range", {"t": 6})
    odd = replace(taken, members=(replace(taken.members[0], **change), *taken.members[1:]))  # type: ignore[arg-type]
    ground = first_reason_to_hold(odd, OBJECTIVE, AT)
    assert ground is not None
    assert (ground[0], said in ground[1]) == (HoldCause.UNSUPPORTED_STRATEGY, True)
    with pytest.raises(BadInputError, match=said):
        simulate_candidate(odd, 4, "range")


def test_racks_are_no_matter_for_assignors_that_leave_them_alone() -> None:
    taken = settled("roundrobin", {"t": 6})
    racked = replace(taken, members=tuple(replace(member, rack="r1") for member in taken.members))
    assert first_reason_to_hold(racked, OBJECTIVE, AT) == first_reason_to_hold(taken, OBJECTIVE, AT)
    assert simulate_candidate(racked, 4, "roundrobin") == simulate_candidate(taken, 4, "roundrobin")


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky", "uniform"])
def test_members_with_different_topics_are_decided_on(assignor: str) -> None:
    """Red where a new member gets topics that nobody like it subscribes to, or a leave is not tried for each."""
    sizes = {"t": 6, "u": 4}
    members = (
        KafkaMember("a-1", "a", "10.0.0.1", topics=("t",)),
        KafkaMember("a-2", "a", "10.0.0.2", topics=("t",)),
        KafkaMember("b-1", "b", "10.0.0.3", topics=("u",)),
    )
    made = replace(settled(assignor, sizes), members=members, clients=("a-1", "a-2", "b-1"))
    empty = replace(made, queues=tuple(replace(state, owner=None) for state in made.queues))
    owners = assigned(empty, assignor, members)
    taken = replace(empty, queues=tuple(replace(state, owner=owners[state.queue]) for state in empty.queues))
    assert first_reason_to_hold(taken, OBJECTIVE, AT) is None
    assert unsettled_partitions(taken, assignor) == 0
    join = simulate_candidate(taken, 4, assignor)
    assert join.drawn is not None
    tried = {count_moved(owners, assigned(taken, assignor, (*members, new))) for (new,) in new_members(taken, 1, 60)}
    assert min(tried) == join.moved_fewest
    assert max(tried) == join.moved_most
    stated = simulate_candidate(replace(taken, new_pods=NewPods(topics=("u",))), 4, assignor)
    assert stated.drawn is not None
    assert (stated.moved_fewest, stated.moved_most) == (2, 2)
    assert max(load.queues for load in stated.loads) == 3
    leave = simulate_candidate(taken, 2, assignor)
    assert (leave.moved_fewest, leave.moved_most) == (3, 4)
    assert (
        with_transition(join, replace(taken, timing=replace(TIMING, settings=())), "sha256:0", 16).transition
        is not None
    )


def racked(assignor: str, replicas: Sequence[tuple[str, ...]]) -> GroupSnapshot:
    """Return a settled group of members in racks r1, r1 and r2, the partitions of one topic having these replicas."""
    racks = {"b": "r1", "d": "r1", "f": "r2"}
    made = settled(assignor, {"t": len(replicas)})
    members = tuple(replace(member, rack=racks[member.member_id]) for member in made.members)
    states = tuple(replace(state, owner=None, racks=racks) for state, racks in zip(made.queues, replicas, strict=True))
    empty = replace(made, members=members, queues=states)
    owners = directly(assignor, empty, members)
    return replace(empty, queues=tuple(replace(state, owner=owners[state.queue.number]) for state in states))


def directly(assignor: str, taken: GroupSnapshot, members: Sequence[KafkaMember]) -> list[str]:
    """Return the owner of each partition as ``planner allocate`` answers for these members."""
    owned = {state.owner: [] for state in taken.queues} | {member.member_id: [] for member in members}
    for state in taken.queues:
        owned[state.owner].append(["t", state.queue.number])
    request = {
        "system": "kafka",
        "strategy": assignor,
        "partitions": {"t": len(taken.queues)},
        "members": [
            {"id": m.member_id, "rack": m.rack, "topics": ["t"], "owned": owned[m.member_id], "generation": 1}
            for m in members
        ],
        "options": {"partition_racks": {"t": [list(state.racks or ()) for state in taken.queues]}},
    }
    owners = {tuple(claim): name for name, claims in assign(request)["assignments"].items() for claim in claims}
    return [owners["t", number] for number in range(len(taken.queues))]


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_members_with_racks_are_decided_on(assignor: str) -> None:
    """Red where racks of members or replicas are left out: owners and moves are then others."""
    taken = racked(assignor, [("r1",), ("r2",), ("r2",), ("r1",), ("r2",), ("r2",), ("r1",), ("r2",)])
    assert first_reason_to_hold(taken, OBJECTIVE, AT) is None
    assert unsettled_partitions(taken, assignor) == 0
    blind = replace(taken, members=tuple(replace(member, rack=None) for member in taken.members))
    assert assigned(blind, "range", blind.members) != assigned(taken, "range", taken.members)
    before = [state.owner for state in taken.queues]
    for rack in ("r1", "r2"):
        join = simulate_candidate(replace(taken, new_pods=NewPods(rack=rack)), 4, assignor)
        tried = set()
        for name in ("a", "c", "e", "g"):  # every place among the present ids
            new = replace(taken.members[0], member_id=name, client_id=name, rack=rack)
            after = directly(assignor, taken, (*taken.members, new))
            tried.add(sum(owner != now for owner, now in zip(before, after, strict=True)))
        assert join.moved_fewest is not None
        assert join.moved_most is not None
        assert min(tried) <= join.moved_fewest <= join.moved_most <= max(tried)
    drawn = simulate_candidate(taken, 4, assignor)
    assert any(
        "which rack 1 new member has" in unknown and "spec.newPods.rack" in unknown for unknown in drawn.unknowns
    )
    cost = with_transition(drawn, replace(taken, timing=replace(TIMING, settings=())), "sha256:0", 16)
    assert cost.transition is not None, cost.unknowns


def test_a_new_member_has_a_client_id_of_its_own_where_all_have() -> None:
    """``rack-0`` and ``rack-1`` are followed by a higher number, whatever UUIDs the coordinator gave the present two:
    last in order, so that two of eight partitions move. Red where it is called as one of them: four then mostly move.
    """
    homes = {"rack-0-ffffffff-0": "r2", "rack-1-ffffffff-0": "r1"}
    members = tuple(KafkaMember(name, name[:6], "10.0.0.1", topics=("t",), rack=rack) for name, rack in homes.items())
    made = settled("range", {"t": 8}, tuple(homes))
    places = ("r1", "r2", "r2", "r1", "r1", "r2", "r2", "r1")
    states = tuple(replace(state, owner=None, racks=(place,)) for state, place in zip(made.queues, places, strict=True))
    empty = replace(made, members=members, queues=states, new_pods=NewPods(rack="r1"))
    owners = directly("range", empty, members)
    taken = replace(empty, queues=tuple(replace(state, owner=owners[state.queue.number]) for state in states))
    join = simulate_candidate(taken, 3, "range")
    assert (join.moved_fewest, join.moved_most) == (2, 2)
    shared = tuple(replace(member, client_id="rack") for member in members)
    assert {new.client_id for (new,) in new_members(replace(taken, members=shared), 1)} == {"rack"}


def test_racks_that_change_nothing_leave_the_exact_answer() -> None:
    """Replicas in every rack, or members in racks without a replica: the assignor looks at none of them."""
    plain = settled("range", {"t": 6})
    for rack, replicas in (("r1", ("r1", "r2")), ("elsewhere", ("r1",))):
        members = tuple(replace(member, rack=rack) for member in plain.members)
        states = tuple(replace(state, racks=replicas) for state in plain.queues)
        taken = replace(plain, members=members, queues=states)
        outcome, expected = (simulate_candidate(each, 4, "range") for each in (taken, plain))
        assert (outcome.moved_fewest, outcome.moved_most) == (expected.moved_fewest, expected.moved_most)
        assert outcome.drawn is None


def test_an_unknown_assignor_is_named() -> None:
    with pytest.raises(UnknownNameError, match="choose one of"):
        simulate_candidate(settled("range", {"t": 6}), 4, "fair")
