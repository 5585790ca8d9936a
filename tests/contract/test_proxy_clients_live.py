"""gRPC consumers behind real proxies: what brokers cannot list is unknown, never none, and nothing is to be deleted.

A proxy with a process of its own (CLUSTER), whose clients no broker lists, and one within the broker's (LOCAL).
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.deployments.offsets.actions import OffsetActions
from planner.deployments.offsets.installations import installation
from planner.documents.data import SNAPSHOT
from planner.documents.policy import parse_policy
from planner.execution.effects import SetOffsets
from planner.execution.ports import ConflictError
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.rollout.steps import ResetOffsets
from planner.snapshot.unlisted import ALIVE_S
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.rocketmq import FOR_POP, NEW, RocketMQCluster
from tests.clusters.rocketmq_grpc import GrpcConsumerProcess
from tests.clusters.rocketmq_load import QueueCurve
from tests.patience import PATIENT
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import Found, planner

pytestmark = pytest.mark.cluster

RATE = 30.0
SERVICE_MS = 400
"""Four threads: 10 messages/s a member."""
HEAVY = (300.0, 6.0, 10.0)
"""Messages a second to each of four queues, for so many seconds, and after them: the caches hold 2 048 of 7 200."""


@dataclass
class Proxied:
    """A cluster with gRPC consumers: ``busy`` consumes 30 messages/s, ``idle`` waits, ``crashed`` is dead.

    ``drowning`` has two members that do 10 messages/s each, of 40 that come in; ``in-order`` is a FIFO group.
    """

    cluster: RocketMQCluster
    consumers: GrpcConsumerProcess
    proxy: str

    @property
    def named(self) -> tuple[str, ...]:
        """The options that name the proxy: only where it is not within the broker's process."""
        return () if self.cluster.brokers[0].process is self.cluster.proxies[0].process else ("--proxy", self.proxy)

    def sample(self, group: str) -> GroupSample:
        """Return what the brokers say of a group now."""
        with RocketMQAdmin(self.cluster.name_server, limits=PATIENT) as admin:
            return observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))


def running(*, local: bool) -> Iterator[Proxied]:
    with RocketMQCluster.start(NEW, brokers=1, settings=FOR_POP, local_proxies=local) as cluster:
        proxy = cluster.proxies[0] if local else cluster.start_proxy()
        for topic in ("orders", "quiet", "heavy"):
            cluster.create_topic(topic, 4)
        for group in ("busy", "idle", "crashed", "leftover", "drowning"):
            cluster.create_group(group)
        cluster.create_group("in-order", consumeMessageOrderly=True)
        cluster.commit("leftover", "orders", {("broker-a", queue): 0 for queue in range(4)})
        load = cluster.grpc_load(proxy)
        doomed = None if local else load.start_consumers({"crashed": "orders"}, wait_ready=False)
        consumers = load.start_consumers({"busy": "orders", "idle": "quiet", "in-order": "quiet"}, wait_ready=False)
        slow = [load.start_consumers({"drowning": "heavy"}, service_ms=SERVICE_MS, wait_ready=False) for _ in range(2)]
        curves = [QueueCurve("orders", "broker-a", queue, ((0, RATE / 4), (3_600, RATE / 4))) for queue in range(4)]
        burst, seconds, rate = HEAVY
        points = ((0.0, burst), (seconds, burst), (seconds, rate), (3_600.0, rate))
        curves += [QueueCurve("heavy", "broker-a", queue, points) for queue in range(4)]
        cluster.load().start_producer(curves)
        for process in slow:
            process.await_ready()
        consumers.await_ready()
        if doomed is not None:
            doomed.await_ready()
            while not doomed.consumed:  # brokers know a group from its first pop on
                time.sleep(0.5)
            doomed.kill()
        while not consumers.consumed:
            time.sleep(0.5)
        yield Proxied(cluster, consumers, proxy.remoting)


@pytest.fixture(scope="module")
def behind() -> Iterator[Proxied]:
    yield from running(local=False)


@pytest.fixture(scope="module")
def within() -> Iterator[Proxied]:
    yield from running(local=True)


