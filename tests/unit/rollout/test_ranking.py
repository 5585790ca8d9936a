"""The order in which a ReplicaSet stops pods, rule by rule."""

from datetime import timedelta
from typing import Any

import pytest

from planner.rollout.ranking import stop_order
from tests.builders import AT
from tests.unit.workload.builders import pod

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def order(**facts: dict[str, Any]) -> str:
    """Return the pods' names in the order in which they would be stopped."""
    return " ".join(one.name for one in stop_order([pod(name, **known) for name, known in facts.items()], AT))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"node": None, "deletion_cost": 9}, {"phase": "Pending", "is_ready": False}),
        ({"phase": "Pending", "is_ready": False}, {"phase": "Unknown", "is_ready": False, "deletion_cost": -1}),
        ({"phase": "Unknown", "is_ready": False}, {"is_ready": False, "deletion_cost": -1}),
        ({"is_ready": False, "deletion_cost": 5}, {"deletion_cost": -5}),
        ({"deletion_cost": -1, "ready_at": AT - DAY}, {"ready_at": AT - HOUR}),
        ({"ready_at": AT - HOUR}, {"ready_at": AT - DAY, "restarts": 7}),
        (
            {"ready_at": AT - DAY, "restarts": 1, "created_at": AT - 2 * DAY},
            {"ready_at": AT - DAY, "created_at": AT - HOUR},
        ),
        ({"created_at": AT - HOUR}, {"created_at": AT - DAY}),
    ],
)
def test_the_first_rule_that_tells_two_pods_apart_decides(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert order(b=first, a=second) == "b a"
    assert order(a=first, b=second) == "a b"


def test_crowded_nodes_go_first_before_age_counts() -> None:
    assert order(
        old={"node": "n2", "ready_at": AT - DAY}, older={"node": "n2", "ready_at": AT - 9 * DAY}, new={"ready_at": AT}
    ) == ("old older new")


def test_ages_of_one_power_of_two_are_told_apart_by_uid_alone() -> None:
    # 20 000 s and 30 000 s lie between the same powers of two of nanoseconds: the older one goes first here.
    assert (
        order(a={"ready_at": AT - timedelta(seconds=30_000)}, b={"ready_at": AT - timedelta(seconds=20_000)}) == "a b"
    )


def test_pods_that_are_over_or_ending_are_left_out() -> None:
    assert order(a={"phase": "Succeeded"}, b={"is_ending": True}, c={}) == "c"
