"""``planner run``: a folder of policies on a real broker, run after run with short watches, one broker away."""

import json
from pathlib import Path

import pytest

from planner.documents.plan import read_plan_or_decision
from planner.rollout.plan import RolloutPlan
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

WATCH_S = 40
MOST_RUNS = 4
"""Two are enough, unless the machine stands still between them."""


def policy(bootstrap: str, group: str, least: int = 1) -> str:
    """Return a policy whose window of two minutes is longer than a watch."""
    text = kafka_policy(bootstrap, group).replace("minReplicas: 1", f"minReplicas: {least}")
    return text.replace("minCompleteness: 0.1", "minCompleteness: 0.5")


def test_short_runs_decide_by_what_former_ones_saw_and_a_broker_that_is_away_stops_nobody(
    kafka_cluster: KafkaCluster, tmp_path: Path
) -> None:
    """Red when a run looks at its own watch alone, or when one failure takes the others along."""
    for topic, rate in (("run-busy", 30.0), ("run-calm", 1.0)):
        kafka_cluster.create_topic(topic, partitions=6)
        curves = [PartitionCurve(topic, number, ((0.0, rate), (900.0, rate))) for number in range(6)]
        load = kafka_cluster.load().start()
        for client in ("c0", "c1"):
            load.start_consumer(client, group=topic, topics=[topic], config={}, service_ms=20.0)
            load.await_event(client, "assigned")
        load.produce("p", curves)
        load.process.wait_until("records", lambda load=load: bool(load.deliveries()), REQUEST_S)
    folder, data, plans = tmp_path / "policies", tmp_path / "data", tmp_path / "plans"
    folder.mkdir()
    (folder / "busy.yaml").write_text(policy(kafka_cluster.bootstrap, "run-busy"), encoding="utf-8")
    (folder / "calm.yaml").write_text(policy(kafka_cluster.bootstrap, "run-calm", least=2), encoding="utf-8")
    (folder / "away.yaml").write_text(policy("127.0.0.1:1", "run-away"), encoding="utf-8")
    (folder / "typo.yaml").write_text("kind: ConsumerScalingPolicy\n", encoding="utf-8")

    command = ["run", "--policies", folder, "--data", data, "--plans", plans, "--observe-seconds", WATCH_S]
    first = planner(*command, "--no-page")
    assert first.returncode == 1
    assert "2 to hold, 1 without a decision. 2 failed, as said above: run-away, typo.yaml" in first.stderr
    held = next(line for line in first.stdout.splitlines() if line.startswith("run-busy"))
    assert "2 -> 2" in held
    assert "samples cover the window of 120 s" in held

    for _ in range(MOST_RUNS):
        found = planner(*command, "--format", "json")
        answer = json.loads(found.stdout)
        lines = {line["policy"]: line for line in answer["policies"]}
        if lines["run-busy"]["plan"]:
            break
    assert found.returncode == 1
    assert (answer["apiVersion"], answer["kind"]) == ("consumerplanner.dev/v1alpha1", "RunSummary")
    assert (lines["run-busy"]["from"], lines["run-busy"]["to"]) == (2, 6), answer
    assert (lines["run-calm"]["from"], lines["run-calm"]["to"], lines["run-calm"]["plan"]) == (2, 2, None)
    assert lines["run-away"]["to"] is None
    assert {failure["name"] for failure in answer["failures"]} == {"run-away", "typo.yaml"}
    assert "its group was not read" in next(one["reason"] for one in answer["failures"] if one["name"] == "run-away")
    copy = Path(lines["run-busy"]["plan"])
    assert copy.parent == plans
    assert isinstance(read_plan_or_decision(copy), RolloutPlan)
    assert Path(lines["run-calm"]["page"]).read_text(encoding="utf-8").startswith("<!")

    (folder / "busy.yaml").unlink()
    (folder / "calm.yaml").unlink()
    nobody = planner(*command, "--no-page")
    assert nobody.returncode == 3, nobody.stderr
    assert nobody.stdout.split()[:2] == ["run-away", "failed"]
