"""``planner apply`` and its sisters on a real API server with process-backed pods; the group is a stand-in."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.cli import rollouts
from planner.deployments.api import RolloutApi
from planner.deployments.policies import cluster_policies
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.documents.policy import read_policy
from planner.execution.lease import lease_name
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MarkVictims,
    MovedQueues,
    PauseForPerson,
    StartConsumers,
    Step,
    StopConsumers,
    Victim,
)
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import ApiError, Json
from tests.pod_groups import GROUP, PodGroups, plan_for
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import Found, planner, refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

WAIT_S = 300.0
LIMIT_S = 300
MOVES = MovedQueues(0, 8)
APP = "app"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Shop:
    """A namespace with a Deployment of two pods."""

    cluster: ControlPlane
    namespace: str
    folder: Path

    def deployment(self) -> Json:
        return self.cluster.rest.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{APP}")

    def pods(self) -> list[str]:
        found = self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])

    def crp(self, name: str) -> str:
        return f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans/{name}"

    def status(self, name: str) -> Json:
        try:
            return dict(self.cluster.rest.get(self.crp(name)).get("status") or {})
        except ApiError:
            return {}

    def write(self, name: str, steps: Sequence[Step], *, is_approved: bool = True) -> Path:
        """Write a plan file that fits the Deployment as it is now."""
        document = PLAN.document(plan_for(APP, self.pods(), steps), name, self.namespace)
        path = self.folder / f"{name}.yaml"
        path.write_text(PLAN.text(approved(document) if is_approved else document), encoding="utf-8")
        return path

    def run(self, command: str, *arguments: object, kubeconfig: Path | None = None) -> Found:
        """Run ``planner`` in this process."""
        return planner(command, *arguments, "--kubeconfig", kubeconfig or self.cluster.kubeconfig)

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        """Start ``planner`` as a process of its own."""
        words = ["-m", "tests.pod_groups", *map(str, arguments), "--kubeconfig", str(self.cluster.kubeconfig)]
        root = Path(__file__).parents[2]
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, *words], cwd=root, stdout=pipe, stderr=pipe, text=True)

    def holder(self) -> str | None:
        """Return who may drive plans of the group now."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{lease_name(GROUP)}"
        holder: str | None = self.cluster.rest.get(path)["spec"].get("holderIdentity")
        return holder

    def await_step(self, name: str, kind: str, applying: "subprocess.Popen[str]") -> None:
        """Wait until the plan is at a step of that kind; who applies it must not end before."""

        def is_there() -> bool:
            assert applying.poll() is None, applying.communicate()
            return _current(self.status(name)) == kind

        self.cluster.wait_until(f"{kind} of {name}", is_there, WAIT_S)


def _current(status: Json) -> str | None:
    open_steps = [step["kind"] for step in status.get("steps", []) if not step.get("finishedAt")]
    return open_steps[0] if open_steps else None


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "live_groups", PodGroups)


def test_without_the_definitions_it_says_how_to_install_them(control_plane: ControlPlane, tmp_path: Path) -> None:
    namespace = control_plane.namespace("bare")
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.text(PLAN.document(plan_for(APP, ["a", "b"], up()), "bare", namespace)), encoding="utf-8")
    refused(planner("apply", path, "--kubeconfig", control_plane.kubeconfig), 3, "kubectl apply -f k8s/crds")


@pytest.fixture
def shop(control_plane_with_plans: ControlPlane, tmp_path: Path) -> Iterator[Shop]:
    cluster = control_plane_with_plans
    namespace = cluster.namespace("apply")
    cluster.apply(deployment(APP, 2, {"command": ["sleep", "infinity"]}), namespace=namespace)
    cluster.await_available(namespace, APP)
    yield Shop(cluster, namespace, tmp_path)
    cluster.kubectl("delete", "deployment", APP, "-n", namespace)


def up() -> tuple[Step, ...]:
    return (
        StartConsumers(2, 4, LIMIT_S, MOVES, undo="set 2"),
        AwaitReady(4, LIMIT_S),
        AwaitSettled(4, "AVG", LIMIT_S),
    )


