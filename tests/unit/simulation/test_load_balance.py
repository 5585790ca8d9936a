"""Balance figures, and the head-heavy tilt of many small topics."""

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.model.queues import MessageQueue
from planner.simulation.balance import Balance, balance


def test_balance_of_four() -> None:
    assert balance([4, 4, 0, 0]) == Balance(consumers=4, least=0, mean=2, most=4, imbalance=2, idle=2)


def test_nothing_is_even() -> None:
    assert balance([]).imbalance == 1
    assert balance([0, 0]).imbalance == 1


@pytest.mark.parametrize(
    ("topics", "queues", "clients", "loads"),
    [(2, 2, 4, [2, 2, 0, 0]), (10, 4, 6, [10, 10, 10, 10, 0, 0]), (3, 10, 4, [9, 9, 6, 6])],
)
def test_many_topics_tilt_to_the_first_ids(topics: int, queues: int, clients: int, loads: list[int]) -> None:
    """rocketmq.md 4.2."""
    everything = [MessageQueue(f"t{topic}", "b", number) for topic in range(topics) for number in range(queues)]
    found = allocate_group(find_strategy("AVG"), everything, [f"c{number}" for number in range(clients)])
    assert [len(owned) for owned in found.answer().values()] == loads
