"""The steps of a Deployment's rolling update: what its controller allows, and what the API server refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.documents.forecast.common import read_rolling
from planner.errors import BadInputError
from planner.forecast.common.rolling_update import Rolling


def steps(replicas: int, **settings: Any) -> list[tuple[float, int, int]]:
    found = read_rolling({"ready_s": 10, **settings}, replicas)
    return [(step.at_s, step.starts, step.stops) for step in found.steps]


def test_one_new_pod_for_one_old_one() -> None:
    found = steps(3, max_surge=1, max_unavailable=0)
    assert found == [(0, 1, 0), (10, 0, 1), (10, 1, 0), (20, 0, 1), (20, 1, 0), (30, 0, 1)]


def test_the_old_pod_goes_first_where_none_may_be_added() -> None:
    assert steps(2, max_surge=0, max_unavailable=1) == [(0, 0, 1), (0, 1, 0), (10, 0, 1), (10, 1, 0)]


def test_kubernetes_own_example() -> None:
    """Ten replicas, 2 unavailable, surge 3: the new set gets 3, the old one shrinks to 8, the new one grows to 5."""
    assert steps(10, max_surge=3, max_unavailable=2)[:2] == [(0, 3, 2), (0, 2, 0)]


def test_shares_are_rounded_up_and_down() -> None:
    """A quarter of five pods: two more, one less."""
    assert steps(5)[:2] == [(0, 2, 1), (0, 1, 0)]
    assert read_rolling({"ready_s": 1, "max_surge": "0%", "max_unavailable": "10%"}, 3).unavailable == 1


def test_a_pod_counts_when_it_has_been_ready_for_long_enough() -> None:
    assert steps(1, max_surge=1, max_unavailable=0, min_ready_s=5) == [(0, 1, 0), (15, 0, 1)]


def test_clients_start_in_their_pods() -> None:
    found = read_rolling({"ready_s": 10, "start_s": 4, "max_surge": 1, "max_unavailable": 0}, 2)
    assert list(found.clients_start_s) == [4, 14]
    assert list(found.pods_stop_s) == [10, 20]


@given(
    st.builds(
        Rolling,
        replicas=st.integers(1, 40),
        surge=st.integers(1, 50),
        unavailable=st.integers(0, 40),
        start_s=st.just(0.0),
        ready_s=st.floats(0, 100),
        min_ready_s=st.floats(0, 100),
        grace_s=st.just(30.0),
    )
)
def test_never_too_many_pods_and_never_too_few(rolling: Rolling) -> None:
    old, created = rolling.replicas, list[float]()
    for step in rolling.steps:
        old -= step.stops
        created += [step.at_s] * step.starts
        assert old + len(created) <= rolling.replicas + rolling.surge
        available = sum(at + rolling.available_s <= step.at_s for at in created)
        assert old + available >= rolling.replicas - rolling.unavailable or not step.stops
    assert (old, len(created)) == (0, rolling.replicas)
    assert len(rolling.pods_stop_s) == len(rolling.clients_start_s) == rolling.replicas


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_surge": 0, "max_unavailable": 0}, "at least one of them"),
        ({"max_surge": "0%", "max_unavailable": 0}, "at least one of them"),
        ({"max_surge": -1}, "change.max_surge: found -1"),
        ({"max_surge": 1.5}, "change.max_surge: found 1.5"),
        ({"max_surge": "a lot"}, "change.max_surge: found"),
        ({"max_unavailable": "101%"}, '"100%"'),
        ({"max_unavailable": True}, "change.max_unavailable: found true"),
        ({"ready_s": float("nan")}, "change.ready_s: found NaN"),
        ({"start_s": 11}, "at most ready_s (10)"),
        ({"grace_s": -1}, "change.grace_s: found -1"),
    ],
)
def test_what_the_api_server_refuses(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        steps(4, **settings)
    assert words in str(caught.value)


def test_how_long_a_pod_takes_must_be_said() -> None:
    with pytest.raises(BadInputError, match=r"change\.ready_s: missing"):
        read_rolling({}, 3)
