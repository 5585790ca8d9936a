"""A StatefulSet and its real controller: pods start in order, the highest stop first, others are never touched."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from planner.cli import rollouts
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MovedQueues,
    StartConsumers,
    StopConsumers,
    Victim,
)
from tests.clusters.kubernetes import ControlPlane, stateful_set
from tests.clusters.kubernetes.rest import Json
from tests.pod_groups import PodGroups, plan_for
from tests.unit.cli.test_cli import Found, planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APP, LIMIT_S, MOVES = "app", 300, MovedQueues(0, 8)


@pytest.fixture
def namespace(control_plane_with_plans: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A namespace with a StatefulSet of two pods."""
    cluster = control_plane_with_plans
    monkeypatch.setattr(rollouts, "live_groups", PodGroups)
    name = cluster.namespace("stateful")
    cluster.apply(stateful_set(APP, 2, {"command": ["sleep", "infinity"]}), namespace=name)
    cluster.wait_until("two pods", lambda: ready(cluster, name) == ["app-0", "app-1"])
    yield name
    cluster.kubectl("delete", "statefulset", APP, "-n", name)


def pods(cluster: ControlPlane, namespace: str) -> dict[str, Json]:
    found = cluster.rest.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}


def ready(cluster: ControlPlane, namespace: str) -> list[str]:
    return sorted(name for name, pod in pods(cluster, namespace).items() if ready_at(pod) is not None)


def ready_at(pod: Json) -> datetime | None:
    conditions = {condition["type"]: condition for condition in pod["status"].get("conditions", ())}
    is_ready = conditions.get("Ready", {}).get("status") == "True"
    return datetime.fromisoformat(conditions["Ready"]["lastTransitionTime"]) if is_ready else None


def test_pods_start_in_order_and_the_highest_stop(
    control_plane_with_plans: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Up by two and down by three in one plan; a plan that names other pods to stop is refused."""
    cluster = control_plane_with_plans
    stopping = tuple(Victim(f"app-{number}", (f"app-{number}",)) for number in (3, 2, 1))
    grow = (StartConsumers(2, 4, 2 * LIMIT_S, MOVES, undo="set 2"), AwaitReady(4, 2 * LIMIT_S))
    stop = StopConsumers(4, 1, (), 3 * LIMIT_S, MOVES, undo="set 4", stopping=stopping)
    steps = (*grow, AwaitSettled(4, "AVG", LIMIT_S), stop, AwaitSettled(1, "AVG", LIMIT_S), CheckForecast(LIMIT_S))
    made = replace(plan_for(APP, ["app-0", "app-1"], steps), target_kind="StatefulSet")

    lowest = replace(stop, from_replicas=2, stopping=(Victim("app-0", ("app-0",)),))
    wrong = apply(cluster, namespace, tmp_path / "wrong.yaml", replace(made, steps=(lowest, CheckForecast(LIMIT_S))))
    assert wrong.returncode == 1
    assert "the stop takes app-1, the plan expects app-0" in wrong.stdout + wrong.stderr
    assert ready(cluster, namespace) == ["app-0", "app-1"]

    path = tmp_path / "swap.yaml"
    done = apply(cluster, namespace, path, replace(made, steps=(*grow, CheckForecast(LIMIT_S))))
    assert done.returncode == 0, done.stdout + done.stderr
    seen = pods(cluster, namespace)
    third = ready_at(seen["app-2"])
    assert third is not None
    assert third <= datetime.fromisoformat(seen["app-3"]["metadata"]["creationTimestamp"])

    last = replace(plan_for(APP, ready(cluster, namespace), steps[3:]), target_kind="StatefulSet")
    done = apply(cluster, namespace, tmp_path / "down.yaml", last)
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.wait_until("one pod", lambda: list(pods(cluster, namespace)) == ["app-0"])
    assert "app-1, app-2, app-3 stopped" in str(status(cluster, namespace, "down"))
    after = cluster.rest.get(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/{APP}")
    assert after["spec"]["replicas"] == 1
    assert "consumerplanner.dev/rollout" not in after["metadata"].get("annotations", {})
    events = cluster.rest.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    assert any(event["involvedObject"]["kind"] == "StatefulSet" and "plan down" in event["message"] for event in events)


def apply(cluster: ControlPlane, namespace: str, path: Path, plan: RolloutPlan) -> Found:
    """Approve and apply a plan that fits the StatefulSet as it is now."""
    document = approved(PLAN.document(plan, path.stem, namespace))
    path.write_text(PLAN.text(document), encoding="utf-8")
    return planner("apply", path, "--kubeconfig", cluster.kubeconfig)


def status(cluster: ControlPlane, namespace: str, name: str) -> Json:
    path = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{namespace}/consumerrolloutplans/{name}"
    return dict(cluster.rest.get(path)["status"])
