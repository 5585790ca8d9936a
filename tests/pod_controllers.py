"""``planner-controller`` as a process of its own, and the account and roles that it runs with.

Run as ``python -m tests.pod_controllers`` it is the controller with ready pods as the group's members, see
``tests.pod_groups``.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
import yaml

from planner.documents.approve import APPROVED_BY_ANNOTATION, approved
from planner.documents.plan import PLAN
from planner.documents.tenant_files import FILES_VARIABLE, HOSTS_VARIABLE
from planner.rollout.steps import AwaitReady
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError, Json
from tests.clusters.processes import ManagedProcess
from tests.pod_groups import PodGroups, plan_for

K8S = Path(__file__).parents[1] / "k8s"
ACCOUNT = "consumer-planner-controller"
MERGE = "application/merge-patch+json"
FORGED = "somebody else"
_PLANS = "/apis/consumerplanner.dev/v1alpha1"


def documents(*names: str) -> list[Json]:
    """Return the documents of manifests below ``k8s``, ``rbac/executor`` for one."""
    return [one for name in names for one in yaml.safe_load_all((K8S / f"{name}.yaml").read_text(encoding="utf-8"))]


def install(cluster: ControlPlane) -> list[Json]:
    """Install definitions and admission policies; return what ``uninstall`` takes."""
    definitions = documents("crds/consumerrolloutplans", "crds/consumerscalingpolicies")
    cluster.define(*definitions)
    policies = documents("admission/approval", "admission/approver", "admission/executor")
    cluster.admit(policies, definitions)
    cluster.wait_until("the approver's name in a plan", lambda: _approver_of_a_plan(cluster) not in (None, FORGED))
    cluster.wait_until("a refusal of another's name", lambda: _approver_of_a_plan(cluster, FORGED) is None)
    return [*policies, *definitions]


def _approver_of_a_plan(cluster: ControlPlane, claimed: str = "") -> str | None:
    """Return who has approved a plan that is made and approved by ``claimed``; ``None`` where it is refused for that.

    Each admission policy works from a moment of its own on: what came before it says nothing of what comes after.
    """
    document = approved(PLAN.document(plan_for("canary", ["a", "b"], [AwaitReady(2, 60)]), "canary", "default"))
    if claimed:
        document["metadata"]["annotations"][APPROVED_BY_ANNOTATION] = claimed
    path = f"{_PLANS}/namespaces/default/consumerrolloutplans"
    try:
        made = cluster.rest.call("POST", path, document, query={"dryRun": "All"})
    except ApiError as error:
        if error.status not in (403, 503):
            raise
        return None if error.status == 403 else FORGED
    return str(made["metadata"]["annotations"].get(APPROVED_BY_ANNOTATION, FORGED))


def uninstall(cluster: ControlPlane, installed: Sequence[Json]) -> None:
    """Take away what ``install`` has made, with all plans, also those of tests that failed half-way."""
    for one in installed:
        if one["kind"] != "CustomResourceDefinition":
            cluster.kubectl("delete", one["kind"], one["metadata"]["name"])
    for one in cluster.rest.get(f"{_PLANS}/consumerrolloutplans")["items"]:
        if one["metadata"].get("finalizers"):
            path = f"{_PLANS}/namespaces/{one['metadata']['namespace']}/consumerrolloutplans/{one['metadata']['name']}"
            cluster.rest.patch(path, {"metadata": {"finalizers": []}}, MERGE)
    for one in installed:
        if one["kind"] == "CustomResourceDefinition":
            cluster.kubectl("delete", "crd", one["metadata"]["name"])


def grant(cluster: ControlPlane, home: str, namespace: str, *names: str) -> None:
    """Apply manifests of ``k8s/rbac`` to a namespace, bound to the controller's account in ``home``."""
    found = documents(*(f"rbac/{name}" for name in names))
    for one in found:
        one["metadata"].pop("namespace", None)
        for subject in one.get("subjects", ()):
            subject["namespace"] = home
    cluster.apply(*found, namespace=namespace)


class Controller:
    """One replica as a process: its log is JSON, its ports are free ones."""

    def __init__(
        self,
        name: str,
        folder: Path,
        kubeconfig: Path,
        *options: str,
        module: str = "tests.pod_controllers",
        secret_hosts: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        words = ["--kubeconfig", str(kubeconfig), "--health-port", "0", "--metrics-port", "0"]
        argv = [sys.executable, "-m", module, *words, "--listen-address", "127.0.0.1", *options]
        root = Path(__file__).parents[1]
        hosts = json.dumps(secret_hosts or {})
        environment = {"PYTHONPATH": str(root), FILES_VARIABLE: str(folder), HOSTS_VARIABLE: hosts}
        self.process = ManagedProcess(name, argv, folder, environment)
        self.process.start()

    @property
    def log(self) -> list[Json]:
        """What it has logged."""
        lines = self.process.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def logged(self, message: str) -> list[Json]:
        """Return the messages of that phrase."""
        return [line for line in self.log if line["message"] == message]

    def get(self, port: str, path: str) -> tuple[int, str]:
        """Return status and text of one of its pages; 0 before it listens or after it has ended."""
        begun = self.logged("controller begins")
        if not begun:
            return 0, ""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{begun[-1][port]}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> int:
        """Return the status of ``/readyz``."""
        assert self.process.running, self.process.log_tail()
        return self.get("health_port", "/readyz")[0]

    def metric(self, name: str) -> float | None:
        """Return one value of ``/metrics``, by its name with labels as it is written there."""
        _, text = self.get("metrics_port", "/metrics")
        found = [line.rpartition(" ")[2] for line in text.splitlines() if line.rpartition(" ")[0] == name]
        return float(found[0]) if found else None

    def leads(self) -> bool:
        """True while this replica acts."""
        return self.metric("consumerplanner_leader") == 1.0


def status_of(cluster: ControlPlane, namespace: str, name: str) -> Json:
    """Return a plan's status; empty before there is one, and when the plan is gone."""
    try:
        return dict(
            cluster.rest.get(f"{_PLANS}/namespaces/{namespace}/consumerrolloutplans/{name}").get("status") or {}
        )
    except ApiError as error:
        if error.status != 404:
            raise
        return {}


def main() -> None:
    """Run the controller with the stand-in."""
    from planner.controller import main as controller
    from planner.controller.process import run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(controller, "run", partial(run, groups=PodGroups))
        controller.main()


if __name__ == "__main__":
    main()
