"""Real consumers in process-backed pods, real brokers, a real API server: which pod is which member."""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.model.deployments import Deployment
from planner.model.membership import GroupMember
from planner.model.pods import Workload
from planner.sources.kafka import KafkaAdmin
from planner.sources.kafka import observe_group as observe_kafka
from planner.sources.kubernetes import KubernetesApi, read_pods, read_workload
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from planner.workload import Evidence, Serving, check_named, clues_of, join_members, serving
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.patience import PATIENT, if_known
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner, refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

Clusters = Callable[[str], RocketMQCluster]

# One librdkafka consumer in a pod: ready once it has been given partitions, gone from the group when told to stop.
KAFKA_CONSUMER = """
import os, pathlib, signal, sys
from confluent_kafka import Consumer
going = [True]
signal.signal(signal.SIGTERM, lambda *_: going.clear())
server, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": server, "group.id": group, "client.id": os.environ["CLIENT"]})
consumer.subscribe([topic], on_assign=lambda *_: pathlib.Path("assigned").touch())
while going:
    consumer.poll(0.1)
consumer.close()
"""


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    with KubernetesApi.connect(control_plane.kubeconfig) as api:
        yield api


def read(api: KubernetesApi, namespace: str, name: str) -> Deployment:
    return read_workload(api, namespace, name, datetime.now(UTC))


def members_of(rocketmq: RocketMQCluster, group: str) -> tuple[GroupMember, ...]:
    with RocketMQAdmin(rocketmq.name_server, limits=PATIENT) as admin:
        return observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC)).members


class Shop:
    """A namespace whose Deployments consume the topic ``pods`` of a real broker in a group of the same name."""

    def __init__(self, cluster: ControlPlane, rocketmq: RocketMQCluster, api: KubernetesApi, group: str) -> None:
        rocketmq.create_topic("pods", 4)
        self.cluster, self.rocketmq, self.api, self.group = cluster, rocketmq, api, group
        self.namespace = cluster.namespace(group)

    def run(self, name: str, replicas: int, *, host_network: bool = False, **consumer: str) -> None:
        """Start a Deployment of consumers; return when all its pods are ready."""
        container = rocketmq_consumer(
            self.rocketmq.name_server, group=self.group, topics=["pods"], client_version=NEW, **consumer
        )
        document = deployment(name, replicas, container, **({"hostNetwork": True} if host_network else {}))
        self.cluster.apply(document, namespace=self.namespace)
        self.cluster.await_available(self.namespace, name)

    def members(self, count: int) -> Sequence[GroupMember]:
        """Return the group's members once the brokers know as many."""

        def probe() -> Sequence[GroupMember] | None:
            found = if_known(lambda: members_of(self.rocketmq, self.group))
            return found if found is not None and len(found) == count else None

        return self.cluster.wait_until(f"{count} members", probe)

    def serving(self, count: int) -> Serving:
        """Return who serves the group, by all pods of the namespace."""
        return serving(read_pods(self.api, self.namespace), [clues_of(one) for one in self.members(count)])

    def workload(self, name: str) -> Workload:
        """Return a Deployment's name as pods have it."""
        return Workload("Deployment", self.namespace, name)

    def end(self) -> None:
        """Remove the consumers and wait until the brokers have forgotten them: other tests share the machine."""
        self.cluster.kubectl("delete", "deployment", "--all", "-n", self.namespace)
        self.cluster.wait_until("no pods", lambda: not read_pods(self.api, self.namespace))


@pytest.fixture
def shop(
    control_plane: ControlPlane, rocketmq_cluster: Clusters, api: KubernetesApi, request: pytest.FixtureRequest
) -> Iterator[Shop]:
    found = Shop(control_plane, rocketmq_cluster(NEW), api, request.param)
    yield found
    found.end()


