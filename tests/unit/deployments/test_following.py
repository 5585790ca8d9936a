"""Following a plan that others carry out, told by what a store says from look to look."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from planner.deployments.following import Follower
from planner.errors import OutOfReachError
from planner.execution.phases import Phase
from planner.execution.ports import Lease, StoredPlan
from planner.execution.progress import Approval, Refusal, RolloutStatus
from planner.rollout.steps import AwaitReady
from planner.sources.kubernetes import ForbiddenError
from planner.verification.verdict import Figure, Fit, Verdict
from tests.pod_groups import plan_for

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SILENCE_S = 60.0
RUNNING = RolloutStatus(phase=Phase.RUNNING, message="waits for 3 pods")


class Store:
    """Plans and leases of a namespace, and a clock: all say what the test sets."""

    namespace = "shop"

    def __init__(self, status: RolloutStatus) -> None:
        plan = plan_for("app", ["a", "b"], (AwaitReady(2, 60),))
        self.stored: StoredPlan | None = StoredPlan("up", "uid", plan, "sha256:x", "1", status)
        self.lease: Lease | None = None
        self.error: OutOfReachError | None = None
        self.seconds = 0.0

    def read(self, name: str) -> Any:
        if self.error:
            raise self.error
        return self.stored if name == "up" else self.lease

    def follower(self) -> Follower:
        return Follower(cast("Any", self), cast("Any", self), "up", SILENCE_S, lambda: self.seconds)


def test_a_plan_that_goes_on_has_no_end_and_says_what_goes_on() -> None:
    follower = Store(RUNNING).follower()
    assert follower.check() is None
    assert follower.progress == "Running: waits for 3 pods"


def test_a_plan_that_succeeded_ends_well_with_its_verdict() -> None:
    figure = Figure("moved_queues", "queues", 3, 5, 4, 4, Fit.INSIDE, "4 queues moved, as forecast (3 to 5)")
    status = RolloutStatus(
        phase=Phase.SUCCEEDED, message="all steps are done", ended="new", verdict=Verdict(NOW, (figure,))
    )
    end = Store(status).follower().check()
    assert end is not None
    assert (end["is_good"], end["ended"], end["fit"]) == (True, "new", "inside")
    assert end["verdict"] == ["inside: 4 queues moved, as forecast (3 to 5)"]


@pytest.mark.parametrize("phase", [Phase.REFUSED, Phase.EXPIRED, Phase.ROLLED_BACK, Phase.STUCK])
def test_every_other_end_is_told_in_one_sentence_with_its_refusals(phase: Phase) -> None:
    refusal = Refusal("ReplicasChanged", "3 replicas, not 2")
    end = Store(RolloutStatus(phase=phase, message="somebody scaled", refusals=(refusal,))).follower().check()
    assert end is not None
    assert not end["is_good"]
    assert end["sentence"] == f"plan up is {phase}: somebody scaled (ReplicasChanged: 3 replicas, not 2)"


def test_a_deleted_plan_is_an_end() -> None:
    store = Store(RUNNING)
    store.stored = None
    end = store.follower().check()
    assert end is not None
    assert end["sentence"] == "plan shop/up is gone: it was deleted"


def test_nobody_at_work_is_said_once_the_silence_is_long_enough() -> None:
    store = Store(RolloutStatus(approval=Approval("sha256:x", "ana", NOW)))
    follower = store.follower()
    assert follower.check() is None
    store.seconds = SILENCE_S - 1
    assert follower.check() is None
    store.seconds = SILENCE_S
    end = follower.check()
    assert end is not None
    assert not end["is_good"]
    assert "nobody has worked on plan shop/up for 60 s" in end["sentence"]
    assert "planner-controller" in end["sentence"]


def test_a_plan_that_the_criteria_left_to_a_person_is_said_to_lack_its_approval() -> None:
    store = Store(RolloutStatus())
    follower = store.follower()
    assert follower.check() is None
    store.seconds = SILENCE_S
    end = follower.check()
    assert end is not None
    assert end["sentence"].startswith("nobody has approved plan shop/up for 60 s: kubectl describe crp up -n shop ")


def test_a_renewed_lease_and_a_changed_plan_are_signs_of_an_executor() -> None:
    store = Store(RUNNING)
    follower = store.follower()
    for number in range(4):
        store.seconds += SILENCE_S - 1
        if number % 2:
            assert store.stored is not None
            store.stored = replace(store.stored, resource_version=str(number + 2))
        else:
            store.lease = Lease("executor", NOW + timedelta(seconds=number), 30, 0, str(number))
        assert follower.check() is None, number


def test_a_server_that_is_away_is_waited_for_and_then_named() -> None:
    store = Store(RUNNING)
    follower = store.follower()
    follower.check()
    store.error = OutOfReachError("https://api cannot be reached")
    assert follower.check() is None
    store.seconds = SILENCE_S
    end = follower.check()
    assert end is not None
    assert end["sentence"] == "plan shop/up could not be read for 60 s: https://api cannot be reached"


def test_a_missing_right_is_raised_at_once() -> None:
    store = Store(RUNNING)
    store.error = ForbiddenError("cannot get consumerrolloutplans")
    with pytest.raises(ForbiddenError):
        store.follower().check()
