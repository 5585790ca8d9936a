"""Real groups that look like consumers, and of which another lever than the count decides what they can do."""

from pathlib import Path

import pytest

from planner.documents.plan import read_plan_or_decision
from planner.rollout.plan import DecisionRecord
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kafka_streams import streams_application
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner, refused

pytestmark = pytest.mark.cluster


def held(cluster: KafkaCluster, group: str, folder: Path) -> DecisionRecord:
    """Return the decision on a group after two looks."""
    policy = folder / f"{group}.yaml"
    policy.write_text(kafka_policy(cluster.bootstrap, group), encoding="utf-8")
    snapshot, record = folder / f"{group}.json", folder / f"{group}-plan.yaml"
    taken = planner("snapshot", "-p", policy, "-o", snapshot, "--observe-seconds", 6)
    assert taken.returncode == 0, taken.stderr
    planner("plan", snapshot, "-p", policy, "-o", record)
    decision = read_plan_or_decision(record)
    assert isinstance(decision, DecisionRecord)
    return decision


def test_streams_applications_are_named_with_their_lever(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    kafka_cluster.create_topic("streamed", partitions=4)
    with streams_application(kafka_cluster.bootstrap, "streams-app", "streamed", tmp_path):
        decision = held(kafka_cluster, "streams-app", tmp_path).decision
        found = planner("doctor", "--kafka", kafka_cluster.bootstrap, "--group", "streams-app", "--watch", 6)
    assert decision.hold_cause == "OtherLever"
    assert "a Kafka Streams application (assignor stream)" in decision.reason
    assert "num.stream.threads" in decision.reason
    assert "The group is a Kafka Streams application" in " ".join(found.stdout.split())


def test_streams_by_its_own_protocol_is_refused_with_its_lever(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    kafka_cluster.create_topic("streamed-anew", partitions=4)
    policy = tmp_path / "policy.yaml"
    policy.write_text(kafka_policy(kafka_cluster.bootstrap, "streams-anew"), encoding="utf-8")
    with streams_application(kafka_cluster.bootstrap, "streams-anew", "streamed-anew", tmp_path, protocol="streams"):
        taken = planner("snapshot", "-p", policy, "-o", tmp_path / "s.json", "--observe-seconds", 0)
    refused(taken, 2, "streams-anew is a streams group", "num.stream.threads")


def test_tasks_of_a_connect_sink_are_named_by_their_client_ids(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Sink tasks are plain consumers with these ids (``Worker#baseConsumerConfigs``): so are these."""
    kafka_cluster.create_topic("sunk", partitions=4)
    process = kafka_cluster.load().start()
    for task in range(2):
        client = f"connector-consumer-pay-sink-{task}"
        process.start_consumer(client, group="connect-pay-sink", topics=["sunk"], config={"client.id": client})
        process.await_event(client, "assigned")
    decision = held(kafka_cluster, "connect-pay-sink", tmp_path).decision
    process.stop()
    assert decision.hold_cause == "OtherLever"
    assert "tasks.max of connector pay-sink" in decision.reason
