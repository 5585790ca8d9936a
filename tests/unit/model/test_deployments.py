"""Kubernetes facts that are computed here."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Ordinals, UpdateStrategy
from tests.unit.workload.builders import deployment


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "limits"),
    [
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 3, (1, 0)),
        ("25%", "25%", 1, (1, 0)),
        ("25%", "25%", 0, (0, 1)),
        ("0%", "25%", 3, (0, 1)),
        ("0", "10%", 5, (0, 1)),
        ("0", "3", 5, (0, 3)),
        ("100%", "0", 7, (7, 0)),
        ("29%", "29%", 100, (29, 29)),
        ("150%", "0", 3, (5, 0)),
    ],
)
def test_limits_of_an_update(surge: str, unavailable: str, replicas: int, limits: tuple[int, int]) -> None:
    assert UpdateStrategy("RollingUpdate", surge, unavailable).limits(replicas) == limits


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 5_000))
def test_an_update_can_always_move(surge: int, unavailable: int, replicas: int) -> None:
    above, below = UpdateStrategy("RollingUpdate", f"{surge}%", f"{unavailable}%").limits(replicas) or (0, 0)
    assert above + below > 0
    assert above - 1 < surge * replicas / 100 <= above
    assert below <= max(1, unavailable * replicas / 100)


def test_recreate_has_no_limits() -> None:
    assert UpdateStrategy("Recreate").limits(5) is None


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="a time with its zone"):
        deployment(at=datetime(2026, 11, 21))  # noqa: DTZ001  that is the point


def test_paused_autoscalers_leave_the_count_alone() -> None:
    busy, paused = Autoscaler("ScaledObject", "a", 1, 9), Autoscaler("ScaledObject", "b", 1, 9, is_paused=True)
    assert deployment(autoscalers=(busy, paused)).active_autoscalers == (busy,)
    assert deployment(autoscalers=None).active_autoscalers is None


def test_the_limits_are_those_of_its_replicas() -> None:
    assert deployment(replicas=10).update_limits == (3, 2)


def test_which_pods_a_stateful_set_has_at_a_count() -> None:
    app = deployment(ordinals=Ordinals(first=3))
    names = [f"{app.name}-{number}" for number in (2, 3, 4, 5)]
    assert app.pod_names(2) == (names[1], names[2])
    assert app.pod_names(3, beyond=2) == (names[3],)
    stays = [name for name in (*names, "other-3", f"{app.name}-03") if app.stays(name, 2)]
    assert stays == [names[1], names[2]]
