"""The assignors on plain numbers, as the planner's inner loops call them, and the kernels below."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.allocation.kafka import ASSIGNORS, Topics, equal_group, mixed_group
from planner.allocation.kafka.group import NOBODY, grouped, ranks_within
from planner.allocation.kafka.levels import deal_out, fill
from planner.allocation.kafka.sticky import cooperative_first
from tests.allocations import assign
from tests.unit.allocation.kafka.worked import member, request

SMALL = st.lists(st.integers(0, 6), min_size=1, max_size=8)


@given(loads=SMALL, count=st.integers(0, 40))
def test_fill_takes_the_least_loaded_each_time(loads: list[int], count: int) -> None:
    expected, now = [], list(loads)
    for _ in range(count):
        place = min(range(len(now)), key=lambda one: (now[one], one))
        now[place] += 1
        expected.append(place)
    assert fill(np.array(loads), count).tolist() == expected


@given(gaps=st.lists(st.integers(1, 5), max_size=7))
def test_take_turns_goes_round_until_each_gap_is_filled(gaps: list[int]) -> None:
    expected = [place for turn in range(max(gaps, default=0)) for place, gap in enumerate(gaps) if gap > turn]
    assert deal_out(np.arange(len(gaps)), np.array(gaps, dtype=np.intp)).tolist() == expected


@given(keys=st.lists(st.integers(0, 5), max_size=30))
def test_grouped_keeps_equal_keys_in_place(keys: list[int]) -> None:
    order = grouped(np.array(keys, dtype=np.intp), 6).tolist()
    assert order == sorted(range(len(keys)), key=lambda place: keys[place])
    assert grouped(np.array(keys, dtype=np.intp), 10**6).tolist() == order


def test_ranks_within() -> None:
    assert ranks_within(np.array([0, 0, 2, 2, 2]), 3).tolist() == [0, 1, 0, 1, 2]


def test_equal_group_is_the_document_with_ids_in_order() -> None:
    """Up to hash order, which a group of numbers does not have: here nothing depends on it."""
    for strategy in ("range", "roundrobin", "sticky", "range-server"):
        owners = ASSIGNORS[strategy](equal_group(Topics((5, 3)), 4)).owners
        answer = assign(request(strategy, {"a": 5, "b": 3}, *(member(f"c{n}", "a b") for n in range(4))))
        numbers = {("a", n): n for n in range(5)} | {("b", n): 5 + n for n in range(3)}
        for name, got in answer["assignments"].items():
            assert [int(name[1:])] * len(got) == [owners[numbers[one]] for one in got]


@pytest.mark.parametrize("strategy", ["sticky", "uniform"])
@pytest.mark.parametrize(("before", "after"), [(3, 4), (4, 3), (7, 12), (12, 5), (1, 9)])
def test_equal_subscriptions_stay_balanced_and_move_the_least(strategy: str, before: int, after: int) -> None:
    topics = Topics((17, 40, 5))
    owners = ASSIGNORS[strategy](equal_group(topics, before)).owners
    owners[owners >= after] = NOBODY
    now = ASSIGNORS[strategy](equal_group(topics, after, owners)).owners
    loads = np.bincount(now, minlength=after)
    assert loads.max() - loads.min() <= 1
    high, low = -(-62 // after), 62 // after
    counts = np.bincount(owners[owners != NOBODY], minlength=after)
    most_kept = np.minimum(counts, low).sum() + min(int((counts >= high).sum()), 62 % after)
    assert (now == owners).sum() == most_kept


@pytest.mark.parametrize("strategy", ["sticky", "uniform"])
def test_assigning_again_moves_nothing(strategy: str) -> None:
    random = Random(3)
    for _ in range(60):
        count = random.randint(1, 9)
        topics = Topics(tuple(random.randint(1, 9) for _ in range(random.randint(1, 5))))
        subscribers = [np.array(sorted(random.sample(range(count), random.randint(1, count)))) for _ in topics.sizes]
        owners = ASSIGNORS[strategy](mixed_group(topics, subscribers, count)).owners
        again = ASSIGNORS[strategy](mixed_group(topics, subscribers, count, owners)).owners
        assert again.tolist() == owners.tolist()


def test_cooperative_first_round_takes_nothing_from_one_and_gives_it_to_another() -> None:
    random = Random(4)
    topics = Topics((13, 8))
    for _ in range(50):
        owners = np.array([random.randint(-1, 4) for _ in range(21)])
        granted = cooperative_first(equal_group(topics, 6, owners)).owners
        both = (owners != NOBODY) & (granted != NOBODY)
        assert (granted[both] == owners[both]).all()


def test_members_are_walked_in_hash_order_where_that_decides() -> None:
    """Both members own two, one extra is to be had: whoever is met first keeps it."""
    group = equal_group(Topics((4,)), 3, np.array([0, 0, 1, 1]))
    for walk, keeper in (([0, 1, 2], 0), ([1, 0, 2], 1)):
        outcome = ASSIGNORS["sticky"](replace(group, walk=np.array(walk)))
        assert np.bincount(outcome.owners).argmax() == keeper
        assert not outcome.is_determined


@pytest.mark.parametrize("strategy", sorted(set(ASSIGNORS) - {"random"}))
def test_an_empty_world(strategy: str) -> None:
    assert ASSIGNORS[strategy](equal_group(Topics(()), 3)).owners.tolist() == []
    assert ASSIGNORS[strategy](equal_group(Topics((2,)), 0)).owners.tolist() == [NOBODY, NOBODY]


def test_more_members_than_partitions_leave_members_idle() -> None:
    for strategy in sorted(set(ASSIGNORS) - {"random"}):
        owners = ASSIGNORS[strategy](equal_group(Topics((3,)), 8)).owners
        assert len(set(owners.tolist())) == 3


def test_loads_of_a_fresh_sticky_group_with_mixed_subscriptions_differ_only_where_they_must() -> None:
    topics = Topics((10, 10, 10))
    subscribers = [np.array([0, 1]), np.array([1, 2]), np.array([2, 0])]
    loads = np.bincount(ASSIGNORS["sticky"](mixed_group(topics, subscribers, 3)).owners)
    assert sorted(loads.tolist()) == [10, 10, 10]
    assert all(abs(one - other) <= 1 for one, other in pairwise(loads.tolist()))
