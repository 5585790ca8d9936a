"""``Place``: a namespace of its own with a Deployment of consumers, and plans in it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import yaml

from planner.deployments.bodies import micro_time
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.execution.lease import lease_name
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import Step
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import MERGE, ApiError, Json
from tests.faults.group import is_ready
from tests.pod_groups import GROUP, plan_for

APP, GREEN = "app", "green"
CRDS = Path(__file__).parents[2] / "k8s" / "crds"
CLAIM = "consumerplanner.dev/rollout"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
SIMULATION = "simulation.consumerplanner.dev/"
START_S, READY_S = 0.3, 0.5
"""How long the stand-in for the kubelet takes to start a pod, and then to find it ready."""


def install_definitions(cluster: ControlPlane) -> None:
    """Install the definitions of plans and policies."""
    definitions = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CRDS.glob("*.yaml"))]
    cluster.define(*definitions)


def app(replicas: int, container: Json | None = None, pod: Json | None = None) -> Json:
    """Return the Deployment of consumers: pods that take a moment to be ready, without a process unless asked for."""
    body = deployment(APP, replicas, container, **(pod or {}))
    simulated = {f"{SIMULATION}start-delay-seconds": str(START_S), f"{SIMULATION}ready-delay-seconds": str(READY_S)}
    body["spec"]["template"]["metadata"]["annotations"] = simulated
    return body


@dataclass(frozen=True)
class Kept:
    """What every plan must leave as it was: the Deployments' update strategy, and each autoscaler's spec by name."""

    strategy: Json
    scalers: dict[str, Json]


@dataclass(frozen=True)
class Place:
    """One namespace; ``folder`` is for its plan files."""

    cluster: ControlPlane
    namespace: str
    folder: Path

    @property
    def deployments(self) -> str:
        """Path of its Deployments."""
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments"

    @property
    def plans(self) -> str:
        """Path of its plans."""
        return f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans"

    def find(self, path: str) -> Json | None:
        """Return the object at a path, ``None`` when there is none."""
        try:
            return self.cluster.rest.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def deployment(self, name: str = APP) -> Json | None:
        """Return a Deployment."""
        return self.find(f"{self.deployments}/{name}")

    def plan(self, name: str) -> Json | None:
        """Return a plan object."""
        return self.find(f"{self.plans}/{name}")

    def status(self, name: str) -> Json:
        """Return a plan's status, an empty one where there is none."""
        return dict((self.plan(name) or {}).get("status") or {})

    def pods(self) -> list[Json]:
        """Return all pods."""
        return list(self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"])

    def ready_pods(self) -> list[str]:
        """Return the names of the pods that are ready."""
        return sorted(one["metadata"]["name"] for one in self.pods() if is_ready(one))

    def holder(self) -> str | None:
        """Return who may drive plans of the group now."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{lease_name(GROUP)}"
        return ((self.find(path) or {}).get("spec") or {}).get("holderIdentity")

    def age_leases(self, seconds: float) -> None:
        """Have every lease renewed so much earlier, as if so long had gone by since its holder died."""
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        for lease in self.cluster.rest.get(leases)["items"]:
            renewed_at = datetime.fromisoformat(lease["spec"]["renewTime"]) - timedelta(seconds=seconds)
            body = {"spec": {"renewTime": micro_time(renewed_at)}}
            self.cluster.rest.patch(f"{leases}/{lease['metadata']['name']}", body, MERGE)

    def await_ready(self, count: int, name: str = APP) -> list[str]:
        """Return the names of the pods once so many are ready."""
        self.cluster.await_available(self.namespace, name)

        def ready() -> list[str] | None:
            found = self.ready_pods()
            return found if len(found) == count else None

        return self.cluster.wait_until(f"{count} ready pods in {self.namespace}", ready)

    def fitting(self, steps: Sequence[Step]) -> RolloutPlan:
        """Return a plan that fits the place as it is now."""
        return plan_for(APP, self.ready_pods(), steps)

    def write(self, name: str, plan: RolloutPlan) -> Path:
        """Write an approved plan file."""
        path = self.folder / f"{self.namespace}-{name}.yaml"
        path.write_text(PLAN.text(approved(PLAN.document(plan, name, self.namespace))), encoding="utf-8")
        return path

    def annotate(self, plan: str, annotations: Mapping[str, str | None]) -> None:
        """Annotate a plan, as kubectl does."""
        self.cluster.rest.patch(f"{self.plans}/{plan}", {"metadata": {"annotations": dict(annotations)}}, MERGE)

    @property
    def scalers(self) -> str:
        """Path of its autoscalers."""
        return f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers"

    def add_scaler(self, name: str) -> None:
        """Have an autoscaler look after the Deployment of consumers."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": APP}
        body = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9},
        }
        self.cluster.rest.create(self.scalers, body)

    def add_empty(self, name: str) -> None:
        """Make one more Deployment, which runs nothing."""
        self.cluster.rest.create(self.deployments, deployment(name, 0))

    def kept(self) -> Kept:
        """Return what every plan must leave as it was."""
        found = self.cluster.rest.get(self.scalers)["items"]
        return Kept(
            (self.deployment() or {})["spec"]["strategy"], {one["metadata"]["name"]: one["spec"] for one in found}
        )

    def patch(self, body: Json, name: str = APP) -> Json:
        """Patch a Deployment, as somebody else does."""
        return self.cluster.rest.patch(f"{self.deployments}/{name}", body, MERGE)

    def clear(self) -> None:
        """Take all plans and Deployments away."""
        for one in self.cluster.rest.get(self.plans)["items"]:
            path = f"{self.plans}/{one['metadata']['name']}"
            if one["metadata"].get("finalizers"):
                self.cluster.rest.patch(path, {"metadata": {"finalizers": None}}, MERGE)
            if "deletionTimestamp" not in one["metadata"]:
                self.cluster.rest.delete(path)
        self.cluster.rest.delete(self.deployments)
        self.cluster.rest.delete(f"/api/v1/namespaces/{self.namespace}")


@contextmanager
def place(
    cluster: ControlPlane, folder: Path, replicas: int, container: Json | None = None, pod: Json | None = None
) -> Iterator[Place]:
    """Give a namespace with so many consumers that are ready."""
    made = Place(cluster, cluster.namespace("faults"), folder)
    cluster.rest.create(made.deployments, app(replicas, container, pod))
    made.await_ready(replicas)
    try:
        yield made
    finally:
        made.clear()
