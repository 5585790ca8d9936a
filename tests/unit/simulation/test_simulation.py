"""Counts, moves and load, held against brute force and against figures worked out from RocketMQ's source."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.allocation.registry import find_strategy
from planner.errors import BadInputError, UnknownNameError
from planner.model.queues import MessageQueue
from planner.simulation.candidates import candidate_counts, check_comparable, simulate_candidate
from planner.simulation.counts import largest_share, useful_counts
from planner.simulation.moves import MoveRange, common_queues, move_range
from tests.builders import clients, queues, snapshot

POSITIONAL = ("AVG", "AVG_BY_CIRCLE")


def test_useful_counts_of_one_topic() -> None:
    assert useful_counts((16,), 1, 20) == (1, 2, 3, 4, 6, 8, 16)


def test_useful_counts_of_two_topics_are_those_that_help_either() -> None:
    assert useful_counts((16, 6), 1, 16) == (1, 2, 3, 4, 6, 8, 16)
    assert useful_counts((8, 5), 1, 10) == (1, 2, 3, 4, 5, 8)


def test_the_lowest_allowed_count_is_always_a_candidate() -> None:
    assert useful_counts((16,), 5, 7) == (5, 6)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 50))
def test_useful_counts_are_exactly_where_the_largest_share_falls(sizes: list[int], highest: int) -> None:
    shares = [largest_share(sizes, count) for count in range(1, highest + 1)]
    falls = [number + 2 for number, (before, after) in enumerate(pairwise(shares)) if after < before]
    assert useful_counts(sizes, 1, highest) == (1, *falls)


def moves(strategy: str, sizes: list[int], before: int, after: int) -> MoveRange:
    chosen = find_strategy(strategy)
    topics = [queues(f"t{number}", ("b",), size) for number, size in enumerate(sizes)]
    old = [chosen.owners(topic, clients(before)) for topic in topics]
    new = [chosen.owners(topic, clients(after)) for topic in topics]
    return move_range(common_queues(old, new, before, after), sum(sizes))


def brute_force(strategy: str, sizes: list[int], before: int, after: int) -> tuple[int, int]:
    """Try every position that the members of the smaller list can take in the larger one."""
    chosen = find_strategy(strategy)
    found = []
    for positions in combinations(range(max(before, after)), min(before, after)):
        moved = 0
        for number, size in enumerate(sizes):
            topic = queues(f"t{number}", ("b",), size)
            old, new = chosen.owners(topic, clients(before)), chosen.owners(topic, clients(after))
            smaller, larger = (old, new) if before <= after else (new, old)
            moved += int(np.sum(np.asarray(positions)[smaller] != larger))
        found.append(moved)
    return min(found), max(found)


# rocketmq.md 2.8: 16 queues, a member joins or leaves at either end of the order.
@pytest.mark.parametrize(
    ("strategy", "after", "at_one_end", "at_other_end"),
    [("AVG", 5, 6, 10), ("AVG_BY_CIRCLE", 5, 12, 16), ("AVG", 3, 7, 9), ("AVG_BY_CIRCLE", 3, 10, 13)],
)
def test_published_moves_of_16_queues_and_4_members(
    strategy: str, after: int, at_one_end: int, at_other_end: int
) -> None:
    found = moves(strategy, [16], 4, after)
    assert found.fewest <= at_one_end <= at_other_end <= found.most
    assert (found.fewest, found.most) == brute_force(strategy, [16], 4, after)


@given(
    st.sampled_from(POSITIONAL),
    st.lists(st.integers(0, 14), min_size=1, max_size=3),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_the_range_of_moves_is_that_of_trying_every_position(
    strategy: str, sizes: list[int], before: int, after: int
) -> None:
    found = moves(strategy, sizes, before, after)
    assert (found.fewest, found.most) == brute_force(strategy, sizes, before, after)


@given(st.sampled_from(POSITIONAL), st.integers(1, 30), st.integers(1, 8))
def test_nothing_moves_when_nothing_changes(strategy: str, size: int, members: int) -> None:
    found = moves(strategy, [size], members, members)
    assert (found.fewest, found.most) == (0, 0)


def test_survivors_named_for_the_fewest_moves_do_move_the_fewest() -> None:
    taken = snapshot(clients=clients(5))
    outcome = simulate_candidate(taken, 3, "AVG")
    before = {state.queue: state.owner for state in taken.queues}
    moved = sum(before[owned.queue] != owned.owner for owned in outcome.owners)
    assert moved == outcome.moved_fewest


def test_load_is_summed_over_topics_at_the_upper_rate() -> None:
    both = (*queues("a", ("b",), 2), *queues("z", ("b",), 2))
    outcome = simulate_candidate(snapshot(both, clients(4), capacity=100.0), 4, "AVG")
    # TopicX and TopicY with 2 queues each and 4 consumers: 2, 2, 0, 0 (rocketmq.md 4.2). Upper rate is 12 a queue.
    assert [load.queues for load in outcome.loads] == [2, 2, 0, 0]
    assert [load.arrival_rate for load in outcome.loads] == [24.0, 24.0, 0.0, 0.0]
    assert outcome.utilisation == 0.24


def test_backlog_drains_at_spare_capacity() -> None:
    one = queues("a", ("b",), 1)
    outcome = simulate_candidate(snapshot(one, clients(1), lags={one[0]: 880}, capacity=100.0), 1, "AVG")
    assert (outcome.wait_s, outcome.drain_s, outcome.keeps_up) == (8.8, 10.0, True)


def test_a_consumer_that_does_not_keep_up_never_drains() -> None:
    one = queues("a", ("b",), 1)
    outcome = simulate_candidate(snapshot(one, clients(1), rates={one[0]: 100.0}, capacity=100.0), 1, "AVG")
    assert (outcome.keeps_up, outcome.drain_s, outcome.utilisation) == (False, None, 1.2)


def test_unknown_capacity_and_rates_stay_unknown() -> None:
    without_capacity = simulate_candidate(snapshot(capacity=None), 3, "AVG")
    assert (without_capacity.utilisation, without_capacity.keeps_up, without_capacity.wait_s) == (None, None, None)
    taken = snapshot()
    without_rate = snapshot(rates={taken.queues[0].queue: None})
    assert simulate_candidate(without_rate, 3, "AVG").utilisation is None


def test_the_hot_queue_bounds_what_any_count_can_do() -> None:
    hot = MessageQueue("orders", "broker-b", 5)
    outcome = simulate_candidate(snapshot(rates={hot: 60.0}, capacity=100.0), 16, "AVG")
    assert (outcome.hot_queue, outcome.hot_utilisation, outcome.utilisation) == (hot, 0.72, 0.72)


def test_retry_queues_do_not_take_part() -> None:
    retry = MessageQueue("%RETRY%billing", "broker-a", 0)
    outcome = simulate_candidate(snapshot((*queues(), retry)), 3, "AVG")
    assert retry not in {owned.queue for owned in outcome.owners}


def test_candidates_are_the_useful_counts_and_the_present_one() -> None:
    assert candidate_counts(snapshot(clients=clients(5)), 1, 16) == (1, 2, 3, 4, 5, 6, 8, 16)
    assert simulate_candidate(snapshot(clients=clients(5)), 5, "AVG").is_useful is False


def test_other_strategies_move_queues_even_at_the_present_count() -> None:
    taken = snapshot()
    assert simulate_candidate(taken, 3, "AVG").moved_most == 0
    circle = simulate_candidate(taken, 3, "AVG_BY_CIRCLE")
    assert circle.moved_fewest == circle.moved_most == 10
    assert not circle.is_current


def test_what_cannot_be_simulated_is_refused_by_name() -> None:
    with pytest.raises(BadInputError, match="no consumers"):
        check_comparable(snapshot(clients=()))
    with pytest.raises(BadInputError, match="no queues"):
        check_comparable(replace(snapshot(), queues=()))
    with pytest.raises(BadInputError, match="count 0"):
        simulate_candidate(snapshot(), 0, "AVG")
    with pytest.raises(UnknownNameError, match="AVG_BY_CIRCLE"):
        simulate_candidate(snapshot(), 3, "AVG_BY_SQUARE")