def doctor(cluster: RocketMQCluster, *groups: str) -> dict[str, dict[str, Any]]:
    """Return the doctor's diagnosis by group, after two looks at least."""
    names = [word for group in groups for word in ("--group", group)]
    found = planner("doctor", *names, "-n", cluster.name_server, "--watch", 11, "-o", "json")
    assert found.stderr == ""
    return {one["group"]: one for one in json.loads(found.stdout)["body"]["groups"]}


def findings(diagnosis: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["code"]: one for one in diagnosis["findings"]}


def decided(
    folder: Path, cluster: RocketMQCluster, group: str, proxies: tuple[str, ...] = ()
) -> tuple[Found, GroupSnapshot, Found]:
    """Return what ``planner snapshot`` prints and writes, and what ``planner plan`` makes of it."""
    policy, file = folder / f"{group}.yaml", folder / f"{group}.json"
    text = POLICY.replace("127.0.0.1:9876", cluster.name_server).replace("group: shop", f"group: {group}")
    if proxies:
        text = text.replace("source: {", f"source: {{proxies: {json.dumps(proxies)}, ")
    policy.write_text(f"{text}  freshness: {{minCompleteness: 0.02}}\n")
    taken = planner("snapshot", "--policy", policy, "-o", file, "--observe-seconds", 6)
    assert taken.returncode == 0, taken.stderr
    return taken, SNAPSHOT.read(file), planner("plan", file, "--policy", policy, "-o", folder / f"{group}-plan.yaml")


def assert_decided(proxied: Proxied) -> tuple[str, ...]:
    """Two members do 20 messages/s of 40 that come in, and thousands wait. Return how commands reach the group."""
    options = ("-n", proxied.cluster.name_server, *proxied.named, "--group", "drowning")
    found = planner("advise", *options, "--members-per-pod", 1, "--at-most", 120, "--format", "json")
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert (answer["decision"], answer["from"]) == ("scale", 2), answer
    assert answer["to"] >= 4, "40 messages/s at 10 a member, and a backlog besides"
    return options


def test_grpc_clients_behind_a_proxy_are_decided_by_capacity(behind: Proxied) -> None:
    options = assert_decided(behind)
    diagnosis = json.loads(planner("doctor", *options, "--watch", 30, "-o", "json").stdout)["body"]["groups"]
    (known,) = [findings(each) for each in diagnosis]
    assert {code for code, one in known.items() if one["severity"] == "error"} <= {"too-few-consumers"}, known
    assert not known.keys() & {"no-members", "members-unknown", "silent-member", "no-owner"}


def test_proxies_list_the_members_and_what_is_in_order_is_said(behind: Proxied, tmp_path: Path) -> None:
    with RocketMQAdmin(behind.cluster.name_server, limits=PATIENT, proxies=(behind.proxy,)) as admin:
        sample = observe_group(admin, cluster=None, group="drowning", topics=None, at=datetime.now(UTC))
    assert [(member.identity.count("@"), member.owned, member.protocol) for member in sample.members] == [
        (3, (), "grpc"),
        (3, (), "grpc"),
    ]
    assert not any("offline" in problem for problem in sample.problems)
    _, snapshot, plan = decided(tmp_path, behind.cluster, "in-order", proxies=(behind.proxy,))
    assert (snapshot.unlisted_consumers, snapshot.orderly, len(snapshot.clients)) == (None, True, 1)
    assert "consume in order" in " ".join(plan.stdout.split())


def test_a_proxy_that_does_not_answer_leaves_the_members_unknown(behind: Proxied, tmp_path: Path) -> None:
    _, snapshot, plan = decided(tmp_path, behind.cluster, "busy", proxies=(behind.proxy, "127.0.0.1:1"))
    assert "127.0.0.1:1 of spec.source.proxies did not list" in (snapshot.unlisted_consumers or "")
    assert "did not list the group's members" in " ".join(plan.stdout.split())


