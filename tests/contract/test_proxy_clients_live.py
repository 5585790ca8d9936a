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

from planner.documents.data import SNAPSHOT
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
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


@dataclass
class Proxied:
    """A cluster with gRPC consumers: ``busy`` consumes 30 messages/s, ``idle`` waits, ``crashed`` is dead."""

    cluster: RocketMQCluster
    consumers: GrpcConsumerProcess

    def sample(self, group: str) -> GroupSample:
        """Return what the brokers say of a group now."""
        with RocketMQAdmin(self.cluster.name_server, limits=PATIENT) as admin:
            return observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))


def running(*, local: bool) -> Iterator[Proxied]:
    with RocketMQCluster.start(NEW, brokers=1, settings=FOR_POP, local_proxies=local) as cluster:
        proxy = cluster.proxies[0] if local else cluster.start_proxy()
        for topic in ("orders", "quiet"):
            cluster.create_topic(topic, 4)
        for group in ("busy", "idle", "crashed", "leftover"):
            cluster.create_group(group)
        cluster.commit("leftover", "orders", {("broker-a", queue): 0 for queue in range(4)})
        load = cluster.grpc_load(proxy)
        doomed = None if local else load.start_consumers({"crashed": "orders"}, wait_ready=False)
        consumers = load.start_consumers({"busy": "orders", "idle": "quiet"}, wait_ready=False)
        curves = [QueueCurve("orders", "broker-a", queue, ((0, RATE / 4), (3_600, RATE / 4))) for queue in range(4)]
        cluster.load().start_producer(curves)
        consumers.await_ready()
        if doomed is not None:
            doomed.await_ready()
            while not doomed.consumed:  # brokers know a group from its first pop on
                time.sleep(0.5)
            doomed.kill()
        while not consumers.consumed:
            time.sleep(0.5)
        yield Proxied(cluster, consumers)


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


def decided(folder: Path, cluster: RocketMQCluster, group: str) -> tuple[Found, GroupSnapshot, Found]:
    """Return what ``planner snapshot`` prints and writes, and what ``planner plan`` makes of it."""
    policy, file = folder / f"{group}.yaml", folder / f"{group}.json"
    text = POLICY.replace("127.0.0.1:9876", cluster.name_server).replace("group: shop", f"group: {group}")
    policy.write_text(f"{text}  freshness: {{minCompleteness: 0.02}}\n")
    taken = planner("snapshot", "--policy", policy, "-o", file, "--observe-seconds", 6)
    assert taken.returncode == 0, taken.stderr
    return taken, SNAPSHOT.read(file), planner("plan", file, "--policy", policy, "-o", folder / f"{group}-plan.yaml")


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
    assert "its members are unknown: consumed through a proxy" in " ".join(plan.stdout.split())


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


def test_grpc_members_of_a_local_proxy_are_neither_asked_nor_called_silent(within: Proxied) -> None:
    sample = within.sample("busy")
    (member,) = sample.members
    assert (member.identity.count("@"), member.owned) == (3, ())
    assert sample.took_s < PATIENT.running_info_s
    assert not any("did not tell what it runs" in problem for problem in sample.problems)
    said = doctor(within.cluster, "busy", "idle", "leftover")
    for group in ("busy", "idle"):
        assert not findings(said[group]).keys() & {"silent-member", "no-members", "members-unknown", "no-owner"}
        assert "gRPC member" in next(
            one["reason"] for one in said[group]["unchecked"] if one["code"] == "silent-member"
        )
    # No other proxy is connected here, and no broker remembers a pop: this one is known to be unused.
    assert "delete the subscription group" in findings(said["leftover"])["no-members"]["advice"]


def test_the_plan_of_grpc_members_holds_as_no_strategy_allocates(within: Proxied, tmp_path: Path) -> None:
    taken, snapshot, plan = decided(tmp_path, within.cluster, "busy")
    assert "1 consumer, " in taken.stdout
    assert snapshot.strategy is None
    assert "gRPC clients of a proxy" in " ".join(plan.stdout.split())


def test_a_crashed_group_is_no_leftover(behind: Proxied) -> None:
    # The proxy renews what a dead client holds and gives it back after 120 s; both count as acknowledgements.
    known = findings(doctor(behind.cluster, "crashed", "leftover")["crashed"])
    assert known.keys() & {"members-unknown", "no-members"}
    assert not any("delete" in one["advice"] or "reset" in one["advice"] for one in known.values())
    assert any("mqadmin consumerConnection" in one["advice"] for one in known.values())
