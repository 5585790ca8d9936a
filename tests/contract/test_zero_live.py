"""To zero after a quiet time, from zero once messages wait, on real API server and brokers: no message is lost."""

import json
from pathlib import Path

import pytest

from planner.documents.plan import PLAN, read_document
from tests.clusters.deliveries import lost, read_given
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.loops import APP, READY_S, WAIT_S, Limits
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

GROUP, PARTITIONS, RATE = "zero-orders", 2, 5.0
SHORT = ((0.0, RATE), (3.0, RATE))
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}
QUIET_S = 60
"""The shortest that a policy may state."""


class Idle:
    """One pod of one consumer; ``folder`` holds policy, snapshots, plans and what the consumer was given."""

    def __init__(self, cluster: ControlPlane, kafka: KafkaCluster, folder: Path) -> None:
        self.cluster, self.folder, self.namespace = cluster, folder, cluster.namespace("zero")
        log = f"{folder}/$(POD_NAME).tsv"
        container = kafka_consumer(kafka.bootstrap, group=GROUP, topic=GROUP, delivery_log=log, settings=SETTINGS)
        cluster.apply(deployment(APP, 1, container), namespace=self.namespace)
        cluster.await_available(self.namespace, APP, READY_S)
        source = f"system: kafka, bootstrapServers: {kafka.bootstrap.split(',')}, cluster: test, topics: [{GROUP}]"
        text = Limits(0, 1, 40.0).policy(GROUP, self.namespace, source, cluster.kubeconfig)
        zero = f"  scaleToZero: {{afterSeconds: {QUIET_S}}}\n  strategy: range\n"
        self.policy = folder / "policy.yaml"
        self.policy.write_text(text + zero, encoding="utf-8")

    def replicas(self) -> int:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{APP}"
        return int(self.cluster.rest.get(path)["spec"]["replicas"])

    def change(self, watch_s: int) -> int:
        """Watch, plan, approve and apply; return how many pods the plan ended with."""
        taken, path = self.folder / "snapshot.json", self.folder / f"plan-{watch_s}.yaml"
        for words in (
            ("snapshot", "-p", self.policy, "-o", taken, "--observe-seconds", watch_s),
            ("plan", taken, "-p", self.policy, "-o", path),
            ("approve", path),
        ):
            found = planner(*words)
            assert found.returncode == 0, (found.stdout, found.stderr)
        found = planner("apply", path, "--policy", self.policy, "--kubeconfig", self.cluster.kubeconfig, "-o", "json")
        assert found.returncode == 0, (found.stdout, found.stderr)
        status = json.loads(found.stdout)["status"]
        assert status["phase"] == "Succeeded"
        moved = next(one for one in status["verdict"]["figures"] if one["name"] == "moved queues")
        assert moved["fit"] == "inside", moved["sentence"]
        return PLAN.parse(read_document(path), str(path)).final_replicas


def test_a_quiet_group_stops_and_starts_once_messages_wait(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path: Path
) -> None:
    """Red where what waits, or what came while nobody ran, is skipped, and where the last pod stops too early."""
    kafka_cluster.create_topic(GROUP, PARTITIONS)
    idle = Idle(control_plane_with_plans, kafka_cluster, tmp_path)
    producing = kafka_cluster.load(CLIENT).start()
    curves = [PartitionCurve(GROUP, number, SHORT) for number in range(PARTITIONS)]
    sent: dict[tuple[str, ...], int] = {}

    def send(name: str) -> None:
        producing.produce(name, curves)
        for (topic, number), (acknowledged, failed) in producing.sent(name, WAIT_S).items():
            assert not failed
            sent[topic, str(number)] = sent.get((topic, str(number)), 0) + acknowledged

    def all_given() -> bool | None:
        return True if not lost(sent, read_given(tmp_path)) else None

    try:
        send("zero-first")
        idle.cluster.wait_until("every message to be given to the consumer", all_given, WAIT_S)
        assert (idle.change(QUIET_S + 15), idle.replicas()) == (0, 0)
        send("zero-second")
        assert lost(sent, read_given(tmp_path))
        assert (idle.change(2), idle.replicas()) == (1, 1)
        idle.cluster.wait_until("every message to be given to the consumer", all_given, WAIT_S)
    finally:
        producing.stop()
        control_plane_with_plans.kubectl("delete", "deployment", "--all", "-n", idle.namespace)
