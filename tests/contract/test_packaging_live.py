"""Images carried out step by step; kustomize and Helm on a real API server, the controller running in its pods."""

import itertools
import json
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from planner.documents.approve import APPROVE_ANNOTATION
from planner.documents.plan import PLAN
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import MovedQueues, StartConsumers
from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.charts import Helm
from tests.clusters.kubernetes.images import Image
from tests.clusters.kubernetes.rest import MERGE, ApiError, Json
from tests.pod_groups import plan_for
from tests.unit.packaging.images import ROOT, Built, built, mount_points, read_only

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

CHART, K8S = str(ROOT / "helm"), ROOT / "k8s"
RELEASE, CONTROLLER = "consumer-planner", "consumer-planner-controller"
HOME = "consumer-planner"
STRANGER = 65_532
DATA = "/data"


@pytest.fixture(scope="module")
def controller_image() -> Iterator[Built]:
    """The controller's image, built as its Dockerfile says."""
    # Not pytest's own folder, which is closed to other users.
    with tempfile.TemporaryDirectory(prefix="planner-image-") as folder:
        Path(folder).chmod(0o755)
        yield built("controller", Path(folder), {"PYTHON_IMAGE": "this-machine@sha256:" + "0" * 64})


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane, controller_image: Built) -> Iterator[ControlPlane]:
    """The control plane, whose node has the controller's image; its containers can write to their volumes alone."""
    with mount_points(DATA):
        program = controller_image.file.entry_point()
        image = Image((*read_only("/tmp", volumes=[DATA]), *program), controller_image.environment)
        control_plane.kubelet.images["consumer-planner-controller:0.1.0"] = image
        yield control_plane


@pytest.fixture(scope="module")
def helm(control_plane: ControlPlane) -> Helm:
    return Helm(control_plane.kubeconfig, control_plane.directory / "helm")


def packages(python: Path) -> dict[str, str]:
    names = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    run = subprocess.run([str(python), "-c", names], capture_output=True, text=True, check=True)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in json.loads(run.stdout).items()}


def test_the_image_holds_the_locked_packages_of_its_extra_and_no_other_thing(controller_image: Built) -> None:
    installed = packages(controller_image.prefix / "bin" / "python")
    locked = dict(re.findall(r"(?m)^([a-z0-9-]+)==([^ ]+)", (ROOT / "requirements.lock").read_text()))
    assert installed.pop("consumer-planner")
    assert {"kopf", "kubernetes", "confluent-kafka", "prometheus-client", "numpy"} <= installed.keys()
    assert installed.items() <= locked.items()
    assert not {"pip", "uv", "hatchling", "pytest", "ruff", "mypy", "pyspark", "apache-airflow"} & installed.keys()
    site = next(controller_image.prefix.glob("lib/python3.*/site-packages"))
    assert not (site / "tests").exists()
    ours = {path.relative_to(site) for path in (site / "planner").rglob("*.py")}
    assert ours == {path.relative_to(ROOT) for path in (ROOT / "planner").rglob("*.py")}


