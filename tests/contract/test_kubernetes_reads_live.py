"""``read_workload`` against a real API server: facts, autoscalers, field managers, and each way it can go wrong."""

import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from planner.errors import BadInputError, OutOfReachError, UnknownNameError
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment
from planner.model.pods import PreStop, ReadinessProbe, Workload
from planner.sources.kubernetes import KubernetesApi, read_pods, read_workload
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import MERGE, Json

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APPS = "/apis/apps/v1/namespaces"
HPAS = "/apis/autoscaling/v2/namespaces"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/namespaces"


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    with KubernetesApi.connect(control_plane.kubeconfig) as api:
        yield api


def read(api: KubernetesApi, namespace: str, name: str = "app") -> Deployment:
    return read_workload(api, namespace, name, datetime.now(UTC))


def until(cluster: ControlPlane, look: Callable[[], Deployment], good: Callable[[Deployment], bool]) -> Deployment:
    def probe() -> Deployment | None:
        found = look()
        return found if good(found) else None

    return cluster.wait_until("the Deployment as wanted", probe)


def hpa(minimum: int, maximum: int, target: str = "app", kind: str = "Deployment") -> Json:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    spec = {"scaleTargetRef": reference, "minReplicas": minimum, "maxReplicas": maximum, "metrics": [metric]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"{target}-hpa"},
        "spec": spec,
    }


