"""Access control and TLS against real brokers: ACL 1.0 (4.9.7), ACL 2.0 (5.5.0), a CA of our own."""

import json
import logging
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.errors import OutOfReachError
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.sources.rocketmq import (
    AnswerError,
    Credentials,
    RocketMQAdmin,
    Tls,
    UnverifiedTlsWarning,
    group_names,
    observe_group,
    observe_groups,
    transport,
)
from planner.sources.rocketmq.broker_answers import HIDDEN
from tests.clusters.certificates import write_certificates
from tests.clusters.rocketmq import NEW, OLD, RocketMQCluster
from tests.patience import PATIENT
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

SECRET = "hunter2-hunter2"
GOOD = Credentials("planner-reader", SECRET)
ACL_1 = f"""globalWhiteRemoteAddresses: []
accounts:
- accessKey: {GOOD.access_key}
  secretKey: "{SECRET}"
  admin: false
  defaultTopicPerm: SUB
  defaultGroupPerm: SUB
- accessKey: only-known-here
  secretKey: "{SECRET}"
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
"""
COMMITS = '{"offsetTable":{"SELF_TEST_TOPIC@shop":{0:0},"BenchmarkTest@shop":{0:0}}}'
"""What a broker finds in its store when it starts: group ``shop`` has committed on one queue of two topics."""
PROVIDERS = "org.apache.rocketmq.auth"
ACL_2 = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{PROVIDERS}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{PROVIDERS}.authentication.provider.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": f'{{"username":"{GOOD.access_key}","password":"{SECRET}"}}',
    "innerClientAuthenticationCredentials": f'{{"accessKey":"{GOOD.access_key}","secretKey":"{SECRET}"}}',
    "authorizationEnabled": "true",
    "authorizationProvider": f"{PROVIDERS}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{PROVIDERS}.authorization.provider.LocalAuthorizationMetadataProvider",
}


@pytest.fixture(scope="module", params=[OLD, NEW])
def guarded(request: pytest.FixtureRequest) -> Iterator[RocketMQCluster]:
    if request.param == OLD:
        files = {"conf/plain_acl.yml": ACL_1, "store/config/consumerOffset.json": COMMITS}
        cluster = RocketMQCluster.start(OLD, brokers=1, settings={"aclEnable": "true"}, broker_files=files)
    else:
        files = {"store/config/consumerOffset.json": COMMITS}
        cluster = RocketMQCluster.start(NEW, brokers=1, settings=ACL_2, broker_files=files)
    with cluster:
        await_clock(cluster)
        yield cluster


def await_clock(cluster: RocketMQCluster) -> None:
    """Return once the broker tells its clock: in its first seconds 4.9.7 answers request 28 with an exception."""
    broker = cluster.brokers[0]

    def tells() -> bool:
        try:
            admin.broker_runtime(broker.address)
        except AnswerError:
            return False
        return True

    with RocketMQAdmin(cluster.name_server, credentials=GOOD, limits=PATIENT) as admin:
        broker.process.wait_until("its clock", tells, 180.0)


def test_signed_requests_are_answered(guarded: RocketMQCluster) -> None:
    broker = guarded.brokers[0].address
    with RocketMQAdmin(guarded.name_server, credentials=GOOD, limits=PATIENT) as admin:
        assert admin.cluster_info().brokers[0].address == broker
        assert "TOOLS_CONSUMER" in {one.group for one in admin.group_configs(broker)}
        assert "SELF_TEST_TOPIC" in {one.topic for one in admin.topic_configs(broker)}
        assert admin.member_ids(broker, "nobody") == ()
        assert admin.consume_stats(broker, "nobody").offsets == ()
        assert admin.topic_stats(broker, "SELF_TEST_TOPIC") is not None
        assert admin.max_offset(broker, MessageQueue("SELF_TEST_TOPIC", "broker-a", 0)) == 0
        assert admin.committed_offset(broker, "nobody", MessageQueue("SELF_TEST_TOPIC", "broker-a", 0)) in (0, None)
        config = admin.broker_config(broker)
        assert config["brokerName"] == "broker-a"
        assert not [name for name, value in config.items() if SECRET in value]
        if guarded.version == NEW:
            assert config["initAuthenticationUser"] == HIDDEN


@pytest.mark.parametrize(
    "wrong", [None, Credentials("planner-reader", "not-the-secret"), Credentials("nobody", SECRET)]
)
def test_other_requests_are_refused_and_no_secret_is_told(
    guarded: RocketMQCluster, wrong: Credentials | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        RocketMQAdmin(guarded.name_server, credentials=wrong, limits=PATIENT) as admin,
        pytest.raises(AnswerError) as caught,
    ):
        admin.group_configs(guarded.brokers[0].address)
    assert caught.value.code in (1, 16)
    told = f"{caught.value} {caught.value.remark} {caplog.text} {[vars(one) for one in caplog.records]} {wrong!r}"
    assert not [secret for secret in (SECRET, "not-the-secret") if secret in told]


