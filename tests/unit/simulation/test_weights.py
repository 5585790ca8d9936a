"""Largest loads at every count, against allocating at every count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import queue_weights as weights
from benchmarks.queue_weights import Topic, largest_loads, undominated_counts
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import ConsistentHash, MachineRoom, MachineRoomNearby
from planner.allocation.strategy import NOBODY, Strategy
from planner.model.queues import MessageQueue
from planner.simulation.counts import useful_counts

STRATEGIES: list[Strategy] = [
    find_strategy("AVG"),
    find_strategy("AVG_BY_CIRCLE"),
    MachineRoom(frozenset({"r"})),
    ConsistentHash(),
    ConsistentHash(1),
    ConsistentHash(0),
    MachineRoomNearby(
        find_strategy("AVG"), {"r@b": "r", "s@b": "s"}, {f"c{number}": "rst"[number % 3] for number in range(40)}
    ),
]
NAMES = [f"c{number}" for number in (3, 1, 20, 2, 10, 0, 7, 11, 39, 5)]


def slowly(strategy: Strategy, topics: list[Topic], clients: list[str], count: int) -> float:
    loads = dict.fromkeys(clients[:count], 0.0)
    present = sorted(loads)
    for queues, heavy in topics:
        for owner, weight in zip(strategy.owners(queues, present), heavy, strict=True):
            if owner != NOBODY:
                loads[present[owner]] += weight
    return max(loads.values())


def topics_of(sizes: list[int]) -> list[Topic]:
    brokers = ["r@b", "s@b"]
    return [
        (
            sorted(MessageQueue(f"t{topic}", brokers[number % 2], number) for number in range(size)),
            np.array([(number * 7919 + topic) % 13 for number in range(size)], dtype=float),
        )
        for topic, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: f"{strategy.name}")
@given(sizes=st.lists(st.integers(0, 24), min_size=1, max_size=3), highest=st.integers(1, 10))
def test_largest_loads_are_those_of_allocating(strategy: Strategy, sizes: list[int], highest: int) -> None:
    topics = topics_of(sizes)
    found = largest_loads(strategy, topics, highest, NAMES)
    expected = [slowly(strategy, topics, NAMES, count) for count in range(1, highest + 1)]
    assert found.tolist() == pytest.approx(expected)


def test_tables_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [largest_loads(strategy, topics_of([40, 9]), 10, NAMES) for strategy in STRATEGIES]
    monkeypatch.setattr(weights, "_CELLS", 30)
    for strategy, expected in zip(STRATEGIES, whole, strict=True):
        assert largest_loads(strategy, topics_of([40, 9]), 10, NAMES).tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4), highest=st.integers(1, 50))
def test_equal_weights_give_the_useful_counts(strategy: str, sizes: list[int], highest: int) -> None:
    topics: list[Topic] = [
        ([MessageQueue(f"t{topic}", "b", number) for number in range(size)], np.ones(size))
        for topic, size in enumerate(sizes)
    ]
    largest = largest_loads(find_strategy(strategy), topics, highest)
    assert undominated_counts(range(1, highest + 1), largest) == useful_counts(sizes, 1, highest)


def test_a_heavier_neighbour_makes_a_count_dominated() -> None:
    """AVG with weights 4 1 1 4: two consumers carry 5 each, three 5 (4 and 1), four 4."""
    topic: Topic = ([MessageQueue("T", "b", number) for number in range(4)], np.array([4.0, 1.0, 1.0, 4.0]))
    largest = largest_loads(find_strategy("AVG"), [topic], 4)
    assert largest.tolist() == [10.0, 5.0, 5.0, 4.0]
    assert undominated_counts([1, 2, 3, 4], largest) == (1, 2, 4)


def test_two_clients_on_one_ring_point() -> None:
    """The later id replaces the earlier one, whichever started first."""
    topics: list[Topic] = [([MessageQueue("T", "b", 0)], np.array([1.0]))]
    for names in (["c106893", "c147464", "x"], ["c147464", "c106893", "x"]):
        found = largest_loads(ConsistentHash(1), topics, 3, names)
        assert found.tolist() == [slowly(ConsistentHash(1), topics, names, count) for count in (1, 2, 3)]


def test_nothing_to_count_is_no_load() -> None:
    for strategy in STRATEGIES:
        assert largest_loads(strategy, [], 3, NAMES).tolist() == [0, 0, 0]
        assert largest_loads(strategy, topics_of([4]), 0, NAMES).tolist() == []
    assert undominated_counts([], np.empty(0)) == ()


def test_an_id_that_is_there_twice_counts_twice_on_the_ring() -> None:
    names = ["c0", "c1", "c0"]
    topics = topics_of([12])
    found = largest_loads(ConsistentHash(), topics, 3, names)
    queues, heavy = topics[0]
    owners = ConsistentHash().owners(queues, ["c0", "c0", "c1"])
    assert found[2] == np.bincount(owners, weights=heavy).max()
