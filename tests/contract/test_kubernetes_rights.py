"""The role in k8s/rbac against a real API server: what the planner needs is allowed, everything else is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from planner.orchestration.checks import CheckSettings
from planner.orchestration.checks.kubernetes import check_kubernetes
from planner.sources.kubernetes import ForbiddenError, KubernetesApi, NotLetInError, read_pods, read_workload
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import ApiError, Json, Rest
from tests.sample_builders import POLICY

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

RBAC = Path(__file__).parents[2] / "k8s" / "rbac"
READER = "consumer-planner-reader"
HOME = "consumer-planner"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
NEEDED = {
    ("apps", "deployments", "get"),
    ("apps", "statefulsets", "get"),
    ("apps", "replicasets", "list"),
    ("", "pods", "list"),
    ("autoscaling", "horizontalpodautoscalers", "list"),
    ("keda.sh", "scaledobjects", "list"),
}
# What any authenticated user may ask of any cluster, about himself (ClusterRole system:basic-user).
ABOUT_ONESELF = {
    ("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
    ("authentication.k8s.io", "selfsubjectreviews", "create"),
}


@dataclass(frozen=True)
class Reader:
    """The planner's service account, which has its role in ``namespace`` and nothing in ``other``."""

    cluster: ControlPlane
    rest: Rest
    kubeconfig: Path
    namespace: str
    other: str


def documents(file: str) -> list[Json]:
    return list(yaml.safe_load_all((RBAC / file).read_text()))


@pytest.fixture(scope="module")
def reader(control_plane: ControlPlane) -> Iterator[Reader]:
    control_plane.kubectl("wait", "--for=delete", f"namespace/{HOME}", "--timeout=600s")  # another module's, vanishing
    control_plane.rest.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
    control_plane.apply(*documents("service-account.yaml"), namespace=HOME)
    namespace, other = control_plane.namespace("shop"), control_plane.namespace("other")
    control_plane.apply(*documents("reader-role.yaml"), namespace=namespace)
    for place in (namespace, other):
        control_plane.apply(deployment("app", 1), namespace=place)
        control_plane.await_available(place, "app")
    await_right(control_plane, f"{HOME}/{READER}", namespace, "apps", "deployments", "get")
    token = control_plane.token(HOME, READER)
    rest = Rest(control_plane.server, control_plane.ca_file, token)
    yield Reader(control_plane, rest, control_plane.kubeconfig_for(token, READER), namespace, other)
    control_plane.rest.delete(f"/api/v1/namespaces/{HOME}")


