"""Plans that set their Deployment's autoscaler, when somebody or something else moves, too."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.model.autoscalers import Autoscaler
from planner.rollout.steps import AutoscalerState, CheckForecast, SetAutoscaler
from tests.unit.execution.fake import FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, HPA, LIMIT_S, counts, drive, stored, up

FREE, STILL = AutoscalerState(1, 4, is_paused=False), AutoscalerState(1, 5, is_paused=True)
KEDA = Autoscaler("ScaledObject", "shop", 1, 4)
MADE = Autoscaler("HorizontalPodAutoscaler", "keda-hpa-shop", 1, 4, made_by="ScaledObject shop")


def restored(scaler: Autoscaler = HPA) -> FakeCluster:
    """Return a cluster with a plan from 3 to 5 that lets the autoscaler go on in the end."""
    cluster = FakeCluster(3)
    cluster.set_scaler(DEPLOYMENT, scaler)
    kind: Any = scaler.kind
    pause = SetAutoscaler(scaler.name, kind, FREE, STILL, LIMIT_S)
    release = SetAutoscaler(scaler.name, kind, STILL, FREE, LIMIT_S)
    stored(cluster, (pause, *up(cluster)[:-1], release, CheckForecast(LIMIT_S)))
    cluster.before = counts(cluster)
    return cluster


def scaler_of(cluster: FakeCluster) -> Autoscaler:
    return next(one for one in cluster.deployments[DEPLOYMENT].autoscalers if one.made_by is None)


def driven(cluster: FakeCluster, finished: int = -1, then: Callable[[], None] = lambda: None) -> RolloutStatus:
    """Drive the plan to its end; have something happen once so many steps are finished."""
    happened: list[int] = []

    def meanwhile(_: int) -> None:
        if cluster.status("plan-1").step >= finished >= 0 and not happened:
            happened.append(finished)
            then()

    drive(cluster, meanwhile=meanwhile)
    return cluster.status("plan-1")


def test_an_autoscaler_that_is_let_go_may_set_the_count_at_once() -> None:
    cluster = restored()
    status = driven(cluster)
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new"), status.message
    scaler = scaler_of(cluster)
    assert (scaler.minimum, scaler.maximum, scaler.is_paused) == (1, 4, False)
    # It wants 3 and may have 4 at most: as it was asked to go on, nobody calls that another's doing.
    cluster.advance(30)
    assert cluster.deployments[DEPLOYMENT].replicas == 3


def test_an_autoscaler_that_was_changed_before_is_not_touched() -> None:
    cluster = restored()
    cluster.set_scaler(DEPLOYMENT, scaler_of(cluster), maximum=9)
    status = driven(cluster)
    assert (status.phase, status.ended) == (Phase.REFUSED, "nothing")
    assert [refusal.code for refusal in status.refusals] == ["Autoscaled"]
    assert "has 1 to 9 replicas, not paused, the plan expects 1 to 4 replicas, not paused" in status.message
    assert scaler_of(cluster).maximum == 9


def test_who_changes_it_meanwhile_turns_the_plan_back_and_is_not_overruled() -> None:
    cluster = restored()
    status = driven(cluster, 3, lambda: cluster.set_scaler(DEPLOYMENT, scaler_of(cluster), maximum=9))
    assert (status.phase, status.ended) == (Phase.STUCK, "between")
    assert "somebody set HorizontalPodAutoscaler hpa to 1 to 9 replicas, paused, which is left so" in status.message
    assert cluster.deployments[DEPLOYMENT].replicas == 3
    assert scaler_of(cluster).maximum == 9


def test_one_that_somebody_lets_go_meanwhile_is_named() -> None:
    cluster = restored(replace(HPA, desired=None))
    status = driven(cluster, 3, lambda: cluster.set_scaler(DEPLOYMENT, scaler_of(cluster), is_paused=False))
    assert [refusal.code for refusal in status.refusals] == ["Autoscaled"]
    assert "has 1 to 5 replicas, not paused, the plan expects 1 to 5 replicas, paused" in status.refusals[0].sentence


def test_one_that_is_gone_needs_no_undo() -> None:
    cluster = restored()

    def removed() -> None:
        cluster.deployments[DEPLOYMENT].autoscalers = ()

    status = driven(cluster, 3, removed)
    assert (status.phase, status.ended) == (Phase.ROLLED_BACK, "old"), status.message
    assert "HorizontalPodAutoscaler hpa is gone, which the plan sets" in status.message


def test_the_count_waits_until_keda_has_removed_its_hpa() -> None:
    cluster = restored(KEDA)
    cluster.set_scaler(DEPLOYMENT, MADE)
    held: list[str | None] = []

    def keda(_: int) -> None:
        scaler = scaler_of(cluster)
        held.append(cluster.status("plan-1").held)
        if scaler.is_paused and len(held) > 40:
            cluster.deployments[DEPLOYMENT].autoscalers = (scaler,)

    drive(cluster, meanwhile=keda)
    assert "KEDA has not removed HorizontalPodAutoscaler keda-hpa-shop yet" in held
    assert cluster.status("plan-1").phase is Phase.SUCCEEDED, cluster.status("plan-1").message
