"""Executors that are killed and everything else that goes wrong, on a real API server: ``make faults`` does more of it.

Cases of a kind run at once, as nearly all of their time is waiting; each test then looks at one of them. All have ended
before the first test does: between tests pytest changes the environment, which the cases' threads read.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

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
_Key = TypeVar("_Key")
_Ended = TypeVar("_Ended")


@dataclass(frozen=True)
class Place:
    """Where cases run: a control plane of their own, as its API server is stopped at the end."""

    cluster: ControlPlane
    observer: Observer
    folder: Path

    def all_at_once(self, run: Callable[[_Key], _Ended], keys: Iterable[_Key]) -> dict[_Key, Future[_Ended]]:
        """Return how each case has ended."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return {key: pool.submit(run, key) for key in keys}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with ControlPlane.start() as cluster:
        install_definitions(cluster)
        with Observer(cluster) as observer:
            yield Place(cluster, observer, tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def killed(place: Place) -> dict[int, Future[Case]]:
    return place.all_at_once(lambda seed: kills.run(place.cluster, place.observer, place.folder, seed), SEEDS)


@pytest.fixture(scope="module")
def scenarios(place: Place) -> dict[str, Future[Outcome]]:
    found = {one.name: one for one in SCENARIOS}
    return place.all_at_once(lambda name: carry_out(place.cluster, place.observer, place.folder, found[name]), found)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_executor_is_followed_by_one_that_ends_old_or_new(killed: dict[int, Future[Case]], seed: int) -> None:
    case = killed[seed].result()
    print(case)
    assert not case.faults, case


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_what_goes_wrong_comes_to_its_named_end(scenarios: dict[str, Future[Outcome]], scenario: Scenario) -> None:
    check(scenario, scenarios[scenario.name].result())


def test_executors_were_killed_at_many_places(killed: dict[int, Future[Case]]) -> None:
    died = {one for future in killed.values() for one in future.result().deaths}
    assert len(died) >= 5, died


def test_an_api_server_that_is_away_for_a_while_only_makes_the_plan_wait(place: Place, tmp_path: Path) -> None:
    scenario = api_server_away(AWAY_S)
    check(scenario, carry_out(place.cluster, place.observer, tmp_path, scenario))
