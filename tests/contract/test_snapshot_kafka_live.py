"""The path on a real Kafka group: ``planner snapshot``, ``simulate`` and ``plan``."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.plan import read_plan_or_decision
from planner.documents.policy import parse_policy
from planner.model.membership import KafkaMember
from planner.model.samples import GroupSample
from planner.model.snapshot import NewPods
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.simulation.candidates import simulate_candidate, unsettled_queues
from planner.simulation.kafka.mixed_partitions import assigned
from planner.snapshot.build import build_snapshot
from planner.sources.kafka import KafkaAdmin, observe_group
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner, refused

pytestmark = pytest.mark.cluster

OWN_ASSIGNOR = Path(__file__).parents[2] / "examples" / "custom_assignor.py"
SECONDS = 30
"""A machine that stands still for some seconds at the first or the last look is to matter little."""


def test_a_group_that_is_too_small_gets_a_plan(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    kafka_cluster.create_topic("path", partitions=6)
    process = kafka_cluster.load().start()
    range_assignor = {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}
    for client in ("path-0", "path-1"):  # numbered as Spring numbers those of one process
        process.start_consumer(client, group="path", topics=["path"], config=range_assignor)
        process.await_event(client, "assigned")
    process.produce("p", [PartitionCurve("path", number, ((0.0, 30.0), (600.0, 30.0))) for number in range(6)])

    def flows() -> bool:
        return {one.partition for one in process.deliveries() if one.topic == "path"} == set(range(6))

    process.process.wait_until("records of each partition", flows, REQUEST_S)
    policy = tmp_path / "policy.yaml"
    policy.write_text(kafka_policy(kafka_cluster.bootstrap, "path"), encoding="utf-8")

    found = planner("snapshot", "-p", policy, "-o", tmp_path / "snap.json", "--observe-seconds", SECONDS)
    process.stop()
    assert (found.returncode, found.stderr) == (0, "")
    taken = SNAPSHOT.read(tmp_path / "snap.json")
    assert (taken.system, taken.strategy, len(taken.clients), len(taken.data_queues)) == ("kafka", "range", 2, 6)
    assert sum(state.arrival_rate or 0.0 for state in taken.data_queues) == pytest.approx(180.0, rel=0.25)
    assert all(state.lag is not None for state in taken.data_queues)

    told = planner("simulate", tmp_path / "snap.json", "--counts", "1..6", "-o", "json")
    moved = {one["count"]: (one["moved_fewest"], one["moved_most"]) for one in json.loads(told.stdout)}
    # Blocks of 3 and 3 become 2, 2, 2: a newcomer in the middle takes one of each, one at an end shifts both.
    assert moved[3] == (2, 3)
    planning = ("plan", tmp_path / "snap.json", "-p", policy, "-o", tmp_path / "plan.yaml", "--at", "snapshot")
    assert planner(*planning).returncode == 0
    held = read_plan_or_decision(tmp_path / "plan.yaml")
    assert isinstance(held, DecisionRecord)
    assert held.decision.hold_cause == "UnknownPods", "two members of one process are no two pods"
    assert "2 members share address 127.0.0.1" in held.decision.reason
    policy.write_text(f"{kafka_policy(kafka_cluster.bootstrap, 'path')}  membersPerPod: 1\n", encoding="utf-8")
    planned = planner(*planning)
    assert planned.returncode == 0, planned.stderr
    plan = read_plan_or_decision(tmp_path / "plan.yaml")
    # 180 records/s at 50 a consumer and at most 80 % of it: 3 would be far above, 6 partitions divide by 6 next.
    assert isinstance(plan, RolloutPlan), planned.stdout
    assert "from 2 to 6 consumers" in plan.reason
    assert planner("explain", tmp_path / "plan.yaml").returncode == 0


def test_a_scale_up_of_members_in_racks_goes_as_the_planner_says(kafka_cluster: KafkaCluster) -> None:
    """Partitions with one replica in rack r1 or r2 (KIP-881): owners now, and with a third member in rack r1."""
    kafka_cluster.create_topic("racked", replicas=[[1], [2], [2], [1], [1], [2], [2], [1]])
    process = kafka_cluster.load().start()

    def start(client: str, rack: str) -> None:
        settings = {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}
        process.start_consumer(client, group="racked", topics=["racked"], config={**settings, "client.rack": rack})
        process.await_event(client, "assigned")

    start("rack-0", "r2")
    start("rack-1", "r1")
    before = settled_sample(kafka_cluster, "racked", 2)
    text = f"{kafka_policy(kafka_cluster.bootstrap, 'racked')}  membersPerPod: 1\n  newPods: {{rack: r1}}\n"
    policy = parse_policy(text, "policy.yaml")
    taken = build_snapshot(before, (), before.at, policy.snapshot_settings)
    assert {state.queue.number: state.racks for state in taken.data_queues} == {
        number: (rack,) for number, rack in enumerate(("r1", "r2", "r2", "r1", "r1", "r2", "r2", "r1"))
    }
    assert unsettled_queues(taken) == 0, "the real leader assigned as the planner does"
    said = simulate_candidate(taken, 3, "range")
    start("rack-2", "r1")
    after = settled_sample(kafka_cluster, "racked", 3)
    process.stop()
    (new,) = [member for member in after.members if member.client_id == "rack-2"]
    assert isinstance(new, KafkaMember)
    owners = {queue: names[0] for queue, names in after.owners.items()}
    assert owners == assigned(taken, "range", (*taken.members, new))
    blind = tuple(replace(member, rack=None) for member in (*taken.members, new))
    assert owners != assigned(replace(taken, members=blind[:2], new_pods=NewPods()), "range", blind)
    moved = sum(owners[state.queue] != state.owner for state in taken.data_queues)
    assert said.moved_fewest is not None
    assert said.moved_most is not None
    assert said.moved_fewest <= moved <= said.moved_most


def settled_sample(cluster: KafkaCluster, group: str, members: int) -> GroupSample:
    """Return the group's sample once so many members own all partitions."""

    def probe() -> GroupSample | None:
        with KafkaAdmin(cluster.bootstrap.split(",")) as admin:
            sample = observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))
        owners = {name for names in sample.owners.values() for name in names}
        is_whole = len(sample.owners) == len(sample.routes.read_queues) and len(owners) == members
        return sample if is_whole and len(sample.members) == members else None

    deadline = time.monotonic() + REQUEST_S
    while (sample := probe()) is None:
        assert time.monotonic() < deadline, f"group {group} has not settled with {members} members"
        time.sleep(0.5)
    return sample


