"""Executors that are killed and everything else that goes wrong, on a real API server: ``make faults`` does more of it.

All cases run at once, as nearly all of their time is waiting; each test then looks at one of them.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.clusters.kubernetes import ControlPlane
from tests.faults import kills
from tests.faults.kills import Case
from tests.faults.observer import Observer
from tests.faults.place import install_definitions
from tests.faults.scenarios import SCENARIOS, Outcome, Scenario, api_server_away, carry_out, check

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

SEEDS = range(10)
AT_ONCE = 6
AWAY_S = 8.0


@dataclass(frozen=True)
class Running:
    """All cases, which run or have run."""

    killed: dict[int, Future[Case]]
    scenarios: dict[str, Future[Outcome]]
    cluster: ControlPlane
    observer: Observer


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A control plane of our own, as its API server is stopped at the end."""
    folder = tmp_path_factory.mktemp("faults")
    with ControlPlane.start() as cluster:
        install_definitions(cluster)
        with Observer(cluster) as observer, ThreadPoolExecutor(AT_ONCE) as pool:
            scenarios = {one.name: pool.submit(carry_out, cluster, observer, folder, one) for one in SCENARIOS}
            killed = {seed: pool.submit(kills.run, cluster, observer, folder, seed) for seed in SEEDS}
            yield Running(killed, scenarios, cluster, observer)
            pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_executor_is_followed_by_one_that_ends_old_or_new(running: Running, seed: int) -> None:
    case = running.killed[seed].result()
    print(case)
    assert not case.faults, case


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_what_goes_wrong_comes_to_its_named_end(running: Running, scenario: Scenario) -> None:
    check(scenario, running.scenarios[scenario.name].result())


def test_executors_were_killed_at_many_places(running: Running) -> None:
    died = {one for future in running.killed.values() for one in future.result().deaths}
    assert len(died) >= 5, died


def test_an_api_server_that_is_away_for_a_while_only_makes_the_plan_wait(
    running: Running, tmp_path_factory: pytest.TempPathFactory
) -> None:
    others: list[Future[Case] | Future[Outcome]] = [*running.killed.values(), *running.scenarios.values()]
    for other in others:
        other.exception()  # nobody else may need the server meanwhile
    scenario = api_server_away(AWAY_S)
    check(scenario, carry_out(running.cluster, running.observer, tmp_path_factory.mktemp("away"), scenario))