def await_right(cluster: ControlPlane, account: str, namespace: str, group: str, resource: str, verb: str) -> None:
    """Wait until the server goes by a role that was just made: its authorizer hears of it a moment later."""
    home, _, name = account.partition("/")
    attributes = {"group": group, "resource": resource, "verb": verb, "namespace": namespace}
    review = {"spec": {"user": f"system:serviceaccount:{home}:{name}", "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    cluster.wait_until("the right", lambda: cluster.rest.create(path, review)["status"]["allowed"])


def is_allowed(reader: Reader, group: str, resource: str, verb: str, namespace: str | None) -> bool:
    kind, _, sub = resource.partition("/")
    attributes = {"group": group, "resource": kind, "verb": verb, "subresource": sub, "namespace": namespace or ""}
    review = {"spec": {"resourceAttributes": attributes}}
    answer = reader.rest.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def all_resources(cluster: ControlPlane) -> set[tuple[str, str]]:
    """Return (group, resource or resource/subresource) for everything that the server serves."""

    def every() -> set[tuple[str, str]] | None:
        found = {("", one["name"]) for one in cluster.rest.get("/api/v1")["resources"]}
        for group in cluster.rest.get("/apis")["groups"]:
            for version in group["versions"]:
                try:
                    listed = cluster.rest.get(f"/apis/{version['groupVersion']}")
                except ApiError as error:
                    assert error.status == 404, error
                    return None  # of another module, vanishing: its group is listed for a moment longer
                found |= {(group["name"], one["name"]) for one in listed["resources"]}
        return found

    return cluster.wait_until("every group's list", every)


def test_of_everything_that_the_server_serves_only_the_needed_reads_are_allowed(reader: Reader) -> None:
    resources = all_resources(reader.cluster) | {("keda.sh", "scaledobjects")}
    assert {("", "secrets"), ("", "pods/exec"), ("apps", "deployments/scale"), ("", "pods/log")} <= resources
    allowed = {
        (group, resource, verb)
        for group, resource in resources
        for verb in VERBS
        if is_allowed(reader, group, resource, verb, reader.namespace)
    }
    assert allowed == NEEDED | ABOUT_ONESELF


def test_in_other_namespaces_and_in_all_of_them_none_is(reader: Reader) -> None:
    for namespace in (reader.other, None):
        assert not [one for one in NEEDED if is_allowed(reader, *one, namespace)]


WRITES_AND_SECRETS = [
    ("GET", "/api/v1/namespaces/{0}/secrets", None),
    ("GET", "/api/v1/namespaces/{0}/configmaps", None),
    ("GET", "/api/v1/namespaces/{0}/pods/{1}", None),
    ("GET", "/api/v1/namespaces/{0}/pods/{1}/log", None),
    ("POST", "/api/v1/namespaces/{0}/pods/{1}/exec?command=id", None),
    ("POST", "/api/v1/namespaces/{0}/pods/{1}/eviction", {}),
    ("DELETE", "/api/v1/namespaces/{0}/pods/{1}", None),
    ("PATCH", "/api/v1/namespaces/{0}/pods/{1}", {"metadata": {"annotations": {"a": "b"}}}),
    ("GET", "/apis/apps/v1/namespaces/{0}/deployments", None),
    ("GET", "/apis/apps/v1/namespaces/{0}/deployments/app/scale", None),
    ("PATCH", "/apis/apps/v1/namespaces/{0}/deployments/app/scale", {"spec": {"replicas": 0}}),
    ("PATCH", "/apis/apps/v1/namespaces/{0}/deployments/app", {"spec": {"replicas": 0}}),
    ("DELETE", "/apis/apps/v1/namespaces/{0}/deployments/app", None),
    ("POST", "/apis/apps/v1/namespaces/{0}/deployments", deployment("more")),
    ("GET", "/api/v1/nodes", None),
    ("GET", "/api/v1/namespaces", None),
    ("GET", "/api/v1/pods", None),
    ("POST", "/api/v1/namespaces/{0}/serviceaccounts/default/token", {"spec": {}}),
    ("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/{0}/roles", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES_AND_SECRETS, ids=lambda value: str(value)[:70])
def test_real_calls_beyond_the_role_are_refused(reader: Reader, method: str, path: str, body: Json | None) -> None:
    pod = reader.cluster.rest.get(f"/api/v1/namespaces/{reader.namespace}/pods")["items"][0]["metadata"]["name"]
    target = path.format(reader.namespace, pod)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        reader.rest.call(method, target, body, kind=kind)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_with_the_role_everything_is_read(reader: Reader) -> None:
    with KubernetesApi.connect(reader.kubeconfig) as api:
        found = read_workload(api, reader.namespace, "app", datetime.now(UTC))
        assert found.problems == ()
        assert found.pods is not None
        assert [pod.workload for pod in found.pods] == [found.workload]
        assert found.autoscalers == ()
        assert read_pods(api, reader.namespace) == found.pods


def test_another_namespace_is_forbidden_and_says_so(reader: Reader) -> None:
    with KubernetesApi.connect(reader.kubeconfig) as api:
        with pytest.raises(ForbiddenError, match=rf"(?s)get Deployment {reader.other}/app.*{READER}.*k8s/rbac"):
            read_workload(api, reader.other, "app", datetime.now(UTC))
        with pytest.raises(ForbiddenError, match="list pods in all namespaces"):
            read_pods(api, None)


RULE_OF = {
    "pods": "pods",
    "replicasets": "pods",
    "horizontalpodautoscalers": "autoscalers",
    "scaledobjects": "autoscalers",
}


@pytest.mark.parametrize("resource", RULE_OF)
def test_each_right_of_the_role_is_needed(control_plane: ControlPlane, resource: str) -> None:
    """One right less: the part that needs it is unknown, and the sentence names it; the rest is read."""
    namespace = control_plane.namespace("less")
    control_plane.apply(deployment("app", 1), namespace=namespace)
    kubeconfig = control_plane.service_account(namespace, "less")
    role = next(one for one in documents("reader-role.yaml") if one["kind"] == "Role")
    role["rules"] = [rule for rule in role["rules"] if resource not in rule["resources"]]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "less"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": READER},
        "subjects": [{"kind": "ServiceAccount", "name": "less", "namespace": namespace}],
    }
    control_plane.apply(role, binding, namespace=namespace)
    await_right(control_plane, f"{namespace}/less", namespace, "apps", "deployments", "get")
    with KubernetesApi.connect(kubeconfig) as api:
        found = read_workload(api, namespace, "app", datetime.now(UTC))
    unknown = {part for part in ("pods", "autoscalers") if getattr(found, part) is None}
    assert unknown == {RULE_OF[resource]}
    assert len(found.problems) == 1
    assert f'cannot list resource "{resource}"' in found.problems[0]


def test_the_cluster_role_has_the_same_rules_and_reaches_all_namespaces(
    control_plane: ControlPlane, reader: Reader
) -> None:
    role = next(one for one in documents("reader-role.yaml") if one["kind"] == "Role")
    cluster_role, binding = documents("reader-cluster-role.yaml")
    assert cluster_role["rules"] == role["rules"]
    # Under other names: the same account must stay without these rights for the other tests.
    account = {"kind": "ServiceAccount", "name": "everywhere", "namespace": reader.namespace}
    for document in (cluster_role, binding):
        document["metadata"]["name"] = "test-reader-everywhere"
    binding["roleRef"]["name"] = "test-reader-everywhere"
    binding["subjects"] = [account]
    kubeconfig = control_plane.service_account(reader.namespace, "everywhere")
    control_plane.apply(cluster_role, binding, namespace=reader.namespace)
    await_right(control_plane, f"{reader.namespace}/everywhere", reader.other, "", "pods", "list")
    with KubernetesApi.connect(kubeconfig) as api:
        namespaces = {pod.namespace for pod in read_pods(api, None)}
    assert {reader.namespace, reader.other} <= namespaces


def token_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])