def test_groups_behind_a_proxy_are_alive_and_their_members_unknown(behind: Proxied) -> None:
    said = doctor(behind.cluster, "busy", "idle", "leftover")
    for group in ("busy", "idle"):
        known = findings(said[group])
        assert known["members-unknown"]["severity"] == "notice"
        assert known["members-unknown"]["title"] == "Consumed through a proxy; members unknown"
        assert not known.keys() & {"no-members", "silent-member", "no-owner"}
        assert all(one["severity"] != "error" for one in known.values())
    assert "messages/s acknowledged" in findings(said["busy"])["members-unknown"]["evidence"][0]
    # Nobody pops for it, and clients that pull through the proxy could be there all the same.
    assert "delete" not in findings(said["leftover"])["no-members"]["advice"]


@pytest.mark.parametrize("group", ["busy", "idle"])
def test_the_plan_of_a_group_behind_a_proxy_holds_as_its_members_are_unknown(
    behind: Proxied, tmp_path: Path, group: str
) -> None:
    taken, snapshot, plan = decided(tmp_path, behind.cluster, group)
    assert "members unknown (consumed through a proxy" in taken.stdout
    assert "0 consumers" not in taken.stdout
    assert snapshot.unlisted_consumers is not None
    said = " ".join(plan.stdout.split())
    assert "its members are unknown: consumed through a proxy" in said
    assert "add spec.source.proxies: [127.0.0.1:8080]" in said


def test_brokers_know_where_the_proxy_is_and_how_much_is_acknowledged(behind: Proxied) -> None:
    sample = behind.sample("busy")
    assert sample.rocketmq is not None
    activity = sample.rocketmq.unlisted
    assert activity is not None
    assert activity.proxies == ("127.0.0.1",)
    assert activity.is_complete
    assert activity.last_pop_s is not None
    assert activity.last_pop_s < ALIVE_S
    assert sample.members == ()
    assert not any("%RETRY%" in problem for problem in sample.problems)


def test_offsets_of_a_group_that_pops_behind_a_proxy_are_not_set(behind: Proxied) -> None:
    """The engine's observation refused already; here the clients come between it and the write."""
    text = POLICY.replace("127.0.0.1:9876", behind.cluster.name_server).replace("group: shop", "group: busy")
    back = ResetOffsets("busy", "set the offsets of busy", 60, to_end="earliest", topic="orders")
    assert not any(behind.cluster.members("busy").values())
    with pytest.raises(ConflictError, match=r"^group busy is consumed by .* its last pop on orders at broker broker-a"):
        OffsetActions(installation).set(parse_policy(text, "policy"), SetOffsets(back, "busy", "plan/1", "busy"))


def test_a_crashed_group_is_no_leftover(behind: Proxied) -> None:
    # The proxy renews what a dead client holds and gives it back after 120 s; both count as acknowledgements.
    known = findings(doctor(behind.cluster, "crashed", "leftover")["crashed"])
    assert known.keys() & {"members-unknown", "no-members"}
    assert not any("delete" in one["advice"] or "reset" in one["advice"] for one in known.values())
    assert any("mqadmin consumerConnection" in one["advice"] for one in known.values())


def test_grpc_clients_of_a_local_proxy_are_decided_by_capacity(within: Proxied) -> None:
    assert_decided(within)


def test_grpc_members_of_a_local_proxy_are_neither_asked_nor_called_silent(within: Proxied) -> None:
    sample = within.sample("busy")
    (member,) = sample.members
    assert (member.identity.count("@"), member.owned) == (3, ())
    assert sample.took_s < PATIENT.running_info_s
    assert not any("did not report what it runs" in problem for problem in sample.problems)
    said = doctor(within.cluster, "busy", "idle", "leftover")
    for group in ("busy", "idle"):
        assert not findings(said[group]).keys() & {"silent-member", "no-members", "members-unknown", "no-owner"}
        assert "gRPC member" in next(
            one["reason"] for one in said[group]["unchecked"] if one["code"] == "silent-member"
        )
    # No other proxy is connected here, and no broker remembers a pop: this one is known to be unused.
    assert "delete the subscription group" in findings(said["leftover"])["no-members"]["advice"]
