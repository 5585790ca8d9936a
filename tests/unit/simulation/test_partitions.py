"""Kafka candidates: the range of moved partitions against every way that it can come about."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import pytest

from planner.allocation.kafka import assign
from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.errors import BadInputError, UnknownNameError
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.simulation.partitions import POSITIONAL, STICKY, unsettled_partitions
from tests.builders import AT, OBJECTIVE, snapshot

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
    [
        ({"topics": ("t", "u")}, "subscribe to different topics"),
        ({"topics": None}, "not every member shows"),
        ({"rack": "r1"}, "racks"),
    ],
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


def test_an_unknown_assignor_is_named() -> None:
    with pytest.raises(UnknownNameError, match="choose one of"):
        simulate_candidate(settled("range", {"t": 6}), 4, "fair")
