"""Accounts, certificates and rights against a real guarded Kafka: what is refused is named, and no secret is told."""

import logging
import socket
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from planner.errors import OutOfReachError, PlannerError
from planner.model.queues import TopicPartition
from planner.model.samples import GroupSample
from planner.sources.kafka import (
    KafkaAdmin,
    KafkaSettings,
    ProtocolError,
    RefusedError,
    TimeLimits,
    observe_group,
    observe_groups,
)
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import ClientProcess
from tests.clusters.kafka_security import SECRETS, Guard
from tests.clusters.ports import lease_block

pytestmark = pytest.mark.cluster

SECRET = SECRETS["planner"]
BRIEF = TimeLimits(request_s=6.0)
"""For the library, which waits to the end of its time before it says what is wrong."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Topics ``open`` and ``closed``; groups ``open``, ``mixed``, ``closed``; the planner may describe what is open."""
    quick = {"group.initial.rebalance.delay.ms": "0", "group.consumer.min.heartbeat.interval.ms": "500"}
    with KafkaCluster.start(guarded=True, settings=quick) as cluster:
        cluster.create_topic("open", 2)
        cluster.create_topic("closed", 1)
        cluster.produce("open", {0: 5, 1: 5})
        cluster.commit("open", {("open", 0): 3})
        cluster.commit("mixed", {("open", 0): 2, ("closed", 0): 1})
        cluster.commit("closed", {("open", 0): 1})
        cluster.allow("planner", ResourceType.TOPIC, "open", AclOperation.DESCRIBE)
        for group in ("open", "mixed", "moving"):
            cluster.allow("planner", ResourceType.GROUP, group, AclOperation.DESCRIBE)
        # The controller has them; the broker goes by them a moment later, and tells those that it goes by.
        cluster.brokers[0].process.wait_until("its rights", lambda: len(_rights(cluster)) == 4, REQUEST_S)
        yield cluster


@pytest.fixture(scope="module")
def guard(cluster: KafkaCluster) -> Guard:
    assert cluster.guard is not None
    return cluster.guard


@pytest.fixture(scope="module")
def consumers(cluster: KafkaCluster) -> ClientProcess:
    return cluster.load().start()


def account(name: str = "planner", mechanism: str = "SCRAM-SHA-512", password: str | None = None) -> KafkaSettings:
    return KafkaSettings(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": mechanism,
            "sasl.username": name,
            "sasl.password": SECRETS[name] if password is None else password,
        }
    )


def look(admin: KafkaAdmin, group: str, topics: Sequence[str] | None = None) -> GroupSample:
    return observe_group(admin, cluster=None, group=group, topics=topics, at=datetime.now(UTC))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_describing_group_and_topics_is_right_enough(guard: Guard, mechanism: str) -> None:
    with KafkaAdmin([guard.accounts], settings=account(mechanism=mechanism)) as admin:
        sample = look(admin, "open")
        assert sample.problems == ()
        assert [(one.consumer_offset, one.broker_offset, one.first_offset) for one in sample.offsets] == [
            (3, 5, 0),
            (None, 5, 0),
        ]
        assert {one.group for one in admin.list_groups().groups} == {"open", "mixed"}, "others are hidden"


@pytest.mark.parametrize("style", ["java", "librdkafka"])
def test_a_properties_file_opens_the_encrypted_listener(guard: Guard, tmp_path: Path, style: str) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "# how our own Java services get in\n"
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'    username="planner" password="{SECRET}";\n'
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={guard.authority}\n"
        if style == "java"
        else "security.protocol=sasl_ssl\nsasl.mechanisms=PLAIN\nsasl.username=planner\n"
        f"sasl.password={SECRET}\nssl.ca.location={guard.authority}\n"
    )
    with KafkaAdmin([guard.encrypted], settings=KafkaSettings.read(properties)) as admin:
        assert look(admin, "open").problems == ()
        assert len(look(admin, "open").offsets) == 2


def test_a_topic_that_may_not_be_described_is_named_and_the_rest_is_told(guard: Guard) -> None:
    with KafkaAdmin([guard.accounts], settings=account()) as admin:
        sample = look(admin, "mixed", ["open", "closed"])
        assert {one.queue for one in sample.offsets} == {TopicPartition("open", 0), TopicPartition("open", 1)}
        (problem,) = sample.problems
        assert problem.startswith("topic closed: its partitions are not known, nor is what the group committed there")
        assert "TOPIC_AUTHORIZATION_FAILED" in problem
        # Nobody subscribes and the broker hides the commit: that there is such a topic cannot be known.
        assert look(admin, "mixed").problems == ()


def test_a_member_on_a_topic_that_may_not_be_described_leaves_members_unknown(
    guard: Guard, consumers: ClientProcess
) -> None:
    topics = ["open", "closed"]
    consumers.start_consumer("m", group="moving", topics=topics, config={"group.protocol": "consumer"})
    consumers.process.wait_until("its partitions", lambda: consumers.await_event("m", "assigned").partitions, REQUEST_S)
    with KafkaAdmin([guard.accounts], settings=account()) as admin:
        sample = look(admin, "moving", ["open"])
        assert (sample.kafka.state, sample.members) == ("Unknown", ())
        (problem,) = sample.problems
        assert problem.startswith("group moving does not show its members")
        assert "TOPIC_AUTHORIZATION_FAILED" in problem
        assert len(sample.offsets) == 2
    consumers.stop_consumer("m")