def test_the_image_runs_for_an_unknown_user_who_can_write_nowhere(controller_image: Built) -> None:
    who = [*read_only(), "unshare", "--user", f"--map-user={STRANGER}", f"--map-group={STRANGER}"]
    (program,) = controller_image.file.entry_point()
    path = str(controller_image.prefix / "bin" / program)
    assert controller_image.run(*who, "touch", str(controller_image.root / "new")).returncode != 0
    helped = controller_image.run(*who, path, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "--leader-lease" in re.sub(r"\x1b\[[0-9;]*m", "", helped.stdout)
    refused = controller_image.run(*who, path, "--namespace", "shop", "--kubeconfig", "/nowhere")
    assert refused.returncode == 2
    assert refused.stderr.startswith("planner-controller: the kubeconfig /nowhere cannot be used")


@pytest.mark.parametrize("name", ["plans-only", "namespaced", "cluster-wide"])
def test_an_overlay_is_applied_and_its_controller_becomes_ready(cluster: ControlPlane, name: str) -> None:
    folder = str(K8S / "overlays" / name)
    cluster.kubectl("wait", "--for=delete", f"namespace/{HOME}", "--timeout=600s")  # another module's, vanishing
    if name != "cluster-wide":  # which brings its own
        cluster.kubectl("create", "namespace", HOME)
    try:
        cluster.kubectl("apply", "-n", HOME, "-k", folder)
        assert cluster.kubectl("diff", "-n", HOME, "-k", folder) == ""
        if name != "plans-only":
            cluster.await_available(HOME, CONTROLLER)
    finally:
        cluster.kubectl("delete", "-n", HOME, "-k", folder, "--ignore-not-found")
        cluster.kubectl("delete", "namespace", HOME, "--ignore-not-found")


def test_the_policies_leave_everybody_else_alone_even_where_no_plan_and_no_definition_is(
    control_plane: ControlPlane,
) -> None:
    namespace, tries = control_plane.namespace("policies"), itertools.count()
    control_plane.apply(deployment("app"), namespace=namespace)
    account = ("--clusterrole", "edit", "--serviceaccount", f"{namespace}:{CONTROLLER}")
    control_plane.kubectl("create", "rolebinding", "edit", "-n", namespace, *account)

    def is_held_back() -> bool:
        actor = f"--as=system:serviceaccount:{namespace}:{CONTROLLER}"
        try:
            control_plane.kubectl(
                "label", "-n", namespace, actor, "deployment/app", "--overwrite", f"try={next(tries)}"
            )
        except StartFailedError as error:
            return "the controller changes no labels" in str(error)
        return False

    control_plane.kubectl("apply", "-k", str(K8S / "admission"))
    try:
        control_plane.wait_until("the policies", is_held_back)
        control_plane.kubectl("label", "-n", namespace, "deployment/app", "by=administrator")
    finally:
        control_plane.kubectl("delete", "-k", str(K8S / "admission"))


@dataclass(frozen=True)
class Release:
    """The chart, installed in a namespace that takes only pods that are restricted."""

    cluster: ControlPlane
    helm: Helm
    namespace: str

    def pods(self) -> list[Json]:
        """Return the controller's pods that stay."""
        listed = self.cluster.rest.get(
            f"/api/v1/namespaces/{self.namespace}/pods", labelSelector="app.kubernetes.io/component=controller"
        )
        return [one for one in listed["items"] if "deletionTimestamp" not in one["metadata"]]

    def asked(self, pod: Json, port: int, path: str) -> str:
        """Return what a pod answers."""
        url = f"http://{pod['status']['podIP']}:{port}{path}"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
            return str(answer.read().decode())

    def found(self, path: str) -> Json:
        return self.cluster.rest.get(path)

    @property
    def plans(self) -> str:
        return f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans"


@pytest.fixture(scope="module")
def release(cluster: ControlPlane, helm: Helm) -> Iterator[Release]:
    namespace = cluster.namespace("chart")
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    cluster.rest.patch(f"/api/v1/namespaces/{namespace}", label, MERGE)
    helm("install", RELEASE, CHART, "-n", namespace, "--wait", "--timeout", "4m")
    yield Release(cluster, helm, namespace)
    if RELEASE in helm("list", "-n", namespace, "--short"):
        helm("uninstall", RELEASE, "-n", namespace, "--wait")
    cluster.kubectl("delete", "-k", str(K8S / "crds"), "--ignore-not-found")


def test_both_replicas_are_ready_and_one_of_them_leads(release: Release) -> None:
    pods = release.pods()
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{release.namespace}/leases"

    def holder() -> str | None:
        found = [one["spec"] for one in release.found(leases)["items"] if one["metadata"]["name"] == CONTROLLER]
        return str(found[0].get("holderIdentity") or "") if found else None

    assert release.cluster.wait_until("a leader", holder)
    assert [release.asked(pod, 8080, "/readyz") for pod in pods] == ["ok\n", "ok\n"]
    assert all("consumerplanner_leader" in release.asked(pod, 9090, "/metrics") for pod in pods)


def test_a_pod_that_is_not_restricted_is_refused_in_that_namespace(release: Release) -> None:
    """The control: the controller's pods are there because they are restricted, not because nobody looks."""
    plain = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "main", "image": "local"}]}}
    with pytest.raises(ApiError, match="violates PodSecurity") as refused:
        release.cluster.rest.create(f"/api/v1/namespaces/{release.namespace}/pods", plain)
    assert refused.value.status == 403


