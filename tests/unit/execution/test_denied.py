"""An effect that the server answers and does not have is never tried for ever: each plan still comes to a named end."""

from collections.abc import Callable

import pytest

from planner.errors import OutOfReachError
from planner.execution.denied import TIDY_S
from planner.execution.effects import DropClaim, Effect, MarkPods, RestoreTemplate, SetClaim, SetReplicas, SetTemplate
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, DeniedError, ImpossibleError
from planner.execution.progress import RolloutStatus
from tests.unit.execution.fake import FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, LIMIT_S, SCENARIOS, drive, is_old, ports, untouched, world

UP, DOWN, RENEWED, BLUE_GREEN, MOVED, *_ = SCENARIOS
STORM = ConflictError("the object has been modified")
FORBIDDEN = DeniedError("a quota stands against it")
GONE = ImpossibleError("no template of revision 1 any more")


def deny(cluster: FakeCluster, effect: type[Effect], error: OutOfReachError) -> None:
    cluster.faults.denied[effect] = error


def aborted(cluster: FakeCluster, finished: int, then: Callable[[], None] = lambda: None) -> RolloutStatus:
    """Drive the plan, have it aborted once so many steps are finished, and something happen with that."""

    def meanwhile(_: int) -> None:
        if cluster.status("plan-1").step >= finished and not cluster.plans["plan-1"].requests.abort:
            cluster.ask("plan-1", abort=True)
            then()

    drive(cluster, meanwhile=meanwhile)
    return cluster.status("plan-1")


def outlived(then: Callable[[FakeCluster], None]) -> tuple[RolloutStatus, FakeCluster]:
    """Drive a plan to its end in which another pod stops than was marked, and something happens with that."""
    cluster = world(DOWN)
    other = cluster.live(DEPLOYMENT)[4]

    def falls_over(what: str) -> None:
        if what == "perform SetReplicas":
            cluster.crash(other, 3.0)
            then(cluster)

    drive(cluster, through=ports(cluster, falls_over))
    return cluster.status("plan-1"), cluster


def test_an_old_template_that_is_gone_leaves_the_plan_stuck_at_once() -> None:
    cluster = world(RENEWED)
    status = aborted(cluster, 1, lambda: deny(cluster, RestoreTemplate, GONE))
    assert (status.phase, status.ended) == (Phase.STUCK, "between")
    assert status.message == f"step 1 cannot be undone: {GONE}: a person must look"
    assert cluster.deployments[DEPLOYMENT].claim is not None, "no other plan may go on from between two states"


@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
@pytest.mark.parametrize(("scenario", "finished"), [(UP, 1), (DOWN, 2), (RENEWED, 1), (BLUE_GREEN, 2)])
def test_an_undo_that_is_refused_again_and_again_leaves_the_plan_stuck_after_its_limit(
    scenario: tuple[str, int, int, Callable[[FakeCluster], tuple[object, ...]]],
    finished: int,
    error: OutOfReachError,
) -> None:
    cluster = world(scenario)  # type: ignore[arg-type]

    def refuse() -> None:
        deny(cluster, SetReplicas, error)
        deny(cluster, RestoreTemplate, error)

    status = aborted(cluster, finished, refuse)
    assert (status.phase, status.ended) == (Phase.STUCK, "between")
    assert f"was not undone within {LIMIT_S} s: {error}" in status.message


def test_an_undo_that_is_let_through_in_time_ends_in_the_old_state() -> None:
    cluster = world(UP)
    denied_at: list[float] = []

    def refuse() -> None:
        deny(cluster, SetReplicas, FORBIDDEN)
        denied_at.append(cluster.now_s)

    def meanwhile(_: int) -> None:
        if cluster.status("plan-1").step >= 1 and not denied_at:
            cluster.ask("plan-1", abort=True)
            refuse()
        if denied_at and cluster.now_s > denied_at[0] + LIMIT_S / 2:
            cluster.faults.denied.clear()

    drive(cluster, meanwhile=meanwhile)
    assert cluster.status("plan-1").phase is Phase.ROLLED_BACK
    assert is_old(cluster)
    assert ("Held", f"plan-1: {FORBIDDEN}") in cluster.told


def test_an_api_server_that_is_away_for_longer_than_the_limit_leaves_no_undo_stuck() -> None:
    cluster = world(UP)

    def away() -> None:
        cluster.faults.down_until = cluster.now_s + 3 * LIMIT_S

    assert aborted(cluster, 1, away).phase is Phase.ROLLED_BACK
    assert is_old(cluster)


