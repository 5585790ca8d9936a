"""Real Kafka share groups (KIP-932) that get half as much again as their two members can do: seen and planned.

One is librdkafka's, one has Java's clients with their default settings.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import java_share_consumer
from tests.clusters.processes import ManagedProcess
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

PARTITIONS = 6
MEMBERS = ("share-1", "share-2")
SERVICE_S = 0.01
RATE = 1.5 * len(MEMBERS) / SERVICE_S
SETTLED_S = 300.0


@dataclass(frozen=True)
class Shared:
    """A share group that works on a topic of its own name."""

    bootstrap: str
    name: str


@contextmanager
def librdkafka(group: Shared, member: str, folder: Path) -> Iterator[None]:  # noqa: ARG001 - it writes nothing
    """Let a member work on records one by one, a batch acknowledged by the next poll."""
    over = threading.Event()

    def consume() -> None:
        consumer = ShareConsumer({"bootstrap.servers": group.bootstrap, "group.id": group.name, "client.id": member})
        consumer.subscribe([group.name])
        while not over.is_set():
            for record in consumer.poll(0.5):
                assert record.error() is None
                if over.wait(SERVICE_S):
                    break
        consumer.close()

    with running(consume, over):
        yield


@contextmanager
def java(group: Shared, member: str, folder: Path) -> Iterator[None]:
    """Let a member that is a process of its own do the same, with the client's default settings."""
    words = {"client_version": CLIENT, "group": group.name, "topic": group.name, "service_ms": SERVICE_S * 1000}
    argv = java_share_consumer(group.bootstrap, member, delivery_log=str(folder / f"{member}.tsv"), **words)
    process = ManagedProcess(member, argv, folder)
    process.start()
    try:
        yield
    finally:
        process.stop(SETTLED_S)


@contextmanager
def running(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def producer(group: Shared) -> Iterator[None]:
    over = threading.Event()

    def produce() -> None:
        client = Producer({"bootstrap.servers": group.bootstrap, "linger.ms": 5})
        began, sent = time.monotonic(), 0
        while not over.wait(0.05):
            for _ in range(int(RATE * (time.monotonic() - began)) - sent):
                client.produce(group.name, value=b"r", partition=sent % PARTITIONS)
                sent += 1
            client.poll(0)
        client.flush(10)

    with running(produce, over):
        yield


@pytest.fixture(scope="module", params=[librdkafka, java], ids=lambda one: str(one.__name__))
def shared(
    request: pytest.FixtureRequest, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    group = Shared(kafka_cluster.bootstrap, f"share-{request.param.__name__}")
    kafka_cluster.create_topic(group.name, PARTITIONS)
    folder = tmp_path_factory.mktemp(group.name)
    with ExitStack() as undo:
        for member in MEMBERS:
            undo.enter_context(request.param(group, member, folder))
        undo.enter_context(producer(group))
        yield group


def await_progress(shared: Shared) -> GroupSample:
    """Look until both members read partitions and something is done of each."""
    deadline = time.monotonic() + SETTLED_S
    with KafkaAdmin(shared.bootstrap.split(",")) as admin:
        while not any(one.group == shared.name for one in admin.list_groups().groups):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        while True:
            sample = observe_group(admin, cluster=None, group=shared.name, topics=None, at=datetime.now(UTC))
            is_shared = len(sample.members) == len(MEMBERS) and all(one.owned for one in sample.members)
            if is_shared and len(sample.offsets) == PARTITIONS and all(one.consumer_offset for one in sample.offsets):
                return sample
            assert time.monotonic() < deadline, sample
            time.sleep(1)


def await_findings(shared: Shared) -> list[str]:
    """Watch until the doctor finds something, and return its codes: half a minute without a missing sample shows it."""
    samples: list[GroupSample] = []
    deadline = time.monotonic() + SETTLED_S
    with KafkaAdmin(shared.bootstrap.split(",")) as admin:
        while time.monotonic() < deadline:
            at = time.monotonic()
            samples.append(observe_group(admin, cluster=None, group=shared.name, topics=None, at=datetime.now(UTC)))
            if findings := examine(GroupEvidence(tuple(samples))).findings:
                return [finding.code for finding in findings]
            time.sleep(max(0.0, at + SAMPLE_EVERY_S - time.monotonic()))
    return []


def test_a_share_group_with_too_much_to_do_is_seen_and_scaled_up(shared: Shared, tmp_path: Path) -> None:
    """Red where its members, its lag or their work is not read: then no count is decided, and the doctor is silent."""
    sample = await_progress(shared)
    assert (sample.kafka.protocol, sample.kafka.state, sample.kafka.assignor) == ("share", "Stable", "simple")
    assert {(one.client_id, one.protocol, one.topics) for one in sample.members} == {
        (name, "share", (shared.name,)) for name in MEMBERS
    }
    assert sorted(part for one in sample.members for part in one.owned) == [one.queue for one in sample.offsets]
    assert sample.problems == ()

    examined = planner("doctor", "--kafka", shared.bootstrap, "--group", shared.name, "--watch", 6, "-o", "json")
    assert examined.stderr == ""
    (seen,) = json.loads(examined.stdout)["body"]["groups"]
    assert seen["findings"] == [], "what is true of every share group is no finding"

    found: list[str] = []
    findings = threading.Thread(target=lambda: found.extend(await_findings(shared)))
    findings.start()
    policy, snap = tmp_path / "policy.yaml", tmp_path / "snap.json"
    policy.write_text(
        kafka_policy(shared.bootstrap, shared.name).replace("messagesPerSecond: 50", "messagesPerSecond: 100")
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
