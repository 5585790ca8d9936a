"""S9 and 1.12: the random assignor has distributions, not results."""

import numpy as np

from planner.allocation.kafka import Topics, equal_group
from planner.allocation.kafka.random_assignor import random_owners
from tests.allocations import assign
from tests.unit.allocation.kafka.worked import member, request

DRAWS = 20_000


def test_the_same_seed_draws_the_same_and_the_answer_says_that_it_is_chance() -> None:
    document = request("random", {"t1": 40}, *(member(f"c{n}", "t1") for n in range(3)), seed=7)
    assert assign(document) == assign(document)
    assert assign(document)["deterministic"] is False
    assert "draws lots" in assign(document)["warnings"][0]
    assert assign({**document, "options": {"seed": 8}})["assignments"] != assign(document)["assignments"]


def test_a_lone_subscriber_gets_all() -> None:
    answer = assign(request("random", {"t1": 3}, member("c0", "t1"), member("c1", "")))
    assert answer["assignments"] == {"c0": [("t1", 0), ("t1", 1), ("t1", 2)], "c1": []}
    assert answer["deterministic"] is True


def test_distribution_of_4_partitions_over_3_members() -> None:
    """One given member idle 16/81, somebody idle 45/81, 2/1/1 split 36/81, maximum 192/81, moves 8/3."""
    group = equal_group(Topics((4,)), 3)
    owners = np.array([random_owners(group, seed).owners for seed in range(DRAWS)])
    loads = np.array([np.bincount(one, minlength=3) for one in owners])
    assert abs((loads[:, 0] == 0).mean() - 16 / 81) < 0.015
    assert abs((loads == 0).any(axis=1).mean() - 45 / 81) < 0.015
    assert abs((loads.max(axis=1) == 2).mean() - 36 / 81 - 18 / 81) < 0.015
    assert abs((np.sort(loads)[:, 1] == 1).mean() - 36 / 81 - 24 / 81) < 0.015
    assert abs(loads.max(axis=1).mean() - 192 / 81) < 0.03
    assert abs((owners[1:] != owners[:-1]).sum(axis=1).mean() - 8 / 3) < 0.03