def up_and_down(victims: Sequence[str]) -> tuple[Step, ...]:
    return (
        *up(),
        MarkVictims(tuple(Victim(pod, (pod,)) for pod in victims), LIMIT_S),
        StopConsumers(4, 2, tuple(victims), LIMIT_S, MOVES, undo="set 4"),
        AwaitReady(2, LIMIT_S),
        AwaitSettled(2, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def asking() -> tuple[Step, ...]:
    return (*up()[:2], PauseForPerson("Do the new ones deliver?", 600))


@contextmanager
def other_writer(shop: Shop) -> Iterator[None]:
    """Have somebody else write to the Deployment twelve times meanwhile, of no matter to the plan."""
    path = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/{APP}"

    def write() -> None:
        for number in range(12):
            shop.cluster.rest.patch(path, {"metadata": {"annotations": {"somebody": str(number)}}}, MERGE)
            time.sleep(0.3)

    thread = threading.Thread(target=write)
    thread.start()
    yield
    thread.join()
    assert shop.deployment()["metadata"]["annotations"]["somebody"] == "11"


def test_the_chosen_pods_stop_and_a_plan_that_is_done_is_not_done_again(shop: Shop) -> None:
    old = shop.pods()
    path = shop.write("swap", up_and_down(old))
    dry = shop.run("apply", path, "--dry-run=server")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert "fits the cluster" in dry.stdout
    assert shop.status("swap") == {}, "a dry run makes nothing"

    with other_writer(shop):
        done = shop.run("apply", path)
    assert done.returncode == 0, done.stderr
    assert "Succeeded" in done.stdout
    shop.cluster.wait_until("the victims' end", lambda: len(shop.pods()) == 2, WAIT_S)
    assert not set(old) & set(shop.pods())
    after = shop.deployment()
    assert after["spec"]["replicas"] == 2
    assert "consumerplanner.dev/rollout" not in after["metadata"]["annotations"]
    plan = shop.cluster.rest.get(shop.crp("swap"))
    assert (plan["status"]["phase"], plan["status"]["ended"]) == ("Succeeded", "new")
    assert not plan["metadata"].get("finalizers"), "whoever deletes it now need not wait for anybody"
    told = shop.cluster.rest.get(f"/api/v1/namespaces/{shop.namespace}/events")["items"]
    assert {"StepBegun", "StepDone", "Succeeded"} <= {one["reason"] for one in told}

    dry = shop.run("apply", path, "--dry-run=server")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert "Succeeded" in dry.stdout
    again = shop.run("apply", path, "-o", "json")
    assert (again.returncode, again.stderr) == (0, "")
    assert json.loads(again.stdout)["status"]["phase"] == "Succeeded"
    # Not its version: the Deployment's controller notes in the status when the last pod has gone.
    assert shop.deployment()["metadata"]["generation"] == after["metadata"]["generation"]
    assert shop.deployment()["metadata"]["annotations"] == after["metadata"]["annotations"]

    verified = shop.run("verify", path, "-o", "json")
    assert verified.returncode == 0
    assert json.loads(verified.stdout)["fit"] == "inside"
    assert "swap" in shop.run("status", "--namespace", shop.namespace).stdout


def test_ctrl_c_leaves_it_to_another_and_an_abort_in_the_middle_brings_the_old_state_back(shop: Shop) -> None:
    path = shop.write("turned", asking())
    applying = shop.start("apply", path)
    try:
        shop.await_step("turned", "pauseForPerson", applying)
    finally:
        applying.send_signal(signal.SIGINT)
        _, said = applying.communicate(timeout=WAIT_S)
    assert applying.returncode == 1, said
    assert "planner apply goes on with it" in said
    assert "Traceback" not in said
    assert shop.status("turned")["phase"] == "Running"
    assert shop.deployment()["spec"]["replicas"] == 4
    assert shop.cluster.rest.get(shop.crp("turned"))["metadata"]["finalizers"], "it must not go before it is undone"

    applying = shop.start("apply", path)
    try:
        shop.cluster.wait_until("the other's lease", shop.holder, WAIT_S)
        aborted = shop.run("abort", "turned", "--namespace", shop.namespace)
        assert aborted.returncode == 0, aborted.stderr
        assert applying.wait(WAIT_S) == 1
    finally:
        applying.kill()
        applying.communicate()
    assert (shop.status("turned")["phase"], shop.status("turned")["ended"]) == ("RolledBack", "old")
    after = shop.deployment()
    assert after["spec"]["replicas"] == 2
    assert "consumerplanner.dev/rollout" not in after["metadata"]["annotations"]


def test_who_is_killed_in_the_middle_is_followed_by_another(shop: Shop) -> None:
    path = shop.write("killed", asking())
    before = shop.deployment()["metadata"]["generation"]
    applying = shop.start("apply", path)
    try:
        shop.await_step("killed", "pauseForPerson", applying)
    finally:
        applying.send_signal(signal.SIGKILL)
        applying.communicate()
    shop.cluster.kubectl("annotate", "crp", "killed", "-n", shop.namespace, "consumerplanner.dev/answer=3")
    done = shop.run("apply", path, "--watch")
    assert done.returncode == 0, done.stderr
    assert "✔ 1. 4 replicas asked for" in done.stdout
    assert all(f"{pod}  ready" in done.stdout for pod in shop.pods())
    assert shop.status("killed")["ended"] == "new"
    # The server counts changes of the spec and of annotations.
    assert shop.deployment()["metadata"]["generation"] == before + 3, "claimed, scaled and given free, each once"
    assert len(shop.pods()) == 4


def test_a_plan_that_no_longer_fits_is_refused_and_nothing_is_touched(shop: Shop) -> None:
    path = shop.write("stale", up())
    shop.cluster.kubectl("scale", "-n", shop.namespace, f"deployment/{APP}", "--replicas=3")
    shop.cluster.await_available(shop.namespace, APP)
    dry = shop.run("apply", path, "--dry-run=server")
    assert dry.returncode == 1
    assert "ReplicasChanged" in dry.stdout
    found = shop.run("apply", path, "-o", "json")
    assert found.returncode == 1
    answer = json.loads(found.stdout)["status"]
    assert answer["phase"] == "Refused"
    assert "ReplicasChanged" in {refusal["code"] for refusal in answer["refusals"]}
    assert shop.deployment()["spec"]["replicas"] == 3
    assert "consumerplanner.dev/rollout" not in shop.deployment()["metadata"]["annotations"]


def test_a_plan_that_nobody_approved_is_put_there_and_waits(shop: Shop) -> None:
    found = shop.run("apply", shop.write("waiting", up(), is_approved=False))
    assert found.returncode == 1
    assert "consumerplanner.dev/approve=sha256:" in found.stderr
    assert shop.deployment()["spec"]["replicas"] == 2
    assert not shop.cluster.rest.get(shop.crp("waiting"))["metadata"].get("finalizers")
    other = shop.write("waiting", up()[:2])
    refused(shop.run("apply", other), 2, "there is another plan waiting")


def test_other_commands_say_what_is_not_there(shop: Shop) -> None:
    for command in ("abort", "verify", "status"):
        refused(shop.run(command, "nobody", "--namespace", shop.namespace), 2, "no plan nobody")


def test_a_policy_is_the_same_in_the_cluster_as_in_its_file(shop: Shop) -> None:
    file = shop.folder / "policy.yaml"
    file.write_text(POLICY, encoding="utf-8")
    wanted = read_policy(file)
    shop.cluster.apply(yaml.safe_load(POLICY), namespace=shop.namespace)
    with RolloutApi.connect(shop.cluster.kubeconfig) as api:
        found = cluster_policies(api, shop.namespace)(wanted.metadata.name)
        assert found is not None
        assert (found.spec, found.digest) == (wanted.spec, wanted.digest)
        assert cluster_policies(api, shop.namespace)("nobody") is None


def role(*rules: tuple[str, str, Sequence[str]]) -> Json:
    listed: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)} for group, resource, verbs in rules
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "half"},
        "rules": listed,
    }


def test_a_missing_right_is_named_before_anything_is_done(shop: Shop) -> None:
    kubeconfig = shop.cluster.service_account(shop.namespace, "half")
    path = shop.write("forbidden", up())
    refused(shop.run("apply", path, kubeconfig=kubeconfig), 3, "cannot get", "consumerrolloutplans")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "half"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "half"},
        "subjects": [{"kind": "ServiceAccount", "name": "half", "namespace": shop.namespace}],
    }
    rights = role(("consumerplanner.dev", "consumerrolloutplans", ["get", "list", "create"]))
    shop.cluster.apply(rights, binding, namespace=shop.namespace)

    def allowed() -> Found | None:
        found = shop.run("apply", path, kubeconfig=kubeconfig)
        return None if "cannot" in found.stderr else found

    said: Callable[[], Found | None] = allowed
    refused(shop.cluster.wait_until("the role", said), 3, "missing", "patch deployments (apps)", "docs/apply.md")
    assert "phase" not in shop.status("forbidden"), "nobody has begun it"