def test_all_facts_of_a_deployment(control_plane: ControlPlane, api: KubernetesApi) -> None:
    namespace = control_plane.namespace()
    probe = {"tcpSocket": {"port": 8080}, "initialDelaySeconds": 3, "periodSeconds": 7, "failureThreshold": 2}
    container = {"readinessProbe": probe, "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}
    document = deployment("app", 10, container, terminationGracePeriodSeconds=45)
    document["spec"] |= {
        "minReadySeconds": 1,
        "progressDeadlineSeconds": 99,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
    control_plane.apply(document, namespace=namespace)
    control_plane.await_available(namespace, "app")
    found = read(api, namespace)
    assert (found.replicas, found.current, found.updated, found.ready, found.available) == (10, 10, 10, 10, 10)
    assert (found.grace_s, found.min_ready_s, found.progress_deadline_s) == (45, 1, 99)
    assert found.update_limits == (3, 2)
    assert (found.is_observed, found.is_paused, found.uses_host_network) == (True, False, False)
    assert found.containers[0].readiness == ReadinessProbe("tcpSocket", 3, 7, 1, 1, 2)
    assert found.containers[0].pre_stop == PreStop("sleep", 5)
    assert (found.autoscalers, found.problems, found.is_complete) == ((), (), True)
    assert [one.manager for one in found.replicas_set_by] == ["kubectl-client-side-apply"]
    assert found.replicas_set_by[0].at is not None


def test_a_rolling_update_stays_within_the_limits_that_we_resolve(
    control_plane: ControlPlane, api: KubernetesApi
) -> None:
    """The controller keeps to the same two numbers: with pods that never get ready it stops exactly there."""
    namespace = control_plane.namespace()
    control_plane.apply(deployment("app", 5), namespace=namespace)
    control_plane.await_available(namespace, "app")
    assert read(api, namespace).update_limits == (2, 1)
    stuck = {"template": {"metadata": {"annotations": {"simulation.consumerplanner.dev/never-ready": "true"}}}}
    control_plane.rest.patch(f"{APPS}/{namespace}/deployments/app", {"spec": stuck}, MERGE)
    # 5 + 2 pods in all, 5 - 1 of them still available.
    found = until(control_plane, lambda: read(api, namespace), lambda one: one.current == 7 and one.available == 4)
    assert found.updated == 3
    time.sleep(1)
    later = read(api, namespace)
    assert (later.current, later.available) == (7, 4)


def test_recreate_has_no_limits(control_plane: ControlPlane, api: KubernetesApi) -> None:
    namespace = control_plane.namespace()
    document = deployment("app", 2)
    document["spec"]["strategy"] = {"type": "Recreate"}
    control_plane.apply(document, namespace=namespace)
    found = read(api, namespace)
    assert found.strategy.kind == "Recreate"
    assert found.update_limits is None


def test_pods_are_those_of_its_replica_sets_and_not_all_that_its_selector_takes(
    control_plane: ControlPlane, api: KubernetesApi
) -> None:
    namespace = control_plane.namespace()
    expressions = deployment("app", 2)
    expression = {"key": "app", "operator": "In", "values": ["app", "x"]}
    expressions["spec"]["selector"] = {"matchExpressions": [expression]}
    stray = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stray", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "main", "image": "local"}]},
    }
    twin = deployment("twin", 1)
    twin["spec"]["template"]["metadata"]["labels"]["extra"] = "1"
    control_plane.apply(expressions, stray, twin, namespace=namespace)
    control_plane.await_available(namespace, "app")
    control_plane.await_available(namespace, "twin")
    found = read(api, namespace)
    assert found.pods is not None
    assert len(found.pods) == 2
    assert {pod.workload for pod in found.pods} == {Workload("Deployment", namespace, "app")}
    assert all(pod.is_ready and pod.ready_at and pod.started_at and pod.node == "node-1" for pod in found.pods)
    everything = {pod.name: pod.workload for pod in read_pods(api, namespace)}
    assert len(everything) == 4
    assert everything["stray"] is None


def test_restarts_and_unready_pods_are_seen(control_plane: ControlPlane, api: KubernetesApi) -> None:
    namespace = control_plane.namespace()
    document = deployment("app", 1, {"command": ["sh", "-c", "exit 1"]})
    prefix = "simulation.consumerplanner.dev/"
    notes = {f"{prefix}restart-backoff-seconds": "0.1", f"{prefix}never-ready": "true"}
    document["spec"]["template"]["metadata"]["annotations"] = notes
    control_plane.apply(document, namespace=namespace)
    found = until(control_plane, lambda: read(api, namespace), lambda one: bool(one.pods and one.pods[0].restarts >= 2))
    assert found.available == 0
    control_plane.kubectl("delete", "deployment", "app", "-n", namespace)


def managers(found: Deployment) -> list[tuple[str, str, str | None]]:
    return [(one.manager, one.operation, one.subresource) for one in found.replicas_set_by]


def without_replicas() -> Json:
    document = deployment("app", 1)
    del document["spec"]["replicas"]
    return document


def test_who_set_the_replicas_is_told(control_plane: ControlPlane, api: KubernetesApi) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(without_replicas(), namespace=namespace)
    # The server notes kubectl for its own default; the manifest that kubectl leaves says that it set none.
    assert managers(read(api, namespace)) == []
    control_plane.apply(deployment("app", 2), namespace=namespace)
    assert managers(read(api, namespace)) == [("kubectl-client-side-apply", "Update", None)]
    control_plane.kubectl("scale", "-n", namespace, "deployment/app", "--replicas=3")
    scaled = read(api, namespace)
    assert managers(scaled) == [("kubectl", "Update", "scale")]
    assert scaled.replicas_set_by[0].at is None


def test_after_server_side_apply_without_replicas_nobody_is_noted_not_even_who_scales(
    control_plane: ControlPlane, api: KubernetesApi
) -> None:
    namespace = control_plane.namespace()
    text = yaml.safe_dump(without_replicas())
    control_plane.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", text=text)
    assert managers(read(api, namespace)) == []
    control_plane.kubectl("scale", "-n", namespace, "deployment/app", "--replicas=3")
    assert (read(api, namespace).replicas, managers(read(api, namespace))) == (3, [])


def test_an_hpa_is_found_with_what_it_wants_and_that_it_set_the_replicas(
    control_plane: ControlPlane, api: KubernetesApi
) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(
        deployment("app", 1), hpa(2, 5), hpa(1, 9, target="other"), hpa(1, 9, target="set", kind="ReplicaSet"),
        namespace=namespace,
    )  # fmt: skip
    found = until(control_plane, lambda: read(api, namespace), lambda one: one.replicas == 2 and bool(one.autoscalers))
    assert found.autoscalers is not None
    assert [(one.kind, one.name, one.minimum, one.maximum) for one in found.autoscalers] == [
        ("HorizontalPodAutoscaler", "app-hpa", 2, 5)
    ]
    assert ("kube-controller-manager", "scale") in {(one.manager, one.subresource) for one in found.replicas_set_by}
    assert found.active_autoscalers == found.autoscalers


def crd() -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {
        "kind": "ScaledObject",
        "listKind": "ScaledObjectList",
        "plural": "scaledobjects",
        "singular": "scaledobject",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "scaledobjects.keda.sh", "labels": {"consumerplanner.dev/made-by": "tests"}},
        "spec": {"group": "keda.sh", "names": names, "scope": "Namespaced", "versions": [version]},
    }


@pytest.fixture
def keda(control_plane: ControlPlane) -> Iterator[None]:
    """KEDA's ScaledObject kind, without KEDA itself: objects are stored, nobody acts on them."""
    names = control_plane.define(crd())
    yield
    control_plane.kubectl("delete", "--wait=true", *names)


