"""``planner advise`` on real groups that drown: an address alone, a decision in minutes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.policy import read_policy
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

LONGEST_S = 600
"""A stranger has an answer within five minutes of watching."""

JAVA_CLIENTS = ("consumer-advised-1", "consumer-advised-2", "consumer-advised-3")
"""As the Java client names those of one process where nobody names them (``ConsumerConfig``)."""

INSTANCES = ("2412#91853041297", "2412#91860112503")
"""As RocketMQ's client names those of one process where nobody names them (``UtilAll.getPid() + "#" + nanoTime``)."""


def test_three_default_kafka_consumers_are_too_few(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    kafka_cluster.create_topic("advised", partitions=12)
    process = kafka_cluster.load().start()
    for client in JAVA_CLIENTS:
        process.start_consumer(client, group="advised", topics=["advised"], service_ms=20)
        process.await_event(client, "assigned")
    # 180 records/s for three consumers that can do 50 each.
    process.produce("p", [PartitionCurve("advised", number, ((0.0, 15.0), (900.0, 15.0))) for number in range(12)])

    def flows() -> bool:
        return {delivery.client for delivery in process.deliveries()} == set(JAVA_CLIENTS)

    process.process.wait_until("records at each consumer", flows, REQUEST_S)
    snap, policy = tmp_path / "snap.json", tmp_path / "advised.yaml"
    servers = ("--kafka", kafka_cluster.bootstrap, "--group", "advised")
    answer = planner("advise", *servers, "--at-most", LONGEST_S, "--format", "json", "--snapshot", snap)
    written = planner("init", *servers, "-o", policy)
    process.stop()
    assert answer.returncode == 0, answer.stderr
    advice = json.loads(answer.stdout)
    assert (advice["decision"], advice["cause"], advice["from"]) == ("scale", "TooFewConsumers", 3), answer.stdout
    assert 5 <= advice["to"] <= 12, "180 records/s at 80 % of 50 each are 4.5 consumers"
    assert advice["cost"]["movedQueues"]["of"] == 12
    assert SNAPSHOT.read(snap).window_s < LONGEST_S
    assert written.returncode == 0, written.stderr
    assert "Members share an address: state in spec.membersPerPod" in written.stdout
    read = read_policy(policy).spec
    assert (read.source.group, read.objective.decides_by) == ("advised", "Horizon")


def test_a_rocketmq_installation_is_sorted_by_what_is_to_be_gained(
    rocketmq_cluster: Callable[[str], RocketMQCluster],
) -> None:
    cluster = rocketmq_cluster(NEW)
    load = cluster.load(NEW)
    brokers = [broker.name for broker in cluster.brokers]
    # Two consumers that can do 100 messages/s each.
    for group, all_queues in (("advised-busy", 400.0), ("advised-idle", 20.0)):
        cluster.create_topic(group, 8 // len(brokers))
        load.start_consumer(group=group, topics=[group], instance=INSTANCES, threads=5, service_ms=50)
        rate = all_queues / 8
        load.start_producer(
            QueueCurve(group, name, queue, ((0, rate), (900, rate)))
            for name in brokers
            for queue in range(8 // len(brokers))
        )
    answer = planner("advise", "-n", cluster.name_server, "--all", "--at-most", LONGEST_S, "--format", "json")
    load.stop()
    assert answer.returncode == 0, answer.stderr
    items = [item for item in json.loads(answer.stdout)["items"] if item["group"].startswith("advised")]
    assert [item["group"] for item in items] == ["advised-busy", "advised-idle"], answer.stdout
    assert (items[0]["cause"], items[0]["from"]) == ("TooFewConsumers", 2)
    assert items[1]["to"] <= items[1]["from"] == 2
