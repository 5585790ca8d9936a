"""A real Kafka share group (KIP-932) that gets half as much again as its two members can do: seen and planned."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer

from planner.diagnosis.diagnose import examine
from planner.diagnosis.group_evidence import GroupEvidence
from planner.documents.data import SNAPSHOT
from planner.model.samples import GroupSample
from planner.sources.kafka import KafkaAdmin, observe_group
from planner.sources.live import SAMPLE_EVERY_S
from tests.clusters.kafka import KafkaCluster
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

TOPIC, GROUP, PARTITIONS = "share-live", "share-live", 6
MEMBERS = ("share-1", "share-2")
SERVICE_S = 0.01
RATE = 1.5 * len(MEMBERS) / SERVICE_S
SETTLED_S = 300.0


def consume(cluster: KafkaCluster, name: str, over: threading.Event) -> None:
    """Work on records one by one, a batch acknowledged by the next poll, until it is over."""
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "client.id": name})
    consumer.subscribe([TOPIC])
    while not over.is_set():
        for record in consumer.poll(0.5):
            assert record.error() is None
            if over.wait(SERVICE_S):
                break
    consumer.close()


def produce(cluster: KafkaCluster, over: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
    began, sent = time.monotonic(), 0
    while not over.wait(0.05):
        for _ in range(int(RATE * (time.monotonic() - began)) - sent):
            producer.produce(TOPIC, value=b"r", partition=sent % PARTITIONS)
            sent += 1
        producer.poll(0)
    producer.flush(10)


@pytest.fixture(scope="module")
def cluster(kafka_cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    kafka_cluster.create_topic(TOPIC, PARTITIONS)
    over = threading.Event()
    running = [threading.Thread(target=consume, args=(kafka_cluster, name, over)) for name in MEMBERS]
    running.append(threading.Thread(target=produce, args=(kafka_cluster, over)))
    for each in running:
        each.start()
    yield kafka_cluster
    over.set()
    for each in running:
        each.join()


def await_progress(cluster: KafkaCluster) -> GroupSample:
    """Look until both members read partitions and something is done of each."""
    deadline = time.monotonic() + SETTLED_S
    with KafkaAdmin(cluster.bootstrap.split(",")) as admin:
        while not any(one.group == GROUP for one in admin.list_groups().groups):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        while True:
            sample = observe_group(admin, cluster=None, group=GROUP, topics=None, at=datetime.now(UTC))
            is_shared = len(sample.members) == len(MEMBERS) and all(one.owned for one in sample.members)
            if is_shared and len(sample.offsets) == PARTITIONS and all(one.consumer_offset for one in sample.offsets):
                return sample
            assert time.monotonic() < deadline, sample
            time.sleep(1)


def await_findings(cluster: KafkaCluster) -> list[str]:
    """Watch until the doctor finds something, and return its codes: half a minute without a missing sample shows it."""
    samples: list[GroupSample] = []
    deadline = time.monotonic() + SETTLED_S
    with KafkaAdmin(cluster.bootstrap.split(",")) as admin:
        while time.monotonic() < deadline:
            at = time.monotonic()
            samples.append(observe_group(admin, cluster=None, group=GROUP, topics=None, at=datetime.now(UTC)))
            if findings := examine(GroupEvidence(tuple(samples))).findings:
                return [finding.code for finding in findings]
            time.sleep(max(0.0, at + SAMPLE_EVERY_S - time.monotonic()))
    return []


def test_a_share_group_with_too_much_to_do_is_seen_and_scaled_up(cluster: KafkaCluster, tmp_path: Path) -> None:
    """Red where its members, its lag or their work is not read: then no count is decided, and the doctor is silent."""
    sample = await_progress(cluster)
    assert (sample.kafka.protocol, sample.kafka.state, sample.kafka.assignor) == ("share", "Stable", "simple")
    assert {(one.client_id, one.protocol, one.topics) for one in sample.members} == {
        (name, "share", (TOPIC,)) for name in MEMBERS
    }
    assert sorted(part for one in sample.members for part in one.owned) == [one.queue for one in sample.offsets]
    assert sample.problems == ()

    examined = planner("doctor", "--kafka", cluster.bootstrap, "--group", GROUP, "--watch", 6, "-o", "json")
    assert examined.stderr == ""
    (seen,) = json.loads(examined.stdout)["body"]["groups"]
    assert seen["findings"] == [], "what is true of every share group is no finding"

    found: list[str] = []
    findings = threading.Thread(target=lambda: found.extend(await_findings(cluster)))
    findings.start()
    policy, snap = tmp_path / "policy.yaml", tmp_path / "snap.json"
    policy.write_text(
        kafka_policy(cluster.bootstrap, GROUP).replace("messagesPerSecond: 50", "messagesPerSecond: 100")
        + "  membersPerPod: 1\n"
    )
    taken = planner("snapshot", "-p", policy, "-o", snap, "--observe-seconds", 25)
    assert taken.returncode == 0, taken.stderr
    snapshot = SNAPSHOT.read(snap)
    assert (snapshot.strategy, snapshot.problems, len(snapshot.clients)) == ("share", (), 2)
    came = sum(state.arrival_rate for state in snapshot.queues)
    done = sum(state.consumption_rate for state in snapshot.queues)
    assert 0 < done < came, "the members of a share group get more than they do, and what they do is seen"

    planned = planner("plan", snap, "-p", policy, "--format", "json")
    advice = json.loads(planned.stdout)
    assert (advice["decision"], advice["from"]) == ("scale", 2), planned.stdout
    assert 6 <= advice["to"] <= 12, "three to five members leave one with two of six partitions: 100/s on 100"
    findings.join()
    assert found == ["too-few-consumers"]
