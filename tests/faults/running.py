"""``Run``: one plan that is carried out, for whoever disturbs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.kubelet import Kubelet
from tests.faults.executor import END_S, Executor, Fault
from tests.faults.observer import Record
from tests.faults.place import Place

PLAN = "plan"


@dataclass
class Run:
    """One plan that is carried out, for whoever disturbs it."""

    cluster: ControlPlane
    where: Place
    path: Path
    record: Record
    nodes: Mapping[str, Kubelet] = field(default_factory=dict)
    executors: list[Executor] = field(default_factory=list)

    def start(
        self,
        command: str = "apply",
        kubeconfig: Path | None = None,
        fault: Fault | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Executor:
        """Start an executor."""
        log = self.path.with_suffix(f".{len(self.executors)}.log")
        used = kubeconfig or self.cluster.kubeconfig
        made = Executor(log, command, self.path, kubeconfig=used, fault=fault, environment=environment)
        self.executors.append(made)
        return self.executors[-1]

    def account(self) -> str:
        """Make the service account of an executor, with all rights in the namespace, and return its name."""
        name, namespace = "executor", self.where.namespace
        self.cluster.rest.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        self.cluster.rest.create(path, binding)
        return name

    def await_step(self, kind: str) -> None:
        """Wait until the plan is at a step of that kind."""

        def is_there() -> bool:
            assert any(one.is_running for one in self.executors), [one.said for one in self.executors]
            begun = self.where.status(PLAN).get("steps") or []
            return any(step["kind"] == kind and not step.get("finishedAt") for step in begun)

        self.cluster.wait_until(f"{kind} in {self.where.namespace}", is_there, END_S)

    def await_phase(self, phase: str) -> None:
        """Wait until the plan is in a phase."""
        self.cluster.wait_until(phase, lambda: self.where.status(PLAN).get("phase") == phase, END_S)

    def abort(self) -> None:
        """Have a person abort the plan."""
        self.where.annotate(PLAN, {"consumerplanner.dev/abort": "true"})

    def answer(self) -> None:
        """Have a person let every step go on."""
        numbers = range(1, 20)
        self.where.annotate(PLAN, {"consumerplanner.dev/answer": ",".join(map(str, numbers))})

    def scale(self, replicas: int) -> None:
        """Have somebody else set the replicas."""
        self.where.patch({"spec": {"replicas": replicas}})

    def evict(self, pod: str) -> None:
        """Evict a pod, as a node's drain does."""
        meta = {"name": pod, "namespace": self.where.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        self.cluster.rest.create(f"/api/v1/namespaces/{self.where.namespace}/pods/{pod}/eviction", body)