@pytest.mark.parametrize("shop", ["join-default"], indirect=True)
def test_consumers_that_name_themselves_are_joined_by_their_pods_address(shop: Shop) -> None:
    """What every Deployment has whose author never thought of names: ``podIP@pid#nanoseconds``."""
    shop.run("app", 2, instance="DEFAULT")
    members = shop.members(2)
    assert all("#" in one.identity for one in members)
    found = read(shop.api, shop.namespace, "app")
    assert found.pods is not None
    join = join_members(found.pods, [clues_of(one) for one in members])
    assert join.problems == ()
    assert {link.by for link in join.links} == {(Evidence.ADDRESS,)}
    assert len(join.links) == 2
    assert all(pod.addresses == (member.partition("@")[0],) for member, pod in join.pod_of.items())
    served = shop.serving(2)
    assert served.deployment == found.workload
    assert served.problems == ()
    assert check_named(found.workload, served) is None
    # One pod less, and the member that has left is the one that this pod was.
    shop.cluster.kubectl("scale", "-n", shop.namespace, "deployment/app", "--replicas=1")
    (left,) = shop.members(1)
    fewer = read(shop.api, shop.namespace, "app")
    live = [pod for pod in fewer.pods or () if not pod.is_ending]
    assert [pod.name for pod in live] == [join.pod_of[left.identity].name]


@pytest.mark.parametrize("shop", ["join-host"], indirect=True)
def test_pods_that_share_the_hosts_network_are_told_apart_by_name_or_not_at_all(shop: Shop) -> None:
    shop.run("anonymous", 2, host_network=True, instance="DEFAULT")
    members = shop.members(2)
    pods = read(shop.api, shop.namespace, "anonymous").pods
    assert pods is not None
    join = join_members(pods, [clues_of(one) for one in members])
    assert join.links == ()
    assert len(join.members_without_pod) == len(join.pods_without_member) == 2
    names = sorted(pod.name for pod in pods)
    for member, problem in zip(members, join.member_problems, strict=True):
        assert f"member {member.identity} could be any of the pods {', '.join(names)}" in problem
    assert shop.serving(2).deployment is None
    # The same pods with their name as instance name: told apart.
    shop.cluster.kubectl("delete", "deployment", "anonymous", "-n", shop.namespace)
    shop.run("named", 2, host_network=True)
    # Those that end are members for as long as their brokers have not heard of it.
    shop.cluster.wait_until("their end", lambda: not any("#" in one.identity for one in shop.members(2)))
    named = join_members(read(shop.api, shop.namespace, "named").pods or (), [clues_of(one) for one in shop.members(2)])
    assert named.problems == ()
    assert {link.member for link in named.links} == {f"127.0.0.1@{link.pod.name}" for link in named.links}
    assert shop.serving(2).deployment == shop.workload("named")


@pytest.mark.parametrize("shop", ["join-two"], indirect=True)
def test_two_deployments_two_members_in_a_pod_and_a_consumer_outside_are_all_named(shop: Shop, tmp_path: Path) -> None:
    shop.run("old", 1)
    shop.run("new", 1, instance="$(POD_NAME)-1,$(POD_NAME)-2")
    outside = shop.rocketmq.load(NEW).start_consumer(group=shop.group, topics=["pods"], instance="laptop")
    served = shop.serving(4)
    assert {(workload.name, len(members)) for workload, members in served.members} == {("old", 1), ("new", 2)}
    assert served.deployment is None
    told = "\n".join(served.problems)
    assert "the group is served by 2 workloads" in told
    assert "runs 1 of the 2 members that another pod runs" in told
    assert f"member {outside.client_id} " in told
    assert served.join.members_without_pod == (outside.client_id,)
    other = Workload("Deployment", shop.namespace, "absent")
    assert "runs no member of the group; these do: Deployment" in (check_named(other, served) or "")
    policy, snap = policy_of(shop, "old", tmp_path), tmp_path / "snap.json"
    taken = planner("snapshot", "-p", policy, "-o", snap, "--observe-seconds", 5)
    assert taken.returncode == 0, taken.stderr
    held = " ".join(planner("plan", snap, "-p", policy, "-o", "-", "--at", "snapshot").stdout.split())
    assert "holdCause: SeveralDeployments" in held
    assert f"Deployment {shop.namespace}/old (1), Deployment {shop.namespace}/new (2), and 1 elsewhere" in held, held
    outside.stop()


