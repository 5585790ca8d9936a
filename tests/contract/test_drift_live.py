"""Forty single changes between planning and applying, on a real API server; ``make faults`` makes 200."""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from planner.deployments.api import RolloutApi
from tests.clusters.kubernetes import ControlPlane
from tests.faults.drifts import CHANGES, Drifted, run

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

SEEDS = range(40)
AT_ONCE = 6


@pytest.fixture(scope="module")
def drifted(
    control_plane_with_plans: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Future[Drifted]]:
    """All cases, which have ended: between tests pytest changes the environment, which the cases' threads read."""
    folder = tmp_path_factory.mktemp("drift")
    with RolloutApi.connect(control_plane_with_plans.kubeconfig) as api, ThreadPoolExecutor(AT_ONCE) as pool:
        return {seed: pool.submit(run, control_plane_with_plans, api, folder, seed) for seed in SEEDS}


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed}-{CHANGES[seed % len(CHANGES)][0].__name__}")
def test_what_changed_since_is_named_and_nothing_is_carried_out(drifted: dict[int, Future[Drifted]], seed: int) -> None:
    found = drifted[seed].result()
    assert not found.wrong, found