def test_a_group_of_its_own_assignor_owns_what_the_file_says(
    kafka_cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java class of the user's own and the Python file that is its twin: owners now, and with a third member."""
    monkeypatch.setenv("PLANNER_STRATEGY_FILES", str(OWN_ASSIGNOR))
    kafka_cluster.create_topic("weighed", partitions=7)
    process = kafka_cluster.load().start()

    def start(client: str) -> None:
        settings = {"partition.assignment.strategy": "dev.consumerplanner.load.kafka.ByWeight"}
        process.start_consumer(client, group="weighed", topics=["weighed"], config=settings)
        process.await_event(client, "assigned")

    start("weighed-0")
    start("weighed-1")
    before = settled_sample(kafka_cluster, "weighed", 2)
    text = f"{kafka_policy(kafka_cluster.bootstrap, 'weighed')}  membersPerPod: 1\n  strategy: {OWN_ASSIGNOR}\n"
    policy = parse_policy(text, "policy.yaml")
    taken = build_snapshot(before, (), before.at, policy.snapshot_settings)
    assert taken.strategy == str(OWN_ASSIGNOR), taken.strategy_source
    assert unsettled_queues(taken) == 0, "the real leader assigned as the file does"
    unstated = build_snapshot(before, (), before.at, replace(policy.snapshot_settings, strategy=None))
    assert unstated.strategy == "by-weight", "the coordinator reports the class's name"
    start("weighed-2")
    after = settled_sample(kafka_cluster, "weighed", 3)
    process.stop()
    assert unsettled_queues(build_snapshot(after, (), after.at, policy.snapshot_settings)) == 0


def test_an_unknown_group_is_named(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(kafka_policy(kafka_cluster.bootstrap, "nobody"), encoding="utf-8")
    refused(planner("snapshot", "-p", policy, "-o", tmp_path / "x.json", "--observe-seconds", 0), 2, "nobody")
    assert not (tmp_path / "x.json").exists()
