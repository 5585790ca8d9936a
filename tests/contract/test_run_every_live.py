"""``planner run --every`` at a real group: its decision to stay stands, until somebody joins.

And the load of what its snapshots no longer show goes on with them.
"""

import sys
from pathlib import Path

import pytest

from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.processes import ManagedProcess
from tests.sample_builders import kafka_policy
from tests.unit.packaging.images import ROOT

pytestmark = pytest.mark.cluster

GROUP, RATE = "stands", 4.0
"""Messages a second and partition, of six; a consumer does 50 a second: the fewest that the policy allows are enough,
however busy the machine is.
"""
WAIT_S = 300.0
STANDS = r"stands +2 -> 2 .*So decided at (\d\d:\d\d:\d\d) UTC, and it stands\."


def policy(bootstrap: str) -> str:
    """Return a policy that weighs costs and is content with a minute of samples."""
    lines = kafka_policy(bootstrap, GROUP).splitlines()
    text = "\n".join(line for line in lines if "objective" not in line) + "\n"
    return text.replace("window: {seconds: 120}", "window: {seconds: 60}").replace("minReplicas: 1", "minReplicas: 2")


def test_a_decision_to_stay_stands_until_a_member_joins(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Red where each run decides anew, and where one stands although the group has another member."""
    kafka_cluster.create_topic(GROUP, partitions=6)
    load = kafka_cluster.load().start()
    for client in ("c0", "c1"):
        load.start_consumer(client, group=GROUP, topics=[GROUP], config={}, service_ms=20.0)
        load.await_event(client, "assigned")
    load.produce("p", [PartitionCurve(GROUP, number, ((0.0, RATE), (1800.0, RATE))) for number in range(6)])
    load.process.wait_until("records", lambda: bool(load.deliveries()), REQUEST_S)
    folder, data = tmp_path / "policies", tmp_path / "data"
    folder.mkdir()
    (folder / "stands.yaml").write_text(policy(kafka_cluster.bootstrap), encoding="utf-8")
    words = ["run", "--policies", str(folder), "--data", str(data), "--every", "10s", "--observe-seconds", "10"]
    program = [sys.executable, "-m", "planner.cli.main", *words, "--no-page"]
    run = ManagedProcess("run", program, tmp_path, {"PYTHONPATH": str(ROOT)})
    run.start()
    first = run.wait_for_line(STANDS, WAIT_S)[1]
    made = sorted(path.parent.parent.name for path in data.glob("runs/*/stands/decision.yaml"))
    assert any(name[9:15] == first.replace(":", "") for name in made), (first, made)
    load.start_consumer("c2", group=GROUP, topics=[GROUP], config={}, service_ms=20.0)
    load.await_event("c2", "assigned")
    run.wait_for_line(r"stands +3 -> ", WAIT_S)
    assert len(list(data.glob("runs/*/stands/decision.yaml"))) > len(made)
    assert list(data.glob("runs/*/stands.json"))
    run.stop(300.0)
    load.stop()
