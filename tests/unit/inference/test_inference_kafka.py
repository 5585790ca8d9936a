"""Kafka: an assignor told, two lists in one group, and what ownership alone says."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from planner.inference import PartitionObservation, contradiction, infer_assignor, mixed_lists
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.samples import KafkaGroup
from tests.allocations import assign

STABLE = KafkaGroup("Stable", "classic", None, 5)
EXACT = ("range", "roundrobin")
STICKY = ("sticky", "cooperative-sticky", "uniform")


def member(name: str, owned: Sequence[tuple[str, int]] | None, topics: Sequence[str] | None = None) -> KafkaMember:
    held = None if owned is None else tuple(TopicPartition(*one) for one in owned)
    return KafkaMember(name, name, "10.0.0.1", topics=None if topics is None else tuple(topics), owned=held)


def seen(
    assignor: str,
    partitions: dict[str, int],
    topics: dict[str, list[str]],
    before: PartitionObservation | None = None,
    group: KafkaGroup | None = None,
) -> PartitionObservation:
    """Return what is seen once the assignor has run, from what members owned before."""
    owned = before.owned if before else {}
    members = [
        {"id": name, "topics": wanted, "owned": [(p.topic, p.partition) for p in sorted(owned.get(name, ()))]}
        for name, wanted in topics.items()
    ]
    found = assign({"system": "kafka", "strategy": assignor, "partitions": partitions, "members": members})
    return PartitionObservation(
        partitions, tuple(member(name, found["assignments"][name], topics[name]) for name in topics), group
    )


def random_world(seed: int) -> tuple[dict[str, int], dict[str, list[str]]]:
    random = Random(seed)
    partitions = {f"t{number}": random.randint(1, 7) for number in range(random.randint(1, 3))}
    subset = random.random() < 0.4
    names = [f"c{number}" for number in random.sample(range(20), random.randint(1, 5))]
    every = list(partitions)
    topics = {name: random.sample(every, random.randint(1, len(every))) if subset else every for name in names}
    return partitions, topics


def names(observations: Sequence[PartitionObservation]) -> set[str]:
    return {one.strategy for one in infer_assignor(observations).explanations}


@pytest.mark.parametrize("assignor", (*EXACT, *STICKY))
def test_the_true_assignor_is_always_among_the_answers(assignor: str) -> None:
    for number in range(60):
        partitions, topics = random_world(number)
        first = seen(assignor, partitions, topics, group=None)
        joined = {**topics, "c99": list(partitions)}
        second = seen(assignor, partitions, joined, first)
        assert assignor in names([first]), number
        assert assignor in names([second, first]), number


@pytest.mark.parametrize("assignor", EXACT)
def test_an_exact_one_is_the_only_exact_one_unless_the_other_gives_the_same(assignor: str) -> None:
    other = EXACT[1 - EXACT.index(assignor)]
    told_apart = 0
    for number in range(60):
        partitions, topics = random_world(number)
        mine, theirs = seen(assignor, partitions, topics), seen(other, partitions, topics)
        same = mine.owned == theirs.owned
        assert (other in names([mine])) == same, number
        if not same:
            told_apart += 1
            assert infer_assignor([mine]).strategy == assignor
    assert told_apart > 20


def test_one_more_membership_change_tells_range_from_roundrobin() -> None:
    two = seen("range", {"t": 2}, {"a": ["t"], "b": ["t"]})
    one = seen("range", {"t": 3}, {"a": ["t"], "b": ["t"]})
    assert names([two]) >= {"range", "roundrobin"}
    assert names([one, two]) & set(EXACT) == {"range"}


def test_an_uneven_group_is_not_sticky() -> None:
    found = infer_assignor(
        [seen("range", {"t0": 3, "t1": 3, "t2": 3}, {"a": ["t0", "t1", "t2"], "b": ["t0", "t1", "t2"]})]
    )
    assert {one.strategy for one in found.explanations} == {"range"}
    assert (
        "at most one partition apart, but one owns 6 and one 3"
        in {r.strategy: r.reason for r in found.refuted}["sticky"]
    )


def test_a_group_that_moved_more_than_one_rebalance_needs_is_not_sticky() -> None:
    topics = {"a": ["t"], "b": ["t"]}
    before = seen("roundrobin", {"t": 8}, topics, group=STABLE)
    after = replace(
        seen("roundrobin", {"t": 8}, {**topics, "c": ["t"]}, group=replace(STABLE, epoch=6)),
    )
    found = infer_assignor([after, before])
    assert {one.strategy for one in found.explanations} == {"roundrobin"}
    unseen = infer_assignor([replace(after, group=replace(STABLE, epoch=9)), before])
    assert "sticky" in {one.strategy for one in unseen.explanations}, "other rebalances came in between"


def test_a_sticky_group_is_consistent_and_no_more() -> None:
    topics = {"a": ["t"], "b": ["t"]}
    before = seen("sticky", {"t": 9}, topics, group=STABLE)
    after = seen("sticky", {"t": 9}, {**topics, "c": ["t"]}, before, replace(STABLE, epoch=6))
    found = infer_assignor([after, before])
    assert {one.strategy for one in found.explanations} >= {"sticky", "cooperative-sticky"}
    assert not found.is_determined
    assert "is consistent with" in found.sentence


def test_what_the_coordinator_names_is_held_against_ownership() -> None:
    told = replace(STABLE, assignor="range")
    right = seen("range", {"t": 5}, {"a": ["t"], "b": ["t"]}, group=told)
    assert (infer_assignor([right]).strategy, infer_assignor([right]).is_determined) == ("range", True)
    wrong = infer_assignor([seen("roundrobin", {"t": 5}, {"a": ["t"], "b": ["t"]}, group=told)])
    assert wrong.strategy is None
    assert wrong.sentence == (
        "range, which the group names, does not explain what its members own: range would give t/1 to a, but b has it"
    )


def test_the_servers_range_is_told_from_the_clients() -> None:
    group = KafkaGroup("Stable", "consumer", "range", 5)
    found = infer_assignor([seen("range-server", {"t": 5}, {"a": ["t"], "b": ["t"]}, group=group)])
    assert found.strategy == "range-server"
    assert contradiction("range", found) is None
    assert contradiction("uniform", found) == "the policy states uniform, but the members run range-server"


def test_an_unknown_assignor_is_named() -> None:
    group = replace(STABLE, assignor="afei")
    found = infer_assignor([seen("range", {"t0": 4, "t1": 3}, {"a": ["t0", "t1"], "b": ["t0", "t1"]}, group=group)])
    assert found.custom == ("afei",)
    assert "the members run afei, which is not known here; range explains" in found.sentence


def test_two_lists_in_one_group_are_named() -> None:
    both, new = ("range", "cooperative-sticky"), ("cooperative-sticky",)
    members = tuple(
        replace(member(name, []), assignors=offer) for name, offer in (("a", both), ("b", new), ("c", both))
    )
    assert mixed_lists(members) == (
        "members offer different assignors: [cooperative-sticky] by b; [range, cooperative-sticky] by a, c"
    )
    assert mixed_lists(members[:1]) is None
    found = infer_assignor([PartitionObservation({"t": 3}, members)])
    assert [(one.client, one.named) for one in found.members] == [
        ("a", "range, cooperative-sticky"),
        ("b", "cooperative-sticky"),
        ("c", "range, cooperative-sticky"),
    ]


def test_nothing_is_made_of_members_that_do_not_tell() -> None:
    found = infer_assignor([PartitionObservation({"t": 3}, (member("a", None), member("b", None)))])
    assert (found.explanations, found.sentence) == ((), "nothing is known of who owns what")
    assert infer_assignor([]).explanations == ()


def test_members_that_tell_are_enough_for_an_exact_one() -> None:
    whole = seen("range", {"t": 7}, {"a": ["t"], "b": ["t"], "c": ["t"]})
    partial = replace(whole, members=tuple(replace(m, owned=None) if m.member_id == "b" else m for m in whole.members))
    assert infer_assignor([partial]).strategy == "range"


def test_a_group_that_cannot_be_is_explained_by_nothing() -> None:
    members = tuple(replace(member(name, [("t", place)]), instance_id="pod-0") for place, name in enumerate("ab"))
    found = infer_assignor([PartitionObservation({"t": 2}, members, replace(STABLE, assignor="range"))])
    assert found.strategy is None
    assert "range has no answer for this group: members[1].instance_id: found" in found.sentence


def test_static_members_stand_first() -> None:
    owned = {"z": [("t", 0), ("t", 1)], "a": [("t", 2)]}
    members = tuple(member(name, partitions) for name, partitions in owned.items())
    assert "range" not in names([PartitionObservation({"t": 3}, members)])
    static = (replace(members[0], instance_id="pod-0"), members[1])
    assert "range" in names([PartitionObservation({"t": 3}, static)])
