"""``planner doctor`` against a real, deliberately sick cluster: findings are made to happen, healthy groups have none.

One watch of the whole cluster is shared by most tests; what changes the cluster comes last.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.documents.diagnosis import DOCTOR_REPORT
from planner.sources import rocketmq as sources
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess
from tests.load import sick_groups
from tests.unit.cli.test_cli import Found, planner, refused

pytestmark = pytest.mark.cluster

WATCH_S = 90
"""Whether members keep up shows between commits that lie 30 s apart; a look may take 15 s on a busy machine."""
LOAD_S = 3_600


@dataclass
class Round:
    """One run of the doctor over everything."""

    found: Found
    groups: dict[str, dict[str, Any]]
    page: Path

    def codes(self, group: str) -> set[str]:
        return {finding["code"] for finding in self.groups[group]["findings"]}

    def finding(self, group: str, code: str) -> dict[str, Any]:
        return next(one for one in self.groups[group]["findings"] if one["code"] == code)


@pytest.fixture(scope="module")
def patients() -> Iterator[tuple[RocketMQCluster, list[ConsumerProcess]]]:
    with RocketMQCluster.start(NEW, brokers=2) as cluster:
        wards = sick_groups.admit(cluster, seconds=LOAD_S)
        sick_groups.await_calm(cluster)
        wards.append(sick_groups.admit_fresh(cluster))
        yield cluster, wards
        for one in wards:
            one.kill()  # 50 graceful stops would take longer than the tests


@pytest.fixture(scope="module")
def ward(patients: tuple[RocketMQCluster, list[ConsumerProcess]]) -> RocketMQCluster:
    return patients[0]


@pytest.fixture(scope="module")
def seen(ward: RocketMQCluster, tmp_path_factory: pytest.TempPathFactory) -> Round:
    page = tmp_path_factory.mktemp("doctor") / "doctor.html"
    found = planner("doctor", "--all", "-n", ward.name_server, "--watch", WATCH_S, "-o", "json", "--html", page)
    assert found.stderr == ""
    report = json.loads(found.stdout)
    return Round(found, {one["group"]: one for one in report["body"]["groups"]}, page)


@pytest.mark.parametrize("group", sick_groups.SICK)
def test_each_sickness_is_found_and_nothing_else(seen: Round, group: str) -> None:
    found = seen.codes(group)
    assert sick_groups.SICK[group] <= found
    assert found <= sick_groups.SICK[group] | sick_groups.ALSO.get(group, frozenset())


@pytest.mark.parametrize("group", sick_groups.HEALTHY)
def test_healthy_groups_have_no_findings(seen: Round, group: str) -> None:
    assert seen.groups[group]["findings"] == []


def test_the_answer_is_negative_and_a_document_that_can_be_read_again(seen: Round) -> None:
    assert seen.found.returncode == 1
    report = DOCTOR_REPORT.parse(seen.found.stdout, "the answer")
    assert {one.group for one in report.groups} == {*sick_groups.SICK, *sick_groups.HEALTHY}
    ranks = [one.findings[0].severity.rank if one.findings else 3 for one in report.groups]
    assert ranks == sorted(ranks)


def test_what_a_split_brain_tears_is_what_the_members_really_own(seen: Round) -> None:
    finding = seen.finding("sick-mixed-strategies", "mixed-strategies")
    # 4 + 4 queues, AVG takes 0 1 2 3 and AVG_BY_CIRCLE 1 3 5 7: 1 and 3 twice, 4 and 6 never (rocketmq.md 3.13).
    queues = {name for name in finding["about"] if name.startswith("orders/")}
    assert queues == {"orders/broker-a/1", "orders/broker-a/3", "orders/broker-b/0", "orders/broker-b/2"}
    assert finding["consequence"].startswith("2 queues are consumed more than once")


def test_two_topics_of_two_queues_tilt_and_two_members_do_as_well(seen: Round) -> None:
    finding = seen.finding("sick-tilted", "tilt")
    assert "queues by member: 2, 2, 0, 0" in finding["evidence"]
    assert finding["advice"].startswith("run 2: nobody carries more than now")


def test_a_hot_queue_names_its_share_and_the_last_useful_count(seen: Round) -> None:
    finding = seen.finding("sick-hot", "hot-queue")
    assert finding["about"][0] == "hot/broker-a/0"
    counted = re.match(r"([\d,]+) of ([\d,]+) messages", finding["evidence"][0])
    assert counted
    part, whole = (int(number.replace(",", "")) for number in counted.groups())
    share = part / whole
    # 60 of 60 + 7 * 3 messages a second are 74 %. Brokers are read one by one, and a late producer sends lumps.
    assert 0.6 < share < 0.9
    assert finding["title"].endswith(f"alone has {share:.0%} of the load")
    assert "beyond 2 the busiest still carries" in finding["consequence"]


def test_different_topics_orphan_half_of_each(seen: Round) -> None:
    finding = seen.finding("sick-different-topics", "different-topics")
    orphans = {name for name in finding["about"] if "/" in name}
    assert len(orphans) == 6  # 4 of orders, which the second member does not read, and 2 of small
    assert finding["consequence"].startswith("50% of the queues belong to nobody")


def test_a_policy_brings_one_group_and_its_stated_strategy(ward: RocketMQCluster, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: consumerplanner.dev/v1alpha1\nkind: ConsumerScalingPolicy\nmetadata: {name: well-busy}\nspec:\n"
        f'  source: {{system: rocketmq, nameServers: ["{ward.name_server}"], cluster: DefaultCluster, '
        "group: well-busy}\n  scaleTargetRef: {name: none}\n  maxReplicas: 4\n  strategy: AVG_BY_CIRCLE\n"
    )
    found = planner("doctor", "--policy", policy)
    assert found.returncode == 1
    assert "The policy states AVG_BY_CIRCLE, and the group runs another strategy" in found.stdout


def test_a_healthy_group_alone_ends_well_and_says_what_was_not_checked(ward: RocketMQCluster) -> None:
    found = planner("doctor", "-g", "well-busy", "-n", ward.name_server, "--watch", 5)
    assert found.returncode == 0, found.stdout
    assert "1 group, watched for 5 s: 1 healthy." in found.stdout
    assert "no Deployment was read" in found.stdout


def test_a_group_that_is_not_there_is_bad_input(ward: RocketMQCluster) -> None:
    refused(planner("doctor", "-g", "nobody", "-n", ward.name_server, "--watch", 0), 2, "nobody")


def test_a_group_that_is_not_there_beside_one_that_is_makes_the_answer_partial(ward: RocketMQCluster) -> None:
    found = planner("doctor", "-g", "well-busy", "-g", "nobody", "-n", ward.name_server, "--watch", 0)
    assert found.returncode == 3
    assert "Not read:\n  nobody: " in found.stdout


def test_nobody_listening_is_out_of_reach() -> None:
    refused(planner("doctor", "--all", "-n", "127.0.0.1:1", "--watch", 0), 3, "127.0.0.1:1")


@pytest.fixture
def after_first_look(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """A function: lets something happen right after the doctor's first look, however long that takes to come."""

    def plan(act: Callable[[], None]) -> None:
        left, look = [act], sources.observe_groups

        def observed(*arguments: Any, **options: Any) -> list[Any]:
            found = list(look(*arguments, **options))
            if left:
                left.pop()()
            return found

        monkeypatch.setattr(sources, "observe_groups", observed)

    return plan


