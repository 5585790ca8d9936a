"""One controller for all namespaces, by the roles of the cluster-wide overlay; its token is renewed under way."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from planner.documents.plan import PLAN
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, MovedQueues, PauseForPerson, StartConsumers
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import ApiError, Json, Rest
from tests.faults.tokens import ShortToken
from tests.pod_controllers import ACCOUNT, K8S, Controller, install, status_of, uninstall
from tests.pod_groups import plan_for
from tests.rights_matrix import may

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

HOME, APP, PLAN_NAME = "consumer-planner", "app", "plan"
LIMIT_S, WAIT_S = 300, 300.0
STEPS = (
    StartConsumers(1, 2, LIMIT_S, MovedQueues(0, 8), undo="set 1"),
    AwaitReady(2, LIMIT_S),
    PauseForPerson("Do the new ones deliver?", 600),
    AwaitSettled(2, "AVG", LIMIT_S),
    CheckForecast(LIMIT_S),
)
RIGHTS = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with definitions, admission policies, and the overlay's account and roles."""
    control_plane.kubectl("wait", "--for=delete", f"namespace/{HOME}", "--timeout=600s")  # another module's, vanishing
    made = install(control_plane)
    rendered = yaml.safe_load_all(control_plane.kubectl("kustomize", str(K8S / "overlays" / "cluster-wide")))
    rights = [one for one in rendered if one["kind"] in RIGHTS]
    control_plane.apply(*[one for one in rights if one["kind"] == "Namespace"], namespace="default")
    control_plane.apply(*rights, namespace=HOME)
    yield control_plane
    control_plane.kubectl("delete", "-n", HOME, "-f", "-", "--ignore-not-found", text=yaml.safe_dump_all(rights))
    uninstall(control_plane, made)


@pytest.fixture(scope="module")
def namespaces(cluster: ControlPlane) -> Iterator[tuple[str, str]]:
    """Two namespaces with a Deployment of one pod, each with a plan for another one, approved."""
    made = (cluster.namespace("north"), cluster.namespace("south"))
    for namespace in made:
        cluster.apply(deployment(APP, 1), namespace=namespace)
        cluster.await_available(namespace, APP)
        plan = plan_for(APP, [pod["metadata"]["name"] for pod in pods(cluster, namespace)], STEPS)
        cluster.kubectl("apply", "-f", "-", text=PLAN.text(PLAN.document(plan, PLAN_NAME, namespace)))
        note = f"consumerplanner.dev/approve={PLAN.digest(plan)}"
        cluster.kubectl("annotate", "crp", PLAN_NAME, "-n", namespace, note)
    yield made
    for namespace in made:
        cluster.kubectl("delete", "deployment", APP, "-n", namespace)


def pods(cluster: ControlPlane, namespace: str) -> list[Json]:
    found = cluster.rest.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


def is_asked(status: Json) -> bool:
    """True when a plan is at its question."""
    return [one["kind"] for one in status.get("steps") or []][-1:] == ["pauseForPerson"]


@pytest.mark.parametrize("place", ["kube-system", "kube-node-lease", "kube-public"])
def test_cluster_wide_roles_reach_nothing_of_the_control_plane(cluster: ControlPlane, place: str) -> None:
    """The scheduler's lease in other hands stops scheduling, a node's lets it die, the DNS scaled to none all names."""
    stolen = Rest(cluster.server, cluster.ca_file, cluster.token(HOME, ACCOUNT))
    for right in (("coordination.k8s.io", "leases", "update"), ("apps", "deployments", "patch")):
        cluster.wait_until("the cluster-wide rights", lambda right=right: may(stolen, place, right))
    cluster.wait_until("the policies", lambda: is_refused_to_lead(stolen, place))
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases"
    own = "consumerplanner-0123456789abcdef"
    for name in ("kube-scheduler", own):
        made = cluster.rest.create(leases, {"metadata": {"name": name}, "spec": {"holderIdentity": "somebody"}})
        changed = {**made, "spec": {"holderIdentity": "mine"}}
        refuse(lambda name=name, changed=changed: stolen.call("PUT", f"{leases}/{name}", changed))  # type: ignore[misc]
        cluster.rest.delete(f"{leases}/{name}")
        refuse(lambda name=name: stolen.create(leases, {"metadata": {"name": name}}))
    deployments = f"/apis/apps/v1/namespaces/{place}/deployments"
    cluster.rest.create(deployments, deployment("dns", 0))
    refuse(lambda: stolen.patch(f"{deployments}/dns", {"spec": {"replicas": 1}}))
    cluster.rest.delete(f"{deployments}/dns")


