"""A plan beside a real HPA controller that wants otherwise, and with KEDA's kind as an object.

The HPA goes by metrics of its pods, as in any cluster: ``metrics.k8s.io`` is served from objects that tests write, the
rest is real. KEDA itself does not run: what is checked is what it would be told.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.deployments.api import RolloutApi
from planner.deployments.drive import drive, open_ports
from planner.deployments.plans import ClusterPlans
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.execution.codes import Code
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.rollout.autoscalers import Handling, with_autoscaler
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, MovedQueues, StartConsumers
from planner.sources.kubernetes import read_workload
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import MERGE, Json
from tests.contract.test_kubernetes_reads_live import HPAS, SCALED_OBJECTS, crd, hpa
from tests.pod_groups import PodGroups, plan_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APP, LIMIT_S = "app", 300
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces"
STEPS = (
    StartConsumers(2, 3, LIMIT_S, MovedQueues(0, 8), "set the replicas of app back to 2"),
    AwaitReady(3, LIMIT_S),
    AwaitSettled(3, "AVG", LIMIT_S),
    CheckForecast(LIMIT_S),
)


def pod_metrics() -> Json:
    """The definition that lets the API server keep what a metrics server would serve."""
    made = crd()
    names = {"kind": "PodMetrics", "listKind": "PodMetricsList", "plural": "pods", "singular": "pod"}
    made["spec"] |= {"group": "metrics.k8s.io", "names": names}
    made["spec"]["versions"][0]["name"] = "v1beta1"
    meta = {
        "name": "pods.metrics.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in of tests"},
    }
    return made | {"metadata": made["metadata"] | meta}


@pytest.fixture(scope="module")
def kinds(control_plane_with_plans: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane with KEDA's kind and the pods' metrics, besides the planner's own."""
    cluster, definitions = control_plane_with_plans, (crd(), pod_metrics())
    names = cluster.define(*definitions)
    yield cluster
    cluster.kubectl("delete", "--wait=true", *names)


@pytest.fixture(scope="module")
def api(kinds: ControlPlane) -> Iterator[RolloutApi]:
    with RolloutApi.connect(kinds.kubeconfig) as opened:
        yield opened


class Place:
    """A namespace with a Deployment of two pods, and plans that add a third."""

    def __init__(self, cluster: ControlPlane, api: RolloutApi) -> None:
        self.cluster, self.api, self.namespace = cluster, api, cluster.namespace("scaled")
        container = {"command": ["sleep", "infinity"], "resources": {"requests": {"cpu": "10m"}}}
        cluster.apply(deployment(APP, 2, container), namespace=self.namespace)
        cluster.await_available(self.namespace, APP)
        self.counts: list[int] = []

    def deployment(self) -> Json:
        return self.cluster.rest.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{APP}")

    def pods(self) -> list[str]:
        found = self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])

    def measure(self, share: int) -> None:
        """Let every pod use that share of the 10 milli-cores that it asked for, in percent."""
        for pod in self.pods():
            body = {
                "apiVersion": "metrics.k8s.io/v1beta1",
                "kind": "PodMetrics",
                "metadata": {"name": pod, "labels": {"app": APP}},
                # In the future: an HPA passes over figures from a pod's first minutes.
                "timestamp": "2099-01-01T00:00:00Z",
                "window": "15s",
                "containers": [{"name": "main", "usage": {"cpu": f"{share * 100_000}n", "memory": "1Mi"}}],
            }
            self.cluster.apply({**body}, namespace=self.namespace)

    def make(self, path: str, body: Json) -> Json:
        """Create an autoscaler and return it once it is there."""
        self.cluster.rest.create(path, body)
        return self.get(path, body["metadata"]["name"])

    def get(self, path: str, name: str) -> Json:
        return self.cluster.rest.get(f"{path}/{name}")

    def plan(self, handling: Handling) -> StoredPlan:
        """Put an approved plan into the cluster, made beside the autoscaler as it is now."""
        now = datetime.now(UTC)
        found = read_workload(self.api, self.namespace, APP, now)
        made = plan_for(APP, self.pods(), with_autoscaler(STEPS, found, found.replicas, handling))
        return ClusterPlans(self.api, self.namespace).create(approved(PLAN.document(made, "plan", self.namespace)))

    def carry_out(self, stored: StoredPlan, at_step: Callable[[int], object] = lambda _: None) -> StoredPlan:
        """Drive the plan to its end; ``at_step`` is called with the number of finished steps as each is finished."""
        ports = open_ports(self.api, self.namespace, PodGroups(), lambda _: None)
        finished = -1
        for _ in drive(ports, stored.name, "test"):
            self.counts.append(self.deployment()["spec"]["replicas"])
            found = ports.plans.read(stored.name)
            assert found is not None
            if found.status.step > finished:
                finished = found.status.step
                at_step(finished)
        ended = ports.plans.read(stored.name)
        assert ended is not None
        return ended

    def ask_to_abort(self) -> None:
        ClusterPlans(self.api, self.namespace).annotate("plan", {"consumerplanner.dev/abort": "true"})


@pytest.fixture
def place(kinds: ControlPlane, api: RolloutApi) -> Iterator[Place]:
    made = Place(kinds, api)
    yield made
    kinds.kubectl("delete", "deployment,hpa,pods.metrics.k8s.io", "--all", "-n", made.namespace)


def wanted_by(scaler: Json) -> int | None:
    """How full the HPA sees its pods, in percent."""
    metrics = (scaler.get("status") or {}).get("currentMetrics") or []
    shares = [((one.get("resource") or {}).get("current") or {}).get("averageUtilization") for one in metrics]
    return next((share for share in shares if share is not None), None)


