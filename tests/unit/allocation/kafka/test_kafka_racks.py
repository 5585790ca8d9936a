"""Racks (KIP-881): when they count, and what they change."""

from planner.allocation.kafka.racks import racks_matter
from tests.allocations import assign
from tests.unit.allocation.kafka.worked import Document, member, request

ALTERNATE = [["r0"], ["r1"], ["r0"], ["r1"]]


def in_rack(member_id: str, topics: str, rack: str | None, owned: str = "") -> Document:
    return {**member(member_id, topics, owned, 1), "rack": rack}


def test_range_matches_racks_within_the_same_sizes() -> None:
    members = (in_rack("a", "t", "r1"), in_rack("b", "t", "r0"))
    answer = assign(request("range", {"t": 4}, *members, partition_racks={"t": ALTERNATE}))
    assert answer["assignments"] == {"a": [("t", 1), ("t", 3)], "b": [("t", 0), ("t", 2)]}


def test_range_puts_co_partitioning_before_racks() -> None:
    members = (in_rack("a", "t u", "r1"), in_rack("b", "t u", "r0"))
    racks = {"t": ALTERNATE, "u": [*ALTERNATE[1:], ["r0"]]}
    answer = assign(request("range", {"t": 4, "u": 4}, *members, partition_racks=racks))["assignments"]
    assert {number for topic, number in answer["a"] if topic == "t"} == {
        number for topic, number in answer["a"] if topic == "u"
    }


def test_a_topic_not_named_has_no_racks() -> None:
    members = (in_rack("a", "t", "r1"), in_rack("b", "t", "r0"))
    plain = assign(request("range", {"t": 4}, *members))
    assert assign(request("range", {"t": 4}, *members, partition_racks={})) == plain


def test_an_empty_rack_is_none() -> None:
    members = (in_rack("a", "t", ""), in_rack("b", "t", ""))
    answer = assign(request("range", {"t": 4}, *members, partition_racks={"t": [[""], ["r0"], [""], ["r1"]]}))
    assert answer["assignments"]["a"] == [("t", 0), ("t", 1)]


def test_sticky_revokes_what_lies_in_another_rack() -> None:
    members = (in_rack("a", "t", "r0", "t-0 t-1"), in_rack("b", "t", "r1", "t-2 t-3"))
    answer = assign(request("sticky", {"t": 4}, *members, partition_racks={"t": ALTERNATE}))
    assert answer["assignments"] == {"a": [("t", 0), ("t", 2)], "b": [("t", 1), ("t", 3)]}


def test_the_servers_assignors_know_no_racks() -> None:
    for strategy in ("uniform", "range-server"):
        members = tuple({**one, "owned": []} for one in (in_rack("a", "t", "r1"), in_rack("b", "t", "r0")))
        plain = assign(request(strategy, {"t": 4}, *members))
        assert assign(request(strategy, {"t": 4}, *members, partition_racks={"t": ALTERNATE})) == plain


def test_racks_matter_only_where_they_meet_and_differ() -> None:
    assert racks_matter({1}, [{1}, {2}])
    assert not racks_matter({3}, [{1}, {2}])
    assert not racks_matter({1}, [{1, 2}, {2, 1}])
    assert racks_matter({1}, [{1}, set()])
    assert not racks_matter(set(), [{1}, {2}])