@pytest.mark.usefixtures("keda")
def test_scaled_objects_are_found_paused_ones_marked(control_plane: ControlPlane, api: KubernetesApi) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(deployment("app", 1), namespace=namespace)
    paused = {"autoscaling.keda.sh/paused-replicas": "4"}
    objects = {
        "busy": ({"scaleTargetRef": {"name": "app"}, "minReplicaCount": 2, "maxReplicaCount": 30}, {}),
        "idle": ({"scaleTargetRef": {"name": "app", "kind": "Deployment"}}, paused),
        "other": ({"scaleTargetRef": {"name": "else"}}, {}),
        "set": ({"scaleTargetRef": {"name": "app", "kind": "StatefulSet"}}, {}),
    }
    for name, (spec, notes) in objects.items():
        body = {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": name, "annotations": notes},
            "spec": spec,
        }
        control_plane.rest.create(f"{SCALED_OBJECTS}/{namespace}/scaledobjects", body)
    owner = control_plane.rest.get(f"{SCALED_OBJECTS}/{namespace}/scaledobjects/busy")["metadata"]["uid"]
    made = hpa(2, 30)
    reference = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "name": "busy",
        "uid": owner,
        "controller": True,
    }
    made["metadata"]["ownerReferences"] = [reference]
    control_plane.rest.create(f"{HPAS}/{namespace}/horizontalpodautoscalers", made)
    found = read(api, namespace)
    assert found.autoscalers is not None
    by_name = {one.name: one for one in found.autoscalers}
    assert by_name["busy"] == Autoscaler("ScaledObject", "busy", 2, 30)
    assert by_name["idle"] == Autoscaler("ScaledObject", "idle", 0, 100, is_paused=True, paused_at=4)
    assert by_name["app-hpa"].made_by == "ScaledObject busy"
    assert set(by_name) == {"busy", "idle", "app-hpa"}
    assert {one.name for one in found.active_autoscalers or ()} == {"busy", "app-hpa"}


def test_no_keda_is_an_answer(control_plane: ControlPlane, api: KubernetesApi) -> None:
    assert api.scaled_objects(control_plane.namespace()) == []


def test_an_unknown_deployment_is_named_with_those_that_are_there(
    control_plane: ControlPlane, api: KubernetesApi
) -> None:
    namespace = control_plane.namespace()
    with pytest.raises(
        UnknownNameError, match=rf"no Deployment absent in namespace {namespace}, and no other: correct"
    ):
        read(api, namespace, "absent")
    control_plane.apply(deployment("app", 0), deployment("bpp", 0), namespace=namespace)
    with pytest.raises(UnknownNameError, match=r"no Deployment absent .*, but app, bpp: correct"):
        read(api, namespace, "absent")


@pytest.mark.parametrize("name", ["", "App", "a/b", "../secrets", "x" * 300])
def test_an_impossible_name_is_refused_before_anything_is_sent(api: KubernetesApi, name: str) -> None:
    with pytest.raises(BadInputError, match=r"Deployment .* cannot be"):
        read(api, "default", name)
    with pytest.raises(BadInputError, match=r"namespace .* cannot be"):
        read(api, name, "app")


def test_long_lists_come_in_pages(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(deployment("app", 7), namespace=namespace)
    control_plane.await_available(namespace, "app")
    monkeypatch.setattr("planner.sources.kubernetes.api._PAGE", 2)
    with KubernetesApi.connect(control_plane.kubeconfig) as api:
        assert len({pod["metadata"]["uid"] for pod in api.pods(namespace)}) == 7


def test_a_server_that_is_gone_is_named_within_the_deadline() -> None:
    with ControlPlane.start() as cluster, KubernetesApi.connect(cluster.kubeconfig, deadline_s=15) as api:
        cluster.apply(deployment("app", 1), namespace="default")
        assert read(api, "default").replicas == 1
        cluster.api_server.freeze()
        with pytest.raises(
            OutOfReachError, match=rf"{cluster.server}.*: (get Deployment|list pods).*no answer within 15 s"
        ):
            read(api, "default")
        cluster.api_server.resume()
        cluster.wait_until("readiness", cluster.is_ready)
        assert read(api, "default").replicas == 1
        cluster.api_server.kill()
        with pytest.raises(OutOfReachError, match=rf"{cluster.server} cannot be reached: get Deployment default/app"):
            read(api, "default")
        with pytest.raises(OutOfReachError, match="cannot be reached"):
            read_pods(api, None)


def test_a_certificate_of_another_authority_is_refused(control_plane: ControlPlane, tmp_path: Path) -> None:
    own = tmp_path / "other.crt"
    key = ["-keyout", str(tmp_path / "key"), "-out", str(own), "-subj", "/CN=other", "-days", "1"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *key], check=True, capture_output=True)
    text = control_plane.kubeconfig.read_text().replace(str(control_plane.ca_file), str(own))
    (tmp_path / "config").write_text(text)
    with (
        KubernetesApi.connect(tmp_path / "config") as api,
        pytest.raises(OutOfReachError, match=r"(?i)cannot be reached.*certificate"),
    ):
        read(api, "default")
