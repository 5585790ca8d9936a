"""Record the snapshots of examples/migrations: real groups whose consumers run in pods of a real control plane.

``python -m tests.load.record_migrations examples/migrations``; names behind it are the only ones to be recorded. The
policies that lie there say how each is read.
"""

import sys
from pathlib import Path

import yaml

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.model.snapshot import GroupSnapshot
from planner.rollout.migrations.kafka import JAVA_ASSIGNORS
from planner.simulation.candidates import unsettled_queues
from planner.sources.live import SAMPLE_EVERY_S, watch
from planner.storage.files import write_atomically
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import java_kafka_consumer, rocketmq_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve

NAMESPACE = "shop"
WATCHED_S = 65.0
STEADY = ((0.0, 5.0), (600.0, 5.0))
KAFKA_CONSUMER = """
import os, pathlib, signal, sys, time
from confluent_kafka import Consumer
going = [True]
signal.signal(signal.SIGTERM, lambda *_: going.clear())
server, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": server, "group.id": group, "client.id": os.environ["CLIENT"]})
consumer.subscribe([topic], on_assign=lambda *_: pathlib.Path("assigned").touch())
while going:
    if consumer.poll(0.1) is not None:
        time.sleep(0.005)
consumer.close()
"""


def main(folder: Path, *names: str) -> None:
    """Write the snapshots of these names into the folder, all of them where none is named."""
    wanted = names or ("shop-orders", "shop-payments", "shop-invoices")
    with ControlPlane.start() as cluster:
        cluster.rest.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        if "shop-orders" in wanted:
            with RocketMQCluster.start(NEW, brokers=2) as rocketmq:
                record_rocketmq(cluster, rocketmq, folder)
        with KafkaCluster.start(brokers=2, settings={"group.initial.rebalance.delay.ms": "0"}) as kafka:
            if "shop-payments" in wanted:
                record_kafka(cluster, kafka, folder)
            if "shop-invoices" in wanted:
                record_java_kafka(cluster, kafka, folder)


def record_rocketmq(cluster: ControlPlane, rocketmq: RocketMQCluster, folder: Path) -> None:
    """Four Java consumers of 16 queues, 80 messages a second."""
    rocketmq.create_topic("orders", 8)
    load = rocketmq.load(NEW)
    queues = [(broker, number) for broker in ("broker-a", "broker-b") for number in range(8)]
    load.start_producer([QueueCurve("orders", broker, number, STEADY) for broker, number in queues])
    container = rocketmq_consumer(rocketmq.name_server, group="shop-orders", topics=["orders"], client_version=NEW)
    _record(cluster, folder / "shop-orders", 4, container, {"nameServers": rocketmq.name_server.split(";")})
    load.stop()


def record_kafka(cluster: ControlPlane, kafka: KafkaCluster, folder: Path) -> None:
    """Three librdkafka consumers of 12 partitions, 60 records a second."""
    kafka.create_topic("payments", 12)
    load = kafka.load().start()
    load.produce("p", [PartitionCurve("payments", number, STEADY) for number in range(12)])
    names = {"POD_NAME": "metadata.name"}
    container = {
        "command": [sys.executable, "-c", KAFKA_CONSUMER, kafka.bootstrap, "shop-payments", "payments"],
        "env": [
            *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in names.items()),
            {"name": "CLIENT", "value": "$(POD_NAME)"},
        ],
        "readinessProbe": {"exec": {"command": ["test", "-e", "assigned"]}, "periodSeconds": 1},
    }
    _record(cluster, folder / "shop-payments", 3, container, {"bootstrapServers": kafka.bootstrap.split(",")})
    load.stop()


def record_java_kafka(cluster: ControlPlane, kafka: KafkaCluster, folder: Path) -> None:
    """Three Java consumers of 12 partitions, 60 records a second, which take their assignors from a variable."""
    kafka.create_topic("invoices", 12)
    load = kafka.load().start()
    load.produce("p", [PartitionCurve("invoices", number, STEADY) for number in range(12)])
    container = java_kafka_consumer(
        kafka.bootstrap,
        group="shop-invoices",
        topic="invoices",
        client_version=CLIENT,
        delivery_log="deliveries.tsv",
        settings={"partition.assignment.strategy": "$(PARTITION_ASSIGNMENT_STRATEGY)"},
        service_ms=5,
    )
    container["env"].append({"name": "PARTITION_ASSIGNMENT_STRATEGY", "value": JAVA_ASSIGNORS["range"]})
    _record(cluster, folder / "shop-invoices", 3, container, {"bootstrapServers": kafka.bootstrap.split(",")})
    load.stop()


def _record(cluster: ControlPlane, place: Path, replicas: int, container: Json, servers: Json) -> None:
    """Run the consumers in pods and write the snapshot of their group once it has settled."""
    document = yaml.safe_load(place.with_suffix(".yaml").read_text(encoding="utf-8"))
    document["spec"]["source"] |= servers
    document["spec"]["kubernetes"] = {"kubeconfigFile": str(cluster.kubeconfig)}
    policy = parse_policy(yaml.safe_dump(document), place.name)
    name = policy.spec.scale_target_ref.name
    made = deployment(name, replicas, container)
    cluster.apply(made, namespace=NAMESPACE)
    cluster.await_available(NAMESPACE, name, 180)
    cluster.wait_until("a settled group", lambda: _is_settled(_snapshot(policy, 0), replicas), 180)
    write_atomically(place.with_suffix(".json"), SNAPSHOT.dump(_snapshot(policy, WATCHED_S)))
    cluster.kubectl("delete", "deployment", name, "-n", NAMESPACE)


def _snapshot(policy: ConsumerScalingPolicy, seconds: float) -> GroupSnapshot:
    samples = tuple(watch(policy, seconds))
    return pipeline.take_snapshot(samples, SAMPLE_EVERY_S, policy, samples[-1].at)


def _is_settled(taken: GroupSnapshot, members: int) -> bool:
    return len(taken.clients) == members and taken.strategy is not None and not unsettled_queues(taken)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
