"""The path on a real Kafka group: ``planner snapshot``, ``simulate`` and ``plan``."""

import json
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.plan import read_plan_or_decision
from planner.rollout.plan import DecisionRecord, RolloutPlan
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner, refused

pytestmark = pytest.mark.cluster

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


def test_an_unknown_group_is_named(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(kafka_policy(kafka_cluster.bootstrap, "nobody"), encoding="utf-8")
    refused(planner("snapshot", "-p", policy, "-o", tmp_path / "x.json", "--observe-seconds", 0), 2, "nobody")
    assert not (tmp_path / "x.json").exists()
