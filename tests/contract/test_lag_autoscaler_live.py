"""A real HPA driven by lag against the rule of it that ``planner backtest`` plays."""

import time

import pytest

from planner.backtest.policies.hpa import external_average
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.soak.lag_autoscaler import LagTrigger, lag_driven

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_200)]

TARGET, THRESHOLD, LOWEST, HIGHEST = "consumer", 100.0, 2, 10
QUEUES = 12
SYNCS_S = 7.0
"""Three looks of the HPA: whoever does not change anything then never will."""

PATIENT_S = 300.0
LAGS = (
    310.0,  # up
    430.0,  # 7 % above what four pods may have: nothing
    450.0,  # 12 % above: up
    1_900.0,  # more than the queues allow, and more pods than it may start
    1_090.0,  # 9 % above what ten may have
    640.0,  # down
    0.0,  # as far down as it may
)


def test_the_rule_that_is_played_is_the_rule_of_the_real_one(control_plane: ControlPlane) -> None:
    """Red where tolerance, rounding, bounds or KEDA's cap by the queues are others than in the backtest."""
    namespace = control_plane.namespace()
    control_plane.apply(deployment(TARGET, LOWEST), namespace=namespace)
    control_plane.await_available(namespace, TARGET)
    waiting = [0.0] * QUEUES
    trigger = LagTrigger(TARGET, lambda: list(waiting), THRESHOLD, window_s=0.0)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{TARGET}"
    came_to, expected, count = [], [], LOWEST
    with lag_driven(control_plane, namespace, [trigger], LOWEST, HIGHEST):
        for lag in LAGS:
            waiting[:] = [lag / QUEUES] * QUEUES
            proposal = external_average(trigger.metric(), THRESHOLD, count, count)
            count = max(LOWEST, min(proposal, HIGHEST))
            expected.append(count)
            came_to.append(_count_after(control_plane, path, count))
    assert came_to == expected
    assert len(set(expected)) > 3


def _count_after(control_plane: ControlPlane, path: str, expected: int) -> int:
    """Return the replicas once they are as expected, or patience has ended, and have stayed for some looks."""
    deadline = time.monotonic() + PATIENT_S
    while _replicas(control_plane, path) != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    control_plane.await_available(*_names(path))
    time.sleep(SYNCS_S)
    return _replicas(control_plane, path)


def _names(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return parts[-3], parts[-1]


def _replicas(control_plane: ControlPlane, path: str) -> int:
    return int(control_plane.rest.get(path)["spec"]["replicas"])
