"""One group over two Deployments on a real API server and real brokers: one plan changes both, and nothing is lost."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.plan import PLAN, read_document
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import MarkVictims
from planner.sources import kafka as kafka_source
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loops import APP, LONG_S, READY_S, WAIT_S, WATCH_S, exactly
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

GROUP, SECOND = "split-orders", "app-next"
PARTITIONS, RATE = 6, 2.0
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}
REFS = f"scaleTargetRefs: [{{name: {APP}, weight: 2, minReplicas: 1}}, {{name: {SECOND}}}]"


class SplitGroup:
    """One pod of each Deployment; ``folder`` holds policy, snapshots and plans."""

    def __init__(self, cluster: ControlPlane, kafka: KafkaCluster, folder: Path) -> None:
        self.cluster, self.kafka, self.folder = cluster, kafka, folder
        self.namespace = cluster.namespace("split-group")
        for name in (APP, SECOND):
            log = f"{folder}/$(POD_NAME).tsv"
            container = kafka_consumer(kafka.bootstrap, group=GROUP, topic=GROUP, delivery_log=log, settings=SETTINGS)
            cluster.apply(deployment(name, 1, container), namespace=self.namespace)
        for name in (APP, SECOND):
            cluster.await_available(self.namespace, name, READY_S)

    def write_policy(self, count: int) -> Path:
        source = f"system: kafka, bootstrapServers: {self.kafka.bootstrap.split(',')}, cluster: test"
        text = exactly(count).policy(GROUP, self.namespace, source, self.cluster.kubeconfig)
        one = f"scaleTargetRef: {{kind: Deployment, name: {APP}}}"
        assert one in text
        path = self.folder / "policy.yaml"
        path.write_text(text.replace(one, REFS), encoding="utf-8")
        return path

    def members(self) -> int:
        with kafka_source.KafkaAdmin(self.kafka.bootstrap.split(",")) as admin:
            found = kafka_source.observe_group(admin, cluster=None, group=GROUP, topics=None, at=datetime.now(UTC))
        return len(found.members)

    def replicas(self) -> dict[str, int]:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/"
        return {name: int(self.cluster.rest.get(path + name)["spec"]["replicas"]) for name in (APP, SECOND)}

    def change_to(self, count: int) -> tuple[RolloutPlan, Json]:
        """Take a snapshot, plan, approve and apply; return the plan and its status."""
        policy, taken, path = self.write_policy(count), self.folder / "snapshot.json", self.folder / f"{count}.yaml"
        before = sum(self.replicas().values())
        self.cluster.wait_until("all members", lambda: self.members() == before, WAIT_S)
        for words in (
            ("snapshot", "-p", policy, "-o", taken, "--observe-seconds", WATCH_S),
            ("plan", taken, "-p", policy, "-o", path),
            ("approve", path),
        ):
            found = planner(*words)
            assert found.returncode == 0, (found.stdout, found.stderr)
        plan = PLAN.parse(read_document(path), str(path))
        found = planner("apply", path, "--policy", policy, "--kubeconfig", self.cluster.kubeconfig, "-o", "json")
        assert found.returncode == 0, (found.stdout, found.stderr)
        return plan, json.loads(found.stdout)["status"]


@pytest.fixture(scope="module")
def group(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SplitGroup]:
    kafka_cluster.create_topic(GROUP, PARTITIONS)
    split = SplitGroup(control_plane_with_plans, kafka_cluster, tmp_path_factory.mktemp("split"))
    producing = kafka_cluster.load(CLIENT).start()
    curves = [PartitionCurve(GROUP, number, ((0.0, RATE), (LONG_S, RATE))) for number in range(PARTITIONS)]
    producing.produce("split-producer", curves)
    yield split
    producing.stop()
    control_plane_with_plans.kubectl("delete", "deployment", "--all", "-n", split.namespace)


@pytest.mark.parametrize(("count", "parts"), [(6, {APP: 4, SECOND: 2}), (3, {APP: 2, SECOND: 1})])
def test_one_plan_changes_both_deployments(group: SplitGroup, count: int, parts: dict[str, int]) -> None:
    """Up, then down: red when one Deployment is left out of plan, marks, wait, claim or verdict."""
    plan, status = group.change_to(count)
    assert status["phase"] == "Succeeded", status
    assert group.replicas() == parts
    assert group.members() == count
    moved = next(figure for figure in status["verdict"]["figures"] if figure["name"] == "moved queues")
    assert moved["fit"] == "inside", moved
    marked = {step.deployment: step.pods for step in plan.steps if isinstance(step, MarkVictims)}
    if count < len(plan.preconditions.members):
        assert set(marked) == {APP, SECOND}
        live = group.cluster.rest.get(f"/api/v1/namespaces/{group.namespace}/pods")["items"]
        left = {each["metadata"]["name"] for each in live if "deletionTimestamp" not in each["metadata"]}
        assert not left.intersection(pod for pods in marked.values() for pod in pods)