def with_hpa(place: Place, behavior: Json | None = None) -> tuple[str, Json]:
    """Give the Deployment an HPA of 1 to 4 that is content with two pods; return its path and what it is told."""
    path = f"{HPAS}/{place.namespace}/horizontalpodautoscalers"
    place.measure(80)
    body = hpa(1, 4)
    if behavior is not None:
        body["spec"]["behavior"] = behavior
    place.make(path, body)
    place.cluster.wait_until("figures at the HPA", lambda: wanted_by(place.get(path, "app-hpa")) == 80)
    return path, place.get(path, "app-hpa")["spec"]


def test_an_hpa_that_wants_more_leaves_the_plan_alone_and_is_pinned_at_its_count(place: Place) -> None:
    path, before = with_hpa(place)

    def hostile(finished: int) -> None:
        if finished == 1:  # paused now: from here on it wants all four
            place.measure(800)
            place.cluster.wait_until("the HPA sees it", lambda: (wanted_by(place.get(path, "app-hpa")) or 0) > 400)

    ended = place.carry_out(place.plan(Handling("setBounds")), hostile)
    assert (ended.status.phase, ended.status.ended) == (Phase.SUCCEEDED, "new"), ended.status.message
    assert set(place.counts) == {2, 3}
    after = place.get(path, "app-hpa")
    assert after["spec"] == before | {"minReplicas": 3, "maxReplicas": 3}
    assert after["metadata"]["annotations"] == {"consumerplanner.dev/set-by": f"plan/{ended.uid}/4"}

    def is_limited() -> bool:
        conditions = place.get(path, "app-hpa")["status"]["conditions"]
        return any(one["type"] == "ScalingLimited" and one["reason"] == "TooManyReplicas" for one in conditions)

    place.cluster.wait_until("the HPA to hit its bound", is_limited)
    assert place.deployment()["spec"]["replicas"] == 3
    # It really wanted more all the time: let go, it takes it.
    place.cluster.rest.patch(f"{path}/app-hpa", {"spec": {"maxReplicas": 4}}, MERGE)
    place.cluster.wait_until("the HPA to scale", lambda: place.deployment()["spec"]["replicas"] == 4)


def test_an_abort_gives_the_hpa_its_bounds_and_its_own_behavior_back(place: Place) -> None:
    slow = {"scaleUp": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    path, before = with_hpa(place, slow)
    stored = place.plan(Handling("pause"))
    ended = place.carry_out(stored, lambda finished: place.ask_to_abort() if finished == 2 else None)
    assert (ended.status.phase, ended.status.ended) == (Phase.ROLLED_BACK, "old"), ended.status.message
    assert set(place.counts) == {2, 3}
    assert place.get(path, "app-hpa")["spec"] == before
    assert place.deployment()["spec"]["replicas"] == 2


def test_a_paused_hpa_stays_so_or_goes_on_as_the_policy_says(place: Place) -> None:
    path, before = with_hpa(place)
    ended = place.carry_out(place.plan(Handling("pause", restores=True)))
    assert ended.status.phase is Phase.SUCCEEDED, ended.status.message
    assert place.get(path, "app-hpa")["spec"] == before
    assert 3 in place.counts


def test_somebody_who_changes_the_hpa_meanwhile_turns_the_plan_back_and_is_not_overruled(place: Place) -> None:
    path, _ = with_hpa(place)
    stored = place.plan(Handling("setBounds"))
    place.cluster.rest.patch(f"{path}/app-hpa", {"spec": {"maxReplicas": 9}}, MERGE)
    ended = place.carry_out(stored)
    assert ended.status.phase is Phase.REFUSED
    assert [refusal.code for refusal in ended.status.refusals] == [Code.AUTOSCALED]
    assert "has 1 to 9 replicas, not paused, the plan expects 1 to 4" in ended.status.refusals[0].sentence
    assert place.get(path, "app-hpa")["spec"]["maxReplicas"] == 9


def scaled_object(**spec: Any) -> Json:
    target = {"scaleTargetRef": {"name": APP}, "triggers": [{"type": "cron"}]}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "shop"},
        "spec": target | spec,
    }


@pytest.mark.parametrize(
    ("handling", "spec", "is_paused"),
    [
        (Handling("setBounds"), {"minReplicaCount": 3, "maxReplicaCount": 3}, False),
        (Handling("pause"), {"maxReplicaCount": 2}, True),
        (Handling("pause", restores=True), {"maxReplicaCount": 2}, False),
    ],
)
def test_a_scaled_object_is_paused_by_kedas_own_annotation(
    place: Place, handling: Handling, spec: Json, is_paused: bool
) -> None:
    path = f"{SCALED_OBJECTS}/{place.namespace}/scaledobjects"
    place.make(path, scaled_object(maxReplicaCount=2))
    seen: list[str | None] = []
    paused = "autoscaling.keda.sh/paused"

    def note(_: int) -> None:
        seen.append((place.get(path, "shop")["metadata"].get("annotations") or {}).get(paused))

    ended = place.carry_out(place.plan(handling), note)
    assert ended.status.phase is Phase.SUCCEEDED, ended.status.message
    found = place.get(path, "shop")
    assert found["spec"] == scaled_object(**spec)["spec"]
    assert (found["metadata"]["annotations"].get(paused) == "true") is is_paused
    assert seen[:2] == [None, "true"]
    assert "true" in seen
    assert place.deployment()["spec"]["replicas"] == 3