def test_a_group_that_may_not_be_described_is_refused_alone(guard: Guard) -> None:
    with KafkaAdmin([guard.accounts], settings=account()) as admin:
        told = observe_groups(admin, cluster=None, groups={"open": None, "closed": None}, at=datetime.now(UTC))
        assert isinstance(told["closed"], RefusedError)
        assert "GROUP_AUTHORIZATION_FAILED" in str(told["closed"])
        assert isinstance(told["open"], GroupSample)


def test_a_partition_that_may_not_be_read_spoils_no_other(guard: Guard) -> None:
    parts = [TopicPartition("closed", 0), TopicPartition("nowhere", 0), TopicPartition("open", 1)]
    with KafkaAdmin([guard.accounts], settings=account()) as admin:
        told = admin.end_offsets(parts)
        assert told[parts[2]] == 5
        assert [isinstance(told[part], PlannerError) for part in parts] == [True, True, False]


def test_an_account_without_any_right_gets_in_and_sees_nothing(guard: Guard) -> None:
    with KafkaAdmin([guard.accounts], settings=account("nobody")) as admin:
        assert admin.list_groups().groups == ()
        assert isinstance(admin.describe_groups(["open"])["open"], RefusedError)
        assert isinstance(admin.topics(["open"])["open"], RefusedError)
        assert isinstance(admin.end_offsets([TopicPartition("open", 0)])[TopicPartition("open", 0)], OutOfReachError)
        with pytest.raises(RefusedError):
            admin.topic_config("open")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_refused_and_no_secret_is_told(
    guard: Guard, mechanism: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = account(mechanism=mechanism, password="not-the-s3cret")
    with pytest.raises(RefusedError, match="SASL_AUTHENTICATION_FAILED") as caught:
        KafkaAdmin([guard.accounts], settings=settings)
    with pytest.raises(RefusedError, match="check the account") as by_library:
        KafkaAdmin([guard.accounts], settings=settings, limits=BRIEF, own_connections=False)
    told = f"{caught.value} {by_library.value} {caplog.text} {capfd.readouterr()} {settings!r}"
    assert "not-the-s3cret" not in told


@pytest.mark.parametrize("own_connections", [True, False])
@pytest.mark.parametrize(
    ("listener", "settings"),
    [
        ("accounts", KafkaSettings()),
        ("encrypted", KafkaSettings()),
        ("encrypted", account()),
        ("accounts", KafkaSettings({**account().properties, "security.protocol": "SASL_SSL"})),
    ],
    ids=["no account", "plain to TLS", "account without TLS to TLS", "TLS to plain"],
)
def test_the_wrong_protocol_is_named(
    guard: Guard, listener: str, settings: KafkaSettings, own_connections: bool
) -> None:
    limits = None if own_connections else BRIEF
    with pytest.raises(OutOfReachError, match=r"security\.protocol"):
        KafkaAdmin(
            [getattr(guard, listener)], settings=settings, limits=limits, own_connections=own_connections
        ).cluster()


def test_an_account_where_none_is_wanted_is_named(cluster: KafkaCluster) -> None:
    with pytest.raises(ProtocolError, match=r"asks for no account, security\.protocol is SASL_PLAINTEXT"):
        KafkaAdmin([cluster.bootstrap], settings=account())


def test_a_certificate_of_another_authority_is_not_trusted_unless_told_so(
    guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    tls = {**account().properties, "security.protocol": "SASL_SSL", "ssl.ca.location": str(guard.other_authority)}
    with pytest.raises(ProtocolError, match=r"cannot be trusted .*set ssl\.ca\.location"):
        KafkaAdmin([guard.encrypted], settings=KafkaSettings(tls))
    assert caplog.messages == []
    with KafkaAdmin(
        [guard.encrypted], settings=KafkaSettings({**tls, "enable.ssl.certificate.verification": "false"})
    ) as admin:
        assert len(look(admin, "open").offsets) == 2
    assert caplog.messages == ["certificates are not verified"]


def test_nobody_listening_and_somebody_silent_end_by_the_deadline(cluster: KafkaCluster) -> None:
    lease = lease_block()
    nobody = f"127.0.0.1:{lease.first}"
    with pytest.raises(OutOfReachError, match=f"no Kafka broker can be reached: nobody answers at {nobody}"):
        KafkaAdmin([nobody])
    with KafkaAdmin([nobody, cluster.bootstrap]) as admin:
        assert len(admin.cluster().nodes) == 1, "the second server is enough"
    lease.release()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(OutOfReachError, match=r"did not answer ApiVersions within 1 s"):
            KafkaAdmin([f"127.0.0.1:{port}"], limits=TimeLimits(request_s=1.0))
        with pytest.raises(OutOfReachError, match=r"no answer within 1 s"):
            KafkaAdmin([f"127.0.0.1:{port}"], limits=TimeLimits(request_s=1.0), own_connections=False)


def test_another_service_is_not_taken_for_kafka() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(ProtocolError, match="it is not a Kafka broker"):
            KafkaAdmin([f"127.0.0.1:{server.getsockname()[1]}"])
        answering.join()


def _rights(cluster: KafkaCluster) -> list[AclBinding]:
    anything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return list(cluster.admin.describe_acls(anything).result(REQUEST_S))