@pytest.fixture(scope="module")
def reader(guarded: RocketMQCluster) -> Credentials:
    """The account that docs/connect-rocketmq.md tells operators to make."""
    if guarded.version == OLD:
        return Credentials("only-known-here", SECRET)
    return make_account(guarded, "reader", "Topic:*,Group:*")


def make_account(cluster: RocketMQCluster, name: str, resources: str) -> Credentials:
    """Make an account as operators do, which may ``Get`` some resources and nothing else."""
    tool = cluster.mqadmin()
    tool.sign_as(GOOD.access_key, SECRET)
    where = {"c": "DefaultCluster"}
    made = tool.run("createUser", {**where, "u": name, "p": SECRET, "t": "Normal"})
    assert "create user to" in made, made
    granted = tool.run("createAcl", {**where, "s": f"User:{name}", "r": resources, "a": "Get", "d": "Allow"})
    assert "create acl to" in granted, granted
    return Credentials(name, SECRET)


def look(cluster: RocketMQCluster, account: Credentials) -> GroupSample:
    with RocketMQAdmin(cluster.name_server, credentials=account, limits=PATIENT) as admin:
        return observe_group(admin, cluster=None, group="shop", topics=None, at=datetime.now(UTC))


def test_least_rights_are_enough_for_a_whole_look(guarded: RocketMQCluster, reader: Credentials) -> None:
    sample = look(guarded, reader)
    known = {(one.queue.topic, one.queue.queue_id): one.consumer_offset for one in sample.offsets}
    assert known["SELF_TEST_TOPIC", 0] == known["BenchmarkTest", 0] == 0
    assert len(known) == 1 + 1024
    assert sample.dead_letters == 0
    assert sample.rocketmq is not None
    assert (sample.rocketmq.brokers[0].permission, sample.rocketmq.brokers[0].settings) == (6, None)
    assert sample.problems == (
        "topic %RETRY%shop has no route at the name server, so its queues are not known",
        "group shop is offline: it has offsets, but no broker that answered lists a member",
    )
    with RocketMQAdmin(guarded.name_server, credentials=reader, limits=PATIENT) as admin:
        assert group_names(admin) == ("shop",)
        (found,) = observe_groups(admin, groups=None, cluster=None, at=sample.at)
    assert isinstance(found[1], GroupSample)
    assert found[1].offsets == sample.offsets


def test_least_rights_allow_nothing_but_reads(guarded: RocketMQCluster, reader: Credentials) -> None:
    """Our client cannot even send a write, so RocketMQ's own tool tries."""
    tool = guarded.mqadmin()
    tool.sign_as(reader.access_key, SECRET)
    told = tool.run("updateTopic", {"b": guarded.brokers[0].address, "t": "mine", "r": "1", "w": "1"})
    assert "success" not in told
    assert re.search(r"permission|Need admin|AclException", told), told[-500:]


def test_group_rights_alone_tell_a_part_and_name_the_rest(guarded: RocketMQCluster) -> None:
    if guarded.version == OLD:
        return  # ACL 1.0 does not check topics for what we read
    tool = guarded.mqadmin()
    tool.sign_as(GOOD.access_key, SECRET)
    tool.run("updateTopic", {"b": guarded.brokers[0].address, "t": "%DLQ%shop", "r": "1", "w": "1"})
    sample = look(guarded, make_account(guarded, "groups-only", "Group:*"))
    assert {one.queue.topic for one in sample.offsets} == {"SELF_TEST_TOPIC", "BenchmarkTest"}
    assert sample.dead_letters is None
    (refused,) = [problem for problem in sample.problems if "%DLQ%" in problem]
    assert refused.startswith("how many messages are in %DLQ%shop is not known")
    assert "NO_PERMISSION" in refused
    assert "has no permission to access Topic:%DLQ%shop" in refused