def policy_of(shop: Shop, name: str, folder: Path) -> Path:
    """Write the policy of the shop's group and that Deployment."""
    policy = folder / "policy.yaml"
    text = POLICY.replace("127.0.0.1:9876", shop.rocketmq.name_server).replace("group: shop", f"group: {shop.group}")
    text = text.replace("metadata: {name: shop}", f"metadata: {{name: shop, namespace: {shop.namespace}}}")
    text = text.replace("scaleTargetRef: {name: shop-consumer}", f"scaleTargetRef: {{name: {name}}}")
    extra = f"  kubernetes: {{kubeconfigFile: {shop.cluster.kubeconfig}}}\n  capacity: {{messagesPerSecond: 100}}\n"
    policy.write_text(text + extra + "  freshness: {minCompleteness: 0.01}\n", encoding="utf-8")
    return policy


def kafka_container(bootstrap: str, client: str) -> Json:
    return {
        "command": [sys.executable, "-c", KAFKA_CONSUMER, bootstrap, "join-kafka", "join-kafka"],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CLIENT", "value": client},
        ],
        "readinessProbe": {"exec": {"command": ["test", "-e", "assigned"]}, "periodSeconds": 1, "timeoutSeconds": 60},
    }


def test_kafka_members_are_joined_by_client_id_and_their_nodes_address_alone_tells_nothing(
    control_plane: ControlPlane, kafka_cluster: KafkaCluster, api: KubernetesApi
) -> None:
    """The broker sees the node's address here, as it does wherever pods reach it through address translation."""
    kafka_cluster.create_topic("join-kafka", 4)
    namespace = control_plane.namespace("kafka")
    clients = {"named": "$(POD_NAME)-orders", "plain": "rdkafka"}
    for name, client in clients.items():
        control_plane.apply(deployment(name, 1, kafka_container(kafka_cluster.bootstrap, client)), namespace=namespace)
    for name in clients:
        control_plane.await_available(namespace, name)

    def look() -> Sequence[GroupMember] | None:
        with KafkaAdmin(kafka_cluster.bootstrap.split(",")) as admin:
            sample = observe_kafka(admin, cluster=None, group="join-kafka", topics=None, at=datetime.now(UTC))
        return sample.members if len(sample.members) == 2 else None

    members = control_plane.wait_until("both members", look)
    served = serving(read_pods(api, namespace), [clues_of(one) for one in members])
    (link,) = served.join.links
    assert link.by == (Evidence.NAME,)
    assert link.member.startswith(f"{link.pod.name}-orders")
    assert served.deployment == Workload("Deployment", namespace, "named")
    (unknown,) = served.join.members_without_pod
    assert f"member {unknown} comes from address 127.0.0.1 of node node-1" in "\n".join(served.problems)
    control_plane.kubectl("delete", "deployment", "--all", "-n", namespace)


@pytest.mark.parametrize("shop", ["join-snapshot"], indirect=True)
def test_a_policys_snapshot_has_its_deployment_and_an_autoscaler_makes_the_plan_hold(
    shop: Shop, tmp_path: Path
) -> None:
    shop.run("app", 2)
    shop.members(2)
    policy = policy_of(shop, "app", tmp_path)
    snap = tmp_path / "snap.json"

    found = planner("snapshot", "-p", policy, "-o", snap, "--observe-seconds", 5)
    assert (found.returncode, found.stderr) == (0, "")
    taken = SNAPSHOT.read(snap)
    assert taken.deployment is not None
    assert (taken.deployment.replicas, taken.deployment.ready) == (2, 2)
    assert {link.pod for link in taken.pods} == {pod.name for pod in taken.deployment.pods or ()}
    assert [link.client for link in taken.pods] == list(taken.clients)
    free = planner("plan", snap, "-p", policy, "-o", "-", "--at", "snapshot")
    assert "sets the replicas" not in free.stdout

    shop.cluster.kubectl("autoscale", "deployment/app", "-n", shop.namespace, "--min=1", "--max=4", "--cpu=50%")
    planner("snapshot", "-p", policy, "-o", snap, "--observe-seconds", 5)
    held = planner("plan", snap, "-p", policy, "-o", tmp_path / "plan.yaml", "--at", "snapshot")
    assert held.returncode == 0
    assert "HorizontalPodAutoscaler app sets the replicas" in held.stdout

    policy.write_text(policy.read_text().replace("name: app}", "name: gone}"), encoding="utf-8")
    refused(planner("snapshot", "-p", policy, "-o", snap, "--observe-seconds", 0), 2, "gone")