def test_the_charts_own_test_passes(release: Release) -> None:
    assert "Succeeded" in release.helm("test", RELEASE, "-n", release.namespace, "--timeout", "4m")


def test_the_charts_own_test_fails_without_the_rights(release: Release) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{release.namespace}/rolebindings/consumer-planner-executor"
    binding = release.found(path)
    release.cluster.rest.delete(path)
    try:
        with pytest.raises(StartFailedError, match="consumer-planner-test"):
            release.helm("test", RELEASE, "-n", release.namespace, "--timeout", "4m")
    finally:
        binding["metadata"] = {key: binding["metadata"][key] for key in ("name", "labels", "annotations")}
        release.cluster.rest.create(path.rpartition("/")[0], binding)


def absent() -> RolloutPlan:
    """Return a plan for a Deployment that is not there."""
    return plan_for("absent", ["a", "b"], [StartConsumers(2, 3, 60, MovedQueues(0, 8), undo="set 2")])


def test_an_approved_plan_is_taken_up_under_the_charts_rights(release: Release) -> None:
    plan, name = absent(), "taken-up"
    release.cluster.kubectl("apply", "-n", release.namespace, "-f", "-", text=PLAN.dump(plan, name))
    note = f"{APPROVE_ANNOTATION}={PLAN.digest(plan)}"
    release.cluster.kubectl("annotate", "-n", release.namespace, "crp", name, note)
    path = f"{release.plans}/{name}"
    release.cluster.wait_until("an answer", lambda: "phase" in release.found(path)["status"])
    status = release.found(path)["status"]
    assert status["phase"] != "Succeeded"
    assert status["message"]


def test_an_upgrade_changes_the_pods_in_turn_and_the_documented_line_renews_the_definitions(release: Release) -> None:
    before = {pod["metadata"]["uid"] for pod in release.pods()}
    allowed = "networkPolicy.enabled=true,networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring"
    changed = ("--reset-then-reuse-values", "--set", f"logLevel=debug,rbac.autoApprove=true,{allowed}")
    release.helm("upgrade", RELEASE, CHART, "-n", release.namespace, *changed, "--wait", "--timeout", "4m")
    pods = release.pods()
    assert len(pods) == 2
    assert not before & {pod["metadata"]["uid"] for pod in pods}
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{release.namespace}/rolebindings"
    assert release.found(f"{roles}/consumer-planner-auto")
    policy = f"/apis/networking.k8s.io/v1/namespaces/{release.namespace}/networkpolicies/{CONTROLLER}"
    spec = release.found(policy)["spec"]
    labels = {label for pod in pods for label in pod["metadata"]["labels"].items()}
    assert spec["podSelector"]["matchLabels"].items() <= labels
    ports = {port["name"] for pod in pods for port in pod["spec"]["containers"][0]["ports"]}
    assert [rule["ports"][0]["port"] for rule in spec["ingress"]] == ["metrics", "health"]
    assert ports == {"metrics", "health"}
    assert spec["ingress"][0]["from"] == [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    assert "from" not in spec["ingress"][1]
    crds = release.helm("show", "crds", CHART)
    said = release.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=crds)
    assert said.count("serverside-applied") == 2


def test_uninstalled_it_leaves_the_definitions_and_the_plans_and_nothing_else(release: Release) -> None:
    plan = PLAN.dump(absent(), "kept")
    release.cluster.kubectl("apply", "-n", release.namespace, "-f", "-", text=plan)
    release.helm("uninstall", RELEASE, "-n", release.namespace, "--wait", "--timeout", "4m")
    kinds = (
        "deployments,services,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,"
        "validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies"
    )
    ours = ("-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name")
    assert release.cluster.kubectl("get", kinds, "-n", release.namespace, *ours) == ""
    assert "kept" in {one["metadata"]["name"] for one in release.found(release.plans)["items"]}