def commit(cluster: RocketMQCluster, group: str, topic: str, queue: int, offset: int) -> None:
    """Overwrite the group's commit on a queue of the first broker, as a tool would (request 15)."""
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue), "commitOffset": str(offset)}
    remoting.ask_or_raise(cluster.brokers[0].address, 15, fields)


def test_what_somebody_did_by_hand_is_seen(
    ward: RocketMQCluster, after_first_look: Callable[[Callable[[], None]], None]
) -> None:
    """Offsets beyond the end and set back, notifications switched off."""
    first = ward.brokers[0].address
    abandoned = "sick-abandoned"
    commit(ward, abandoned, "orders", 0, remoting.max_offset(first, "orders", 0) + 100_000)
    stood_at = ward.committed(abandoned, "orders")[ward.brokers[0].name, 1]
    assert stood_at is not None
    commit(ward, abandoned, "orders", 1, stood_at + 40)
    for broker in ward.brokers:
        remoting.update_group(broker.address, "well-quiet", {"notifyConsumerIdsChangedEnable": False})
    after_first_look(lambda: commit(ward, abandoned, "orders", 1, stood_at))
    groups = ["-g", abandoned, "-g", "well-quiet"]
    found = planner("doctor", *groups, "-n", ward.name_server, "--watch", 10, "-o", "json")
    codes = {
        one["group"]: {finding["code"] for finding in one["findings"]}
        for one in json.loads(found.stdout)["body"]["groups"]
    }
    assert codes == {
        abandoned: {"no-members", "beyond-end", "rewinding"},
        "well-quiet": {"group-settings"},
    }


def test_a_frozen_member_is_named_and_nothing_hangs(
    patients: tuple[RocketMQCluster, list[ConsumerProcess]],
) -> None:
    cluster, (_, old, *_) = patients
    old.freeze()
    try:
        found = planner("doctor", "-g", "sick-old", "-n", cluster.name_server, "--watch", 0, "-o", "json")
    finally:
        old.resume()
    assert found.returncode == 1
    group = json.loads(found.stdout)["body"]["groups"][0]
    assert "silent-member" in {one["code"] for one in group["findings"]}
    assert any("did not report what they" in one["reason"] for one in group["unchecked"])


def test_a_crashed_broker_is_named_and_the_rest_is_told(
    ward: RocketMQCluster, after_first_look: Callable[[Callable[[], None]], None]
) -> None:
    """It crashes during the watch: members that have heard of an earlier crash own nothing there any more."""
    lost = ward.brokers[-1]
    after_first_look(lost.kill)
    found = planner("doctor", "-g", "well-busy", "-n", ward.name_server, "--watch", 5, "-o", "json")
    assert found.returncode == 1
    group = json.loads(found.stdout)["body"]["groups"][0]
    assert any(one["code"] == "broker-gone" and lost.name in one["title"] for one in group["findings"]), group
