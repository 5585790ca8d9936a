"""Every worked row about Kafka assignment, each a test by its own name."""

from collections.abc import Iterable

import pytest

from planner.allocation.kafka.java_hash import HashedSet, string_hashes, walk_order
from tests.allocations import assign
from tests.unit.allocation.kafka.worked import ALL_T, T0_TO_T3, WORKED, Document, Row, member, parts, request

Owned = set[tuple[str, int]]


@pytest.mark.parametrize("name", WORKED)
def test_worked_row(name: str) -> None:
    row = WORKED[name]
    answer = assign(row.request)
    assert answer["assignments"] == row.assignments
    assert answer["deterministic"] is row.is_determined
    assert answer["warnings"] == []


def kept(before: Iterable[Document], row: Row) -> int:
    """Return how many partitions stay with the member that owned them."""
    answer = assign(row.request)["assignments"]
    return sum(len({(topic, number) for topic, number in one["owned"]} & set(answer[one["id"]])) for one in before)


def test_s5_roundrobin_keeps_three_of_five() -> None:
    fresh = assign(request("roundrobin", T0_TO_T3, *(member(f"C{n}", ALL_T) for n in range(3))))["assignments"]
    after = assign(WORKED["S5a C1 leaves, roundrobin"].request)["assignments"]
    assert sum(len(set(fresh[name]) & set(after[name])) for name in ("C0", "C2")) == 3


def test_s5_sticky_keeps_all_five() -> None:
    row = WORKED["S5b C1 leaves, sticky"]
    assert kept(row.request["members"], row) == 5


def test_s7_roundrobin_keeps_three_and_not_four() -> None:
    before = {"C1": set(parts("T1-0")), "C2": set(parts("T1-1 T2-0 T2-1 T2-2"))}
    after = assign(WORKED["S7 C0 leaves, roundrobin"].request)["assignments"]
    assert sum(len(before[name] & set(after[name])) for name in before) == 3


@pytest.mark.parametrize(
    ("strategy", "moved"), [("range", 6), ("roundrobin", 9), ("sticky", 3), ("cooperative-sticky", 3)]
)
def test_12_partitions_from_3_to_4_moves(strategy: str, moved: int) -> None:
    """Range and roundrobin are compared with their own answer before, sticky with the one it starts from."""
    if strategy in ("range", "roundrobin"):
        before = assign(request(strategy, {"t": 12}, *(member(f"C{n}", "t") for n in range(3))))["assignments"]
        after = assign(request(strategy, {"t": 12}, *(member(f"C{n}", "t") for n in range(4))))["assignments"]
        assert 12 - sum(len(set(before[name]) & set(after[name])) for name in before) == moved
    else:
        row = WORKED["12 partitions from 3 to 4, sticky"]
        document = {**row.request, "strategy": strategy}
        assert 12 - kept(row.request["members"], Row(document, {})) == moved


def test_roundrobin_keeps_partition_j_only_where_j_mod_n_is_j_mod_n_plus_1() -> None:
    before = assign(request("roundrobin", {"t": 30}, *(member(f"c{n}", "t") for n in range(4))))["assignments"]
    after = assign(request("roundrobin", {"t": 30}, *(member(f"c{n}", "t") for n in range(5))))["assignments"]
    stayed = {number for name in before for _, number in set(before[name]) & set(after[name])}
    assert stayed == {number for number in range(30) if number % 4 == number % 5}


def test_range_gives_every_topics_extra_to_the_same_first_member() -> None:
    topics = {f"t{n}": 3 for n in range(5)}
    answer = assign(request("range", topics, member("c0", " ".join(topics)), member("c1", " ".join(topics))))
    assert [len(got) for got in answer["assignments"].values()] == [10, 5]


def test_consumer_10_sorts_before_consumer_2() -> None:
    answer = assign(request("range", {"t": 3}, member("consumer-2", "t"), member("consumer-10", "t")))
    assert answer["assignments"] == {"consumer-10": [("t", 0), ("t", 1)], "consumer-2": [("t", 2)]}


def test_names_compare_by_utf_16_unit() -> None:
    """U+1F600 (D83D DE00) comes before U+FF21 in Java, after it by code point."""
    answer = assign(request("range", {"t": 3}, member("\uff21", "t"), member("\U0001f600", "t")))
    assert answer["assignments"] == {"\U0001f600": [("t", 0), ("t", 1)], "\uff21": [("t", 2)]}
    assert list(answer["assignments"]) == ["\U0001f600", "\uff21"]


def test_hash_order_of_consumer1_to_4() -> None:
    names = ["consumer1", "consumer2", "consumer3", "consumer4"]
    assert [names[place] for place in walk_order(names)] == ["consumer4", "consumer3", "consumer2", "consumer1"]


def test_hash_order_of_c0_to_c11() -> None:
    names = ["C0", "C1", "C2", "C10", "C11"]
    assert [names[place] for place in walk_order(names)] == ["C11", "C10", "C0", "C1", "C2"]


def test_string_hash_is_javas() -> None:
    assert string_hashes(["", "a", "hello", "\U0001f600"]).tolist() == [0, 97, 99162322, 1772899]


def test_hashed_set_keeps_its_table_when_it_shrinks() -> None:
    """Thirteen items make a table of 32; 16 then stays in its own bucket, behind 1."""
    items = HashedSet()
    for number in range(13):
        items.add(100 + number, 40 + number)
    for number in range(13):
        items.remove(100 + number)
    items.add(16, 16)
    items.add(1, 1)
    assert items.first() == 1
    assert len(items) == 2


ABC_CLAIM = (
    member("A", "t", "t-0", 5),
    member("B", "t", "t-0", 5),
    member("C", "t", "t-0", 6),
)


def test_three_claimants_of_mixed_generations_are_not_determined() -> None:
    """A and B in generation 5, C in 6: met as A B C the partition counts as claimed twice, though C won."""
    answer = assign(request("cooperative-sticky", {"t": 3}, *ABC_CLAIM, cooperative_round="first"))
    assert answer["deterministic"] is False


def test_a_winner_over_one_older_claim_is_determined() -> None:
    answer = assign(request("cooperative-sticky", {"t": 3}, *ABC_CLAIM[1:], cooperative_round="first"))
    assert answer["deterministic"] is True
    assert ("t", 0) in answer["assignments"]["C"]


def test_an_old_claim_by_a_member_that_no_longer_subscribes_is_flagged() -> None:
    """G8(a): the real class asks the member's load although it is out of play, and fails with a null pointer."""
    stale = member("z", "u", " ".join(f"t-{number}" for number in range(4)), 1)
    answer = assign(
        request(
            "sticky",
            {"t": 4, "u": 1},
            member("a", "t", " ".join(f"t-{number}" for number in range(4)), 5),
            member("b", "t", "", 5),
            {**stale, "topics": ["u"]},
        )
    )
    assert answer["assignments"] == {"a": [("t", 2), ("t", 3)], "b": [("t", 0), ("t", 1)], "z": [("u", 0)]}
    assert answer["deterministic"] is False
    assert "no longer subscribes" in answer["warnings"][0]


def test_a_member_without_topics_gets_nothing_and_is_named() -> None:
    """Met first, it goes unnoticed in the real class and is given partitions: one valid answer keeps to the rules."""
    answer = assign(request("sticky", {"t": 4}, member("a", ""), member("b", "t")))
    assert answer["assignments"] == {"a": [], "b": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]}
    assert answer["deterministic"] is False
    assert '"a"' in answer["warnings"][0]
