"""``planner init`` on a real pseudo-terminal, with a real broker: a refused answer is explained and asked for again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from planner.documents.policy import parse_policy, read_policy
from planner.documents.source import KafkaSource
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.ports import lease_block
from tests.terminals import END_OF_INPUT, Terminal
from tests.unit.cli.test_cli import planner, refused

pytestmark = pytest.mark.cluster

GROUPS = ("a-door-orders", "a-door-payments")
"""The first of the shared broker's groups by name: where there are many, a message lists the first few only."""


@pytest.fixture(scope="module")
def bootstrap(kafka_cluster: KafkaCluster) -> str:
    """The address of brokers that know two groups by their commits."""
    kafka_cluster.create_topic("door", partitions=2)
    for group in GROUPS:
        consumer = Consumer({"bootstrap.servers": kafka_cluster.bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition("door", 0, 0)], asynchronous=False)
        consumer.close()
    return kafka_cluster.bootstrap


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens."""
    lease = lease_block()
    yield f"127.0.0.1:{lease.first}"
    lease.release()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment without a kubeconfig."""
    return {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}


def test_system_address_and_group_are_asked_for_until_they_are_right(
    bootstrap: str, nobody: str, home: dict[str, str], tmp_path: Path
) -> None:
    with Terminal("init", env=home, cwd=tmp_path) as terminal:
        terminal.expect("RocketMQ or Kafka? [kafka]:")
        terminal.enter("rabbit")
        terminal.expect("planner: found 'rabbit', expected rocketmq or kafka")
        terminal.expect("RocketMQ or Kafka? [kafka]:")
        terminal.enter("")
        terminal.expect("Its servers, HOST:PORT [127.0.0.1:9092]:")
        terminal.enter(nobody)
        terminal.expect(f"planner: no Kafka broker can be reached: nobody answers at {nobody}")
        terminal.expect("RocketMQ or Kafka? [kafka]:")
        terminal.enter("Kafka")
        terminal.expect("Its servers, HOST:PORT")
        terminal.enter(bootstrap)
        shown = terminal.expect("Which group?")
        assert all(group in shown for group in GROUPS)
        terminal.enter("a-door-paymnets")
        refusal = terminal.expect("Which group?")
        assert "planner: there is no consumer group a-door-paymnets" in refusal
        assert "there are a-door-payments" in refusal, "the nearest first"
        terminal.enter("a-door-payments")
        assert terminal.end() == 0, terminal.screen
    assert "Policy for group a-door-payments (0 members) written to policy.yaml." in terminal.screen
    source = read_policy(tmp_path / "policy.yaml").spec.source
    assert isinstance(source, KafkaSource)
    assert (source.group, ",".join(source.bootstrap_servers)) == ("a-door-payments", bootstrap)


def test_a_policy_on_standard_output_holds_no_question(bootstrap: str, home: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "policy"
    with Terminal("init", "--kafka", bootstrap, "-o", "-", env=home, cwd=tmp_path, stdout=out) as terminal:
        terminal.expect("Which group?")
        terminal.enter("a-door-orders")
        assert terminal.end() == 0, terminal.screen
    text = out.read_text()
    assert text.startswith("# What is wanted for consumer group")
    assert parse_policy(text, "policy").spec.source.group == "a-door-orders"


def test_the_end_of_the_input_names_the_option(bootstrap: str, home: dict[str, str], tmp_path: Path) -> None:
    with Terminal("init", "--kafka", bootstrap, env=home, cwd=tmp_path) as terminal:
        terminal.expect("Which group?")
        terminal.press(END_OF_INPUT)
        assert terminal.end() == 2, terminal.screen
    assert "planner: no answer to the question 'Which group?': give it as --group NAME" in terminal.screen
    assert not (tmp_path / "policy.yaml").exists()


def test_an_option_that_is_wrong_ends_the_command_on_a_terminal_too(
    bootstrap: str, home: dict[str, str], tmp_path: Path
) -> None:
    with Terminal("init", "--kafka", bootstrap, "-g", "a-door-paymnets", env=home, cwd=tmp_path) as terminal:
        assert terminal.end() == 2, terminal.screen
    assert "there are a-door-payments" in terminal.screen


def test_without_a_terminal_nothing_is_asked(bootstrap: str, nobody: str, tmp_path: Path) -> None:
    servers = ("--kafka", bootstrap)
    refused(planner("init", *servers, cwd=tmp_path), 2, "name one with --group", "a-door-orders")
    wrong = planner("init", *servers, "-g", "a-door-paymnets", cwd=tmp_path)
    refused(wrong, 2, "there is no consumer group a-door-paymnets", "there are a-door-payments")
    refused(planner("init", cwd=tmp_path), 2, "neither of --name-server and --kafka")
    refused(planner("init", "--kafka", nobody, "-g", "a-door-orders", cwd=tmp_path), 3, nobody)


@pytest.mark.timeout(2_700)
def test_a_deployment_is_asked_for_until_it_is_there(
    bootstrap: str, control_plane: ControlPlane, home: dict[str, str], tmp_path: Path
) -> None:
    """The group has no members now, so that no pod tells."""
    namespace = control_plane.namespace("door")
    control_plane.apply(deployment("orders", 2, {"command": ["sleep", "600"]}), namespace=namespace)
    options = ("--kafka", bootstrap, "-g", "a-door-orders", "--kubeconfig", control_plane.kubeconfig)
    with Terminal("init", *options, env=home, cwd=tmp_path) as terminal:
        terminal.expect("Which Deployment runs its consumers")
        terminal.enter(f"{namespace}/odrers")
        assert "has no Deployment odrers" in terminal.expect(", but orders: correct namespace and name")
        terminal.expect("Which Deployment runs its consumers")
        terminal.enter(f"{namespace}/orders/app")
        terminal.expect("expected NAMESPACE/NAME")
        terminal.expect("Which Deployment runs its consumers")
        terminal.enter(f"{namespace}/orders")
        assert terminal.end() == 0, terminal.screen
    assert "asks for 2 pods, but the group has 0 members" in terminal.screen
    policy = read_policy(tmp_path / "policy.yaml")
    assert (policy.metadata.namespace, policy.spec.scale_target_ref.name) == (namespace, "orders")
    with Terminal("init", *options, "--force", env=home, cwd=tmp_path) as terminal:
        terminal.expect("(empty: none is known)?:")
        terminal.enter("")
        assert terminal.end() == 0, terminal.screen
    assert "No Deployment is known" in terminal.screen
    control_plane.kubectl("delete", "deployment", "orders", "-n", namespace)
