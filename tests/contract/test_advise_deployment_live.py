"""``planner advise`` and ``planner init`` with a Deployment: default Kafka clients in pods, brokers and API server.

What ``advise`` names as the next command is run as it stands, and so is the policy that comes of it.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from planner.documents.data import SNAPSHOT
from planner.documents.policy import read_policy
from tests.clusters.kafka import CLIENT, REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import java_kafka_consumer
from tests.unit.cli.test_cli import planner, refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP = "door-shop"
PARTITIONS = 8
GRACE_S = 45
LONGEST_S = 600


@dataclass(frozen=True)
class Shop:
    """A namespace with two Deployments: ``payments`` runs the group's two members, ``sleepers`` three idle pods."""

    cluster: ControlPlane
    bootstrap: str
    namespace: str

    def named(self, name: str, kubeconfig: Path | None = None) -> tuple[object, ...]:
        """Return the options for the group and a Deployment of the namespace."""
        access = ("--deployment", f"{self.namespace}/{name}", "--kubeconfig", kubeconfig or self.cluster.kubeconfig)
        return ("--kafka", self.bootstrap, "--group", GROUP, *access)


@pytest.fixture(scope="module")
def shop(
    control_plane: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    kafka_cluster.create_topic(GROUP, partitions=PARTITIONS)
    namespace = control_plane.namespace(GROUP)
    container = java_kafka_consumer(
        kafka_cluster.bootstrap,
        group=GROUP,
        topic=GROUP,
        client_version=CLIENT,
        delivery_log=str(tmp_path_factory.mktemp("deliveries") / "$(POD_NAME)"),
        settings={},
        service_ms=50,
    )
    payments = deployment("payments", 2, container, terminationGracePeriodSeconds=GRACE_S)
    control_plane.apply(payments, deployment("sleepers", 3, {"command": ["sleep", "3600"]}), namespace=namespace)
    process = kafka_cluster.load().start()
    # 64 records/s for two consumers that can do 20 each.
    curve = ((0.0, 8.0), (1_800.0, 8.0))
    process.produce("p", [PartitionCurve(GROUP, number, curve) for number in range(PARTITIONS)])
    for name in ("payments", "sleepers"):
        control_plane.await_available(namespace, name, REQUEST_S)
    yield Shop(control_plane, kafka_cluster.bootstrap, namespace)
    process.stop()
    control_plane.kubectl("delete", "deployment", "--all", "-n", namespace)


def test_the_advice_is_of_pods_and_its_next_command_writes_a_policy_that_is_taken_as_it_stands(
    shop: Shop, tmp_path: Path
) -> None:
    advice = planner("advise", *shop.named("payments"), "--at-most", LONGEST_S, cwd=tmp_path)
    assert advice.returncode == 0, advice.stderr
    workload = f"{shop.namespace}/payments"
    headline, *_, last = advice.stdout.splitlines()
    assert headline.startswith(f"SCALE UP group {GROUP} from 2 to "), advice.stdout
    assert headline.endswith(f" pods ({workload})")
    assert " pods more; " in advice.stdout
    assert f"--deployment {workload} --kubeconfig {shop.cluster.kubeconfig}" in last

    program, *arguments = shlex.split(last.removeprefix("Next: "))
    assert program == "planner"
    written = planner(*arguments, cwd=tmp_path)
    assert (written.returncode, written.stderr) == (0, "")
    file = tmp_path / f"{GROUP}.yaml"
    policy = read_policy(file)
    assert (policy.metadata.namespace, policy.spec.scale_target_ref.name) == (shop.namespace, "payments")
    assert policy.spec.kubernetes is not None
    assert policy.spec.kubernetes.kubeconfig_file == shop.cluster.kubeconfig
    assert (policy.spec.min_replicas, policy.spec.max_replicas) == (1, PARTITIONS)
    assert f"2 pods now, {GRACE_S} s for a pod to stop" in file.read_text()

    taken = planner("snapshot", "--policy", file, "-o", "snap.json", "--observe-seconds", 10, cwd=tmp_path)
    assert taken.returncode == 0, taken.stderr
    snapshot = SNAPSHOT.read(tmp_path / "snap.json")
    assert snapshot.deployment is not None
    assert (snapshot.deployment.replicas, snapshot.deployment.grace_s, len(snapshot.pods)) == (2, GRACE_S, 2)
    planned = planner("plan", "snap.json", "--policy", file, "--format", "json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert '"cause": "IncompleteData"' in planned.stdout, "ten seconds of the window's ten minutes"


def test_init_finds_the_deployment_by_its_pods(shop: Shop, tmp_path: Path) -> None:
    servers = ("--kafka", shop.bootstrap, "--group", GROUP, "--kubeconfig", shop.cluster.kubeconfig)
    found = planner("init", *servers, "--format", "json", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert f'"deployment": "{shop.namespace}/payments"' in found.stdout


def test_bounds_are_the_autoscalers_and_the_member_label_is_known_where_pods_carry_it(
    shop: Shop, tmp_path: Path
) -> None:
    kubectl, where = shop.cluster.kubectl, ("-n", shop.namespace)
    kubectl("autoscale", "deployment/payments", *where, "--min=2", "--max=6", "--cpu=50%")
    pods = [
        pod["metadata"]["name"] for pod in shop.cluster.rest.get(f"/api/v1/namespaces/{shop.namespace}/pods")["items"]
    ]
    for pod in pods:
        kubectl("label", "pod", pod, f"example.com/client={pod}", *where)
    written = planner("init", *shop.named("payments"), "-o", "policy.yaml", cwd=tmp_path)
    kubectl("delete", "hpa", "payments", *where)
    assert (written.returncode, written.stderr) == (0, "")
    spec = yaml.safe_load((tmp_path / "policy.yaml").read_text())["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 6)
    assert spec["kubernetes"]["memberLabel"] == "example.com/client"
    assert "HorizontalPodAutoscaler payments sets the replicas, from 2 to 6" in (tmp_path / "policy.yaml").read_text()
    taken = planner("snapshot", "--policy", "policy.yaml", "-o", "snap.json", "--observe-seconds", 0, cwd=tmp_path)
    assert taken.returncode == 0, taken.stderr
    snapshot = SNAPSHOT.read(tmp_path / "snap.json")
    assert (snapshot.member_label, len(snapshot.pods)) == ("example.com/client", 2)


@pytest.mark.parametrize("command", ["advise", "init"])
def test_a_deployment_that_is_not_there_and_one_without_rights_are_one_sentence_each(
    shop: Shop, tmp_path: Path, command: str
) -> None:
    absent = planner(command, *shop.named("paymnets"), cwd=tmp_path)
    refused(absent, 2, f"no Deployment paymnets in namespace {shop.namespace}, but payments, sleepers: correct")
    account = shop.cluster.service_account(shop.namespace, f"nobody-{command}")
    forbidden = planner(command, *shop.named("payments", account), cwd=tmp_path)
    refused(forbidden, 3, "does not allow it", f"get Deployment {shop.namespace}/payments", "k8s/rbac")
    servers = shop.named("payments", account)[:4]
    unnamed = planner("init", *servers, "--kubeconfig", account, cwd=tmp_path)
    refused(unnamed, 3, "list pods in all namespaces", "or name the Deployment with --deployment NAMESPACE/NAME")
    assert not (tmp_path / "policy.yaml").exists()


def test_another_number_of_pods_than_members_is_one_sentence(shop: Shop, tmp_path: Path) -> None:
    sentence = (
        f"planner: Deployment {shop.namespace}/sleepers asks for 3 pods, but the group has 2 members: the planner "
        "holds until each pod runs as many members as the others and no member runs elsewhere"
    )
    written = planner("init", *shop.named("sleepers"), cwd=tmp_path)
    assert (written.returncode, written.stderr) == (0, f"{sentence}\n")
    advised = planner("advise", *shop.named("sleepers"), "--at-most", 10, cwd=tmp_path)
    assert advised.returncode == 0, advised.stderr
    assert advised.stderr.count(sentence) == 1