def test_a_token_that_is_no_longer_good_is_told_apart_from_a_missing_right(control_plane: ControlPlane) -> None:
    """It was good, until its account was deleted; one that has expired is answered the same."""
    namespace = control_plane.namespace()
    kubeconfig = control_plane.service_account(namespace, "former")
    rest = Rest(control_plane.server, control_plane.ca_file, token_of(kubeconfig))
    control_plane.kubectl("delete", "serviceaccount", "former", "-n", namespace)

    def is_unknown() -> bool:
        """True once the server has heard of the deletion; for some seconds it remembers whom it has let in."""
        try:
            rest.get("/api")
        except ApiError as error:
            return error.status == 401
        return False

    control_plane.wait_until("the account's end", is_unknown)
    with KubernetesApi.connect(kubeconfig) as api, pytest.raises(NotLetInError, match=r"does not know us.*renew"):
        read_workload(api, namespace, "app", datetime.now(UTC))


def test_the_airflow_check_names_the_rights_that_are_missing(reader: Reader, tmp_path: Path) -> None:
    """Red when it does not ask the API server by the account of the policy, or of the plans."""
    for name, namespace in (("granted", reader.namespace), ("denied", reader.other)):
        policy = POLICY.replace("name: shop}", f"name: {name}, namespace: {namespace}}}", 1)
        text = policy.replace("group: shop", f"group: {name}")
        (tmp_path / f"{name}.yaml").write_text(f"{text}  kubernetes: {{kubeconfigFile: {reader.kubeconfig}}}\n")
    found = list(check_kubernetes(CheckSettings(str(tmp_path), "", reader.kubeconfig, 1.0)))
    by_sentence = {sentence: is_good for is_good, sentence in found}
    server = reader.cluster.server
    assert by_sentence[f"{server} lets us read the targets of granted in namespace {reader.namespace}"]
    denied = next(sentence for sentence in by_sentence if "targets of denied" in sentence)
    assert not by_sentence[denied]
    assert "missing get deployments (apps), list replicasets (apps), list pods, " in denied
    assert denied.endswith("grant what k8s/rbac/reader-role.yaml lists")
    handing_over = [sentence for sentence in by_sentence if "hand plans over" in sentence]
    assert len(handing_over) == 2
    assert all("create consumerrolloutplans (consumerplanner.dev)" in sentence for sentence in handing_over)