@pytest.mark.parametrize(("scenario", "effect"), [(UP, SetReplicas), (DOWN, MarkPods), (RENEWED, SetTemplate)])
@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
def test_an_effect_that_is_refused_again_and_again_turns_the_plan_back_and_says_why(
    scenario: tuple[str, int, int, Callable[[FakeCluster], tuple[object, ...]]],
    effect: type[Effect],
    error: OutOfReachError,
) -> None:
    cluster = world(scenario)  # type: ignore[arg-type]
    deny(cluster, effect, error)

    def meanwhile(_: int) -> None:
        if cluster.status("plan-1").phase is Phase.ABORTING:
            cluster.faults.denied.clear()

    drive(cluster, meanwhile=meanwhile)
    status = cluster.status("plan-1")
    assert status.phase is Phase.ROLLED_BACK
    assert f"could not be done within {LIMIT_S} s: {error}" in status.message
    assert is_old(cluster)


def test_an_effect_that_can_never_be_had_turns_the_plan_back_at_once() -> None:
    cluster = world(RENEWED)
    error = ImpossibleError("no container app: the plan would add one")
    deny(cluster, SetTemplate, error)
    before = cluster.now_s
    drive(cluster)
    status = cluster.status("plan-1")
    assert status.phase is Phase.ROLLED_BACK
    assert f"step 1 cannot be done: {error}" in status.message
    assert cluster.now_s < before + LIMIT_S
    assert is_old(cluster)


@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
def test_a_claim_that_cannot_be_taken_away_keeps_no_plan_from_its_end(error: OutOfReachError) -> None:
    cluster = world(UP)
    deny(cluster, DropClaim, error)
    drive(cluster)
    status = cluster.status("plan-1")
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new")
    assert f"the plan's claim stays on Deployment {DEPLOYMENT}: {error}" in status.surprises


@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
def test_a_mark_that_cannot_be_taken_away_keeps_no_claim_on_the_deployment(error: OutOfReachError) -> None:
    status, cluster = outlived(lambda cluster: deny(cluster, MarkPods, error))
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new")
    assert status.surprises[-1] == f"a pod's deletion cost stays on Deployment {DEPLOYMENT}: {error}"
    assert cluster.deployments[DEPLOYMENT].claim is None


def test_what_is_denied_one_after_the_other_is_named_each() -> None:
    def both(cluster: FakeCluster) -> None:
        deny(cluster, MarkPods, FORBIDDEN)
        deny(cluster, DropClaim, FORBIDDEN)

    status, cluster = outlived(both)
    assert status.phase is Phase.SUCCEEDED
    left = ("a pod's deletion cost stays", "the plan's claim stays")
    assert status.surprises[-2:] == tuple(f"{what} on Deployment {DEPLOYMENT}: {FORBIDDEN}" for what in left)
    assert cluster.deployments[DEPLOYMENT].claim is not None


@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
def test_a_claim_that_cannot_be_taken_away_keeps_no_plan_from_having_turned_back(error: OutOfReachError) -> None:
    cluster = world(UP)
    status = aborted(cluster, 1, lambda: deny(cluster, DropClaim, error))
    assert (status.phase, status.ended) == (Phase.ROLLED_BACK, "old")
    assert f"the plan's claim stays on Deployment {DEPLOYMENT}: {error}" in status.surprises


@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
def test_a_claim_that_can_be_taken_away_at_the_next_try_is(error: OutOfReachError) -> None:
    cluster = world(RENEWED)
    deny(cluster, DropClaim, error)
    begun = cluster.now_s

    def meanwhile(_: int) -> None:
        nonlocal begun
        if cluster.status("plan-1").verdict is None:
            begun = cluster.now_s
        elif cluster.now_s - begun > TIDY_S / 2:
            cluster.faults.denied.clear()

    drive(cluster, meanwhile=meanwhile)
    status = cluster.status("plan-1")
    assert (status.phase, status.surprises) == (Phase.SUCCEEDED, ())
    assert untouched(cluster)


@pytest.mark.parametrize("error", [STORM, FORBIDDEN])
def test_a_claim_that_cannot_be_written_lets_the_plan_expire(error: OutOfReachError) -> None:
    cluster = world(UP)
    deny(cluster, SetClaim, error)
    drive(cluster, turns=4000)
    assert cluster.status("plan-1").phase is Phase.EXPIRED
    assert (("Held", f"plan-1: {FORBIDDEN}") in cluster.told) is (error is FORBIDDEN)
