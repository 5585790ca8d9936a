"""Whatever is killed, and at whichever request: the plan ends in the new state or in the old one."""

import random

import pytest

from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from tests.unit.execution.fake import FakeCluster
from tests.unit.execution.worlds import (
    DEPLOYMENT,
    GREEN,
    SCENARIOS,
    Chaos,
    Scenario,
    is_old,
    twice,
    untouched,
    world,
)

BY_NAME = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario[0])


def requests(scenario: Scenario, **abort: bool) -> int:
    chaos = Chaos(world(scenario))
    if abort:
        chaos.cluster.ask("plan-1", **abort)
    chaos.run()
    return chaos.requests


def check(cluster: FakeCluster, scenario: Scenario) -> RolloutStatus:
    """Whatever happened: no harm was done, and what the status says is so."""
    name, before, after, _ = scenario
    status = cluster.status("plan-1")
    assert cluster.lowest_ready is not None
    assert cluster.lowest_ready >= min(before, after), status
    assert not twice(cluster), cluster.touched
    assert untouched(cluster), status
    if status.ended == "new":
        assert status.phase is Phase.SUCCEEDED
        assert cluster.deployments[GREEN if name == "blue_green" else DEPLOYMENT].replicas == after
    else:
        assert status.phase in (Phase.ROLLED_BACK, Phase.REFUSED)
        assert status.ended == ("old" if status.phase is Phase.ROLLED_BACK else "nothing")
        assert is_old(cluster, before), status
    return status


@BY_NAME
def test_an_executor_killed_at_any_request_is_followed_by_one_that_finishes(scenario: Scenario) -> None:
    last = requests(scenario)
    for at in range(1, last + 1):
        for kill in (at, at + 0.5):
            chaos = Chaos(world(scenario), kills=frozenset({kill}))
            chaos.run()
            assert check(chaos.cluster, scenario).ended == "new", kill


@BY_NAME
def test_an_abort_at_any_request_ends_old_or_new_and_says_which(scenario: Scenario) -> None:
    ended = set()
    for at in range(1, requests(scenario) + 1):
        cluster = world(scenario)
        Chaos(cluster, happens={at: lambda cluster=cluster: cluster.ask("plan-1", abort=True)}).run()  # type: ignore[misc]
        ended.add(check(cluster, scenario).ended)
    assert ended == {"nothing", "old", "new"}


@BY_NAME
def test_an_executor_killed_at_any_request_of_the_way_back_is_followed_by_one_that_finishes(scenario: Scenario) -> None:
    at = requests(scenario) * 3 // 4
    cluster = world(scenario)
    whole = Chaos(cluster, happens={at: lambda: cluster.ask("plan-1", abort=True)})
    whole.run()
    for number in range(at, whole.requests + 1):
        for kill in (number, number + 0.5):
            cluster = world(scenario)
            happens = {at: lambda cluster=cluster: cluster.ask("plan-1", abort=True)}
            Chaos(cluster, kills=frozenset({kill}), happens=happens).run()  # type: ignore[arg-type]
            assert check(cluster, scenario).ended == "old", kill


@pytest.mark.parametrize("seed", range(300))
def test_three_kills_and_an_abort_at_random_requests(seed: int) -> None:
    chance = random.Random(seed)
    scenario = chance.choice(SCENARIOS)
    cluster = world(scenario)
    kills = frozenset(chance.randint(2, 300) / 2 for _ in range(3))
    happens = {chance.randint(1, 200): lambda: cluster.ask("plan-1", abort=True)}
    Chaos(cluster, kills=kills, happens=happens).run()
    check(cluster, scenario)