def test_without_group_rights_nobody_can_tell(guarded: RocketMQCluster) -> None:
    if guarded.version == OLD:
        return  # there every account may
    account = make_account(guarded, "topics-only", "Topic:*")
    with pytest.raises(OutOfReachError, match=r"cannot say whether group shop exists.* Group:shop") as caught:
        look(guarded, account)
    assert SECRET not in str(caught.value)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``ca.pem``, ``server.pem``, ``server.key`` for 127.0.0.1, and ``other.pem`` of another CA."""
    return write_certificates(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module", params=[OLD, NEW])
def encrypted(request: pytest.FixtureRequest, authority: Path) -> Iterator[RocketMQCluster]:
    properties = {
        # Permissive: the launcher looks without TLS whether a broker is up.
        "tls.server.mode": "permissive",
        "tls.test.mode.enable": "false",
        "tls.server.certPath": str(authority / "server.pem"),
        "tls.server.keyPath": str(authority / "server.key"),
        "tls.server.need.client.auth": "none",
    }
    with RocketMQCluster.start(request.param, brokers=1, java_properties=properties) as cluster:
        cluster.create_topic("orders", 2)
        yield cluster


def test_requests_go_through_tls_of_our_own_authority(encrypted: RocketMQCluster, authority: Path) -> None:
    broker = encrypted.brokers[0].address
    with RocketMQAdmin(encrypted.name_server, tls=Tls(ca_file=authority / "ca.pem"), limits=PATIENT) as admin:
        assert admin.cluster_info().brokers[0].address == broker
        assert len(admin.topic_route("orders").topic.read_queues) == 2
        assert admin.max_offset(broker, MessageQueue("orders", "broker-a", 0)) == 0
        # Some 10 KiB each, asked by many threads over one connection: nothing may be mixed up or wait forever.
        with ThreadPoolExecutor(16) as pool:
            sizes = list(pool.map(lambda _: len(admin.broker_config(broker)), range(400)))
        assert min(sizes) == max(sizes) > 100
    assert not [one for one in threading.enumerate() if one.name == f"rocketmq {broker}"], "its reader has ended"


def test_a_stranger_is_refused(encrypted: RocketMQCluster, authority: Path) -> None:
    for trusted in (None, authority / "other.pem"):
        with (
            RocketMQAdmin(encrypted.name_server, tls=Tls(ca_file=trusted), limits=PATIENT) as admin,
            pytest.raises(OutOfReachError, match=r"no TLS connection to 127\.0\.0\.1:.*certificate"),
        ):
            admin.cluster_info()


def test_a_certificate_for_another_name_is_refused_unless_names_do_not_matter(
    encrypted: RocketMQCluster, authority: Path
) -> None:
    by_name = encrypted.name_server.replace("127.0.0.1", "localhost")
    trusted = authority / "ca.pem"
    with (
        RocketMQAdmin(by_name, tls=Tls(ca_file=trusted), limits=PATIENT) as admin,
        pytest.raises(OutOfReachError, match=r"no TLS connection to .*'localhost'"),
    ):
        admin.cluster_info()
    with RocketMQAdmin(by_name, tls=Tls(ca_file=trusted, verify_names=False), limits=PATIENT) as admin:
        assert admin.cluster_info().brokers


def test_no_verification_is_possible_and_warned_about_once(encrypted: RocketMQCluster) -> None:
    transport.context_of.cache_clear()
    with (
        pytest.warns(UnverifiedTlsWarning, match="not verified"),
        RocketMQAdmin(encrypted.name_server, tls=Tls(verify=False), limits=PATIENT) as admin,
    ):
        assert admin.cluster_info().brokers
    # Warnings are errors in our tests, so a second one would fail this.
    with RocketMQAdmin(encrypted.name_server, tls=Tls(verify=False), limits=PATIENT) as admin:
        assert admin.cluster_info().brokers


def test_a_server_that_wants_our_certificate_gets_it(authority: Path) -> None:
    properties = {
        "tls.server.mode": "permissive",
        "tls.test.mode.enable": "false",
        "tls.server.certPath": str(authority / "server.pem"),
        "tls.server.keyPath": str(authority / "server.key"),
        "tls.server.need.client.auth": "require",
        "tls.server.authClient": "true",
        "tls.server.trustCertPath": str(authority / "ca.pem"),
    }
    ours = Tls(
        ca_file=authority / "ca.pem", certificate_file=authority / "server.pem", key_file=authority / "server.key"
    )
    with RocketMQCluster.start(NEW, brokers=1, java_properties=properties) as cluster:
        broker = cluster.brokers[0].address
        with RocketMQAdmin(cluster.name_server, tls=ours, limits=PATIENT) as admin:
            assert admin.cluster_info().brokers[0].address == broker
            assert admin.member_ids(broker, "nobody") == ()
        with (
            RocketMQAdmin(cluster.name_server, tls=Tls(ca_file=authority / "ca.pem"), limits=PATIENT) as admin,
            pytest.raises(
                OutOfReachError,
                match=r"(?i)ended TLS while .* certificate.*: check whether it wants a certificate of ours",
            ),
        ):
            admin.member_ids(broker, "nobody")


def test_the_doctor_reads_a_guarded_installation_with_an_account_only(
    guarded: RocketMQCluster, reader: Credentials, tmp_path: Path
) -> None:
    account = tmp_path / "account.yml"
    account.write_text(f"accessKey: {reader.access_key}\nsecretKey: {SECRET}\n", encoding="utf-8")
    asked = ("doctor", "--group", "shop", "-n", guarded.name_server, "--watch", 0, "-o", "json")
    found = planner(*asked, "--credentials", account)
    # Commits on two topics and nobody there; as nothing waits, that is no error.
    assert found.returncode == 0, found.stderr
    codes = [one["code"] for group in json.loads(found.stdout)["body"]["groups"] for one in group["findings"]]
    assert "no-members" in codes
    without = planner(*asked)
    assert without.returncode != 0
    assert "no-members" not in without.stdout
    assert SECRET not in found.stdout + found.stderr + without.stdout + without.stderr