def is_refused_to_lead(stolen: Rest, place: str) -> bool:
    """True once the policies hold: each works from a moment of its own on. Nothing is kept."""
    path, body = (
        f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases",
        {"metadata": {"name": "consumer-planner-canary"}},
    )
    try:
        stolen.call("POST", path, body, query={"dryRun": "All"})
    except ApiError as error:
        return "changes nothing in namespace" in str(error)
    return False


def refuse(call: Callable[[], Json]) -> None:
    with pytest.raises(ApiError, match=r"changes nothing in namespace kube-|writes leases named") as refused:
        call()
    assert refused.value.status == 403


def test_a_plan_in_a_namespace_of_the_control_plane_is_told_why_nobody_carries_it_out(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    plan = plan_for(APP, ["a"], STEPS)
    cluster.kubectl("apply", "-f", "-", text=PLAN.text(PLAN.document(plan, PLAN_NAME, "kube-system")))
    note = f"consumerplanner.dev/approve={PLAN.digest(plan)}"
    cluster.kubectl("annotate", "crp", PLAN_NAME, "-n", "kube-system", note)
    kubeconfig = cluster.kubeconfig_for(cluster.token(HOME, ACCOUNT), f"{HOME}-control")
    controller = Controller("control", tmp_path, kubeconfig, "--all-namespaces", "--leader-namespace", HOME)
    try:
        why = "the controller carries out no plan in namespace kube-system"
        cluster.wait_until("the reason", lambda: why in str(status_of(cluster, "kube-system", PLAN_NAME)), WAIT_S)
    finally:
        assert controller.process.stop(300.0) == 0, controller.process.log_tail()
        cluster.kubectl("delete", "crp", PLAN_NAME, "-n", "kube-system", "--wait=false")


def test_plans_of_two_namespaces_are_driven_by_one_controller_whose_token_is_renewed(
    cluster: ControlPlane, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    token = ShortToken.make(cluster, HOME, ACCOUNT, tmp_path)
    places = ("--all-namespaces", "--leader-namespace", HOME)
    controller = Controller("everywhere", tmp_path, token.kubeconfig(), *places)

    def await_in_both(what: str, is_so: Callable[[Json], bool]) -> None:
        def are_so() -> bool:
            return all(is_so(status_of(cluster, namespace, PLAN_NAME)) for namespace in namespaces)

        cluster.wait_until(f"{what} in {namespaces}", are_so, WAIT_S)

    try:
        await_in_both("the question", is_asked)
        token.renew()
        token.end()
        for namespace in namespaces:
            cluster.kubectl("annotate", "crp", PLAN_NAME, "-n", namespace, "consumerplanner.dev/answer=3")
        await_in_both("the end", lambda status: "ended" in status)
        cluster.wait_until("its being ready", lambda: controller.ready() == 200, WAIT_S)
    finally:
        assert controller.process.stop(300.0) == 0, controller.process.log_tail()
    for namespace in namespaces:
        status = status_of(cluster, namespace, PLAN_NAME)
        assert (status["phase"], status["ended"]) == ("Succeeded", "new"), status
        assert len(pods(cluster, namespace)) == 2
    assert token.text not in controller.process.log.read_text(encoding="utf-8")
    faults = [line for line in controller.log if line["level"] == "ERROR"]
    assert not faults, faults
