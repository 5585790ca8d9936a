"""Joins at every place and leaves of every client, held against moving real names about."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.join_ranges import join_range
from planner.allocation.extra import SpecifiedMachine, Static, Vip
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import ConsistentHash, MachineRoom, MachineRoomNearby
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue
from planner.simulation.candidates import simulate_candidate
from planner.simulation.rocketmq.positions import departures, leave_range
from tests.builders import snapshot

FOUR = ["c0", "c1", "c2", "c3"]
SIXTEEN = [[MessageQueue("TopicA", "b", queue_id) for queue_id in range(16)]]
POSITIONAL = [find_strategy("AVG"), find_strategy("AVG_BY_CIRCLE"), MachineRoom(frozenset({"r"}))]


def moved(strategy: Strategy, topics: list[list[MessageQueue]], before: list[str], after: list[str]) -> int:
    """Count the changes of owner by name, the slow way."""
    changed = 0
    for queues in topics:
        old, new = strategy.owners(queues, before), strategy.owners(queues, after)
        names = [
            (before[left], after[right] if right >= 0 else None)
            for left, right in zip(old, new, strict=True)
            if left >= 0
        ]
        changed += sum(left != right for left, right in names)
    return changed


@pytest.mark.parametrize(("strategy", "first", "last", "fewest"), [("AVG", 10, 6, 4), ("AVG_BY_CIRCLE", 16, 12, 12)])
def test_a_join_moves_what_the_reference_says(strategy: str, first: int, last: int, fewest: int) -> None:
    """And less in the middle under AVG, which the reference does not mention."""
    found = join_range(find_strategy(strategy), SIXTEEN, FOUR)
    assert (found.cases[0].moved, found.cases[-1].moved) == (first, last)
    assert (found.fewest, found.most, found.is_exact) == (fewest, first, True)


@pytest.mark.parametrize(
    ("strategy", "first", "last"), [("AVG", 7, 9), ("AVG_BY_CIRCLE", 13, 10), ("CONSISTENT_HASH", 9, 4)]
)
def test_a_leave_moves_what_the_reference_says(strategy: str, first: int, last: int) -> None:
    found = {departure.client: departure.moved for departure in departures(find_strategy(strategy), SIXTEEN, FOUR)}
    assert (found["c0"], found["c3"]) == (first, last)


def test_the_departure_with_the_fewest_moves_comes_first() -> None:
    found = departures(find_strategy("AVG"), SIXTEEN, FOUR)
    assert [departure.moved for departure in found] == sorted(departure.moved for departure in found)
    assert (found[0].client, found[0].moved) == ("c1", 5)


@pytest.mark.parametrize("strategy", POSITIONAL, ids=lambda strategy: strategy.name)
@given(sizes=st.lists(st.integers(0, 20), min_size=1, max_size=3), count=st.integers(1, 9))
def test_every_place_is_counted_exactly(strategy: Strategy, sizes: list[int], count: int) -> None:
    topics = [[MessageQueue(f"t{topic}", "r@b", number) for number in range(size)] for topic, size in enumerate(sizes)]
    clients = [f"c{number}5" for number in range(count)]
    joins = join_range(strategy, topics, clients)
    for case in joins.cases:
        newcomer = f"c{case.position - 1}7" if case.position else "c"
        assert case.moved == moved(strategy, topics, clients, sorted([*clients, newcomer]))
    for departure in departures(strategy, topics, clients):
        left = [client for client in clients if client != departure.client]
        expected = moved(strategy, topics, clients, left) if left else sum(sizes)
        assert departure.moved == expected


def test_nearby_tries_every_room_and_place() -> None:
    rooms = {"A-b": "A", "B-b": "B"}
    topics = [[MessageQueue("T", broker, number) for broker in rooms for number in range(4)]]
    clients = ["A-c0", "A-c1"]
    strategy = MachineRoomNearby(find_strategy("AVG"), rooms, {"A-c0": "A", "A-c1": "A"})
    found = join_range(strategy, topics, clients)
    by_kind = {(case.kind, case.position): case.moved for case in found.cases}
    assert {kind for kind, _ in by_kind} == {"room A", "room B", "a room of its own"}
    # Whoever opens room B takes its four queues, wherever it sorts, and touches no other.
    assert {by_kind["room B", position] for position in range(3)} == {4}
    # One in a room of its own shares room B only: 4 queues of 2 clients among 3.
    joined = MachineRoomNearby(strategy.inner, rooms, {**strategy.client_rooms, "A-c2": "C"})
    assert by_kind["a room of its own", 2] == moved(joined, topics, clients, [*clients, "A-c2"])


def test_an_unnamed_host_moves_nothing() -> None:
    clients = ["h1@a", "h1@b", "h2@c"]
    found = join_range(SpecifiedMachine(frozenset({"h1"})), SIXTEEN, clients)
    assert {case.moved for case in found.cases if case.kind == "another host"} == {0}
    assert found.fewest == 0
    among_named = join_range(find_strategy("AVG"), SIXTEEN, ["h1@a", "h1@b"])
    assert found.most == among_named.most > 0


def test_a_vip_moves_vip_queues_only() -> None:
    chosen = frozenset(SIXTEEN[0][:4])
    clients = ["h@a", "h@b", "h@v1"]
    found = join_range(Vip(chosen, frozenset({"v1", "v2"})), SIXTEEN, clients)
    assert max(case.moved for case in found.cases if case.kind == "VIP") <= len(chosen)
    assert min(case.moved for case in found.cases if case.kind == "not VIP") > 0


def test_a_reserved_name_gets_its_queues() -> None:
    reserved = dict.fromkeys(SIXTEEN[0][:4], "a") | dict.fromkeys(SIXTEEN[0][4:8], "b")
    found = join_range(Static(reserved), SIXTEEN, ["h@a"])
    kinds = {case.kind for case in found.cases}
    assert kinds == {"name a", "name b", "another name"}
    assert all(case.moved >= 4 for case in found.cases if case.kind == "name b")


def test_a_hashed_join_has_an_exact_mean_and_a_band() -> None:
    found = join_range(ConsistentHash(), SIXTEEN, FOUR)
    assert not found.is_exact
    assert found.fewest <= found.mean <= found.most
    names = [f"c{number}" for number in range(1000, 3000)]
    tried = [moved(ConsistentHash(), SIXTEEN, FOUR, sorted([*FOUR, name])) for name in names]
    assert abs(sum(tried) / len(tried) - found.mean) < 0.25


def test_a_hash_inside_another_strategy_is_refused() -> None:
    strategy = MachineRoomNearby(ConsistentHash(), {"b": "r"}, dict.fromkeys(FOUR, "r"))
    with pytest.raises(BadInputError, match="CONSISTENT_HASH"):
        join_range(strategy, SIXTEEN, FOUR)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_leaves_under_consistent_hash_are_exact_for_any_number(count: int) -> None:
    strategy = ConsistentHash()
    tried = {stay: moved(strategy, SIXTEEN, FOUR, list(stay)) for stay in combinations(FOUR, count)}
    found = leave_range(strategy, SIXTEEN, FOUR, count)
    assert found is not None
    assert (found.fewest, found.most) == (min(tried.values()), max(tried.values()))
    assert tried[tuple(FOUR[place] for place in found.fewest_stay)] == found.fewest
    assert tried[tuple(FOUR[place] for place in found.most_stay)] == found.most


def test_one_leave_under_any_strategy_is_tried() -> None:
    rooms = {"b": "r"}
    strategy = MachineRoomNearby(find_strategy("AVG"), rooms, dict.fromkeys(FOUR, "r"))
    found = leave_range(strategy, SIXTEEN, FOUR, 3)
    assert found is not None
    assert (found.fewest, found.most) == (5, 9)
    assert (found.fewest_stay, found.most_stay) == ((0, 2, 3), (0, 1, 2))
    assert leave_range(strategy, SIXTEEN, FOUR, 2) is None


def test_departures_with_a_duplicate_id_count_names() -> None:
    """When one of two equal ids goes, the other keeps the first share: names decide what moved."""
    found = departures(find_strategy("AVG"), SIXTEEN, ["a", "a", "b"])
    assert [departure.client for departure in found].count("a") == 2


def test_candidates_under_consistent_hash_tell_what_is_known() -> None:
    taken = snapshot(strategy="CONSISTENT_HASH")
    fewer, now, more = (simulate_candidate(taken, count, "CONSISTENT_HASH") for count in (2, 3, 4))
    assert (now.moved_fewest, now.moved_most) == (0, 0)
    sizes = sorted(load.queues for load in now.loads)
    assert now.largest_share == sizes[-1]
    assert (fewer.moved_fewest, fewer.moved_most) == (sizes[0], sizes[-1])
    assert more.drawn is not None
    band = join_range(ConsistentHash(), SIXTEEN, FOUR)
    assert (more.moved_fewest, more.moved_most) == (more.drawn.moved.p05, more.drawn.moved.p95)
    assert 0 <= more.drawn.moved.p05 <= band.mean
    assert any("goes by them" in unknown for unknown in more.unknowns)
