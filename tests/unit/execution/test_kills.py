"""Whatever is killed, and at whichever request: the plan ends in the new state or in the old one."""

import random
from collections.abc import Callable, Iterator

import pytest

from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.execution.reconcile import Outcome, run_reconcile
from tests.unit.execution.fake import FakeCluster
from tests.unit.execution.worlds import (
    SCENARIOS,
    Chaos,
    Scenario,
    counts,
    drive,
    is_old,
    ports,
    twice,
    untouched,
    wanted,
    world,
)

pytestmark = pytest.mark.slow

BY_NAME = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario[0])


def whole(scenario: Scenario) -> Chaos:
    """Return the run that nobody disturbs."""
    chaos = Chaos(world(scenario))
    chaos.run()
    return chaos


def kills(chaos: Chaos, first: int = 1) -> Iterator[float]:
    """Yield every way to die in such a run: before each request, and right after each that changes something."""
    for number, what in enumerate(chaos.asked[first - 1 :], start=first):
        yield number
        if not what.startswith(("read", "look")):
            yield number + 0.5


def aborts(cluster: FakeCluster) -> Callable[[], None]:
    """Return what has a person abort the plan."""
    return lambda: cluster.ask("plan-1", abort=True)


def check(cluster: FakeCluster, scenario: Scenario) -> RolloutStatus:
    """Whatever happened: no harm was done, and what the status says is so."""
    _, before, after, _ = scenario
    status = cluster.status("plan-1")
    assert cluster.lowest_ready is not None
    assert cluster.lowest_ready >= min(before, after), status
    assert not twice(cluster), cluster.touched
    assert untouched(cluster), status
    if status.ended == "new":
        assert status.phase is Phase.SUCCEEDED
        assert counts(cluster) == wanted(scenario)
    else:
        assert status.phase in (Phase.ROLLED_BACK, Phase.REFUSED)
        assert status.ended == ("old" if status.phase is Phase.ROLLED_BACK else "nothing")
        assert is_old(cluster), status
    return status


@BY_NAME
def test_an_executor_killed_at_any_request_is_followed_by_one_that_finishes(scenario: Scenario) -> None:
    for kill in kills(whole(scenario)):
        chaos = Chaos(world(scenario), kills=frozenset({kill}))
        chaos.run()
        assert check(chaos.cluster, scenario).ended == "new", kill


@BY_NAME
def test_an_abort_at_any_request_ends_old_or_new_and_says_which(scenario: Scenario) -> None:
    ended = set()
    for at in range(1, whole(scenario).requests + 1):
        cluster = world(scenario)
        Chaos(cluster, happens={at: aborts(cluster)}).run()
        ended.add(check(cluster, scenario).ended)
    assert ended == {"nothing", "old", "new"}


@BY_NAME
def test_an_executor_killed_at_any_request_of_the_way_back_is_followed_by_one_that_finishes(scenario: Scenario) -> None:
    at = whole(scenario).requests * 3 // 4
    cluster = world(scenario)
    aborted = Chaos(cluster, happens={at: aborts(cluster)})
    aborted.run()
    for kill in kills(aborted, first=at):
        cluster = world(scenario)
        Chaos(cluster, kills=frozenset({kill}), happens={at: aborts(cluster)}).run()
        assert check(cluster, scenario).ended == "old", kill


@pytest.mark.parametrize("seed", range(40))
def test_three_kills_and_an_abort_at_random_requests(seed: int) -> None:
    chance = random.Random(seed)
    scenario = chance.choice(SCENARIOS)
    cluster = world(scenario)
    dies = frozenset(chance.randint(2, 300) / 2 for _ in range(3))
    Chaos(cluster, kills=dies, happens={chance.randint(1, 200): aborts(cluster)}).run()
    check(cluster, scenario)


def wakes_after(cluster: FakeCluster, chance: random.Random) -> Callable[[], None]:
    """Return what has an executor stand still past its lease, or nearly, while others go on with its plan."""

    def others_go_on() -> None:
        cluster.advance(chance.choice((3.0, 19.0, 31.0, 60.0)))
        for _ in range(chance.choice((1, 5, 20, 60))):
            if run_reconcile(ports(cluster), "plan-1", "other").outcome is Outcome.DONE:
                return
            cluster.advance(1.0)

    return others_go_on


@pytest.mark.parametrize("seed", range(40))
def test_an_executor_that_stood_still_past_its_lease_does_no_harm_when_it_wakes(seed: int) -> None:
    """At any request, once or twice, beside a kill and an abort."""
    chance = random.Random(seed)
    scenario = chance.choice(SCENARIOS)
    cluster = world(scenario)
    happens = {chance.randint(1, 150): wakes_after(cluster, chance) for _ in range(2)}
    happens[chance.randint(1, 200)] = aborts(cluster)
    Chaos(cluster, kills=frozenset({chance.randint(2, 300) / 2}), happens=happens).run()
    check(cluster, scenario)


def others_finish(cluster: FakeCluster, is_aborted: bool) -> Callable[[], None]:
    """Return what has an executor stand still until another one has brought its plan to the end."""

    def finish() -> None:
        if is_aborted:
            cluster.ask("plan-1", abort=True)
        cluster.advance(31.0)
        drive(cluster, "other")

    return finish


@BY_NAME
@pytest.mark.parametrize("is_aborted", [False, True], ids=["carried out", "undone"])
def test_a_request_that_reaches_the_server_once_the_plan_is_over_changes_nothing(
    scenario: Scenario, is_aborted: bool
) -> None:
    """An executor checks its lease, is suspended before its request, and wakes when all is done: at each write."""
    writes = [at for at, what in enumerate(whole(scenario).asked, start=1) if not what.startswith(("read", "look"))]
    for at in writes:
        cluster = world(scenario)
        Chaos(cluster, happens={at: others_finish(cluster, is_aborted)}).run()
        status = check(cluster, scenario)
        assert is_aborted or status.ended == "new", at
