"""What is noticed over several live runs, with a real broker: a hold that lasts, and a group that is never read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.storage.layout import RunFolder
from scripts.run_local import ROOT, Settings, environment
from tests.clusters.kafka import KafkaCluster
from tests.sample_builders import kafka_policy

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.usefixtures("java"),
    pytest.mark.timeout(2_700),
]

NOBODY = "127.0.0.1:1"
RUNS = 3


def run(settings: Settings, **settings_of_notices: str) -> str:
    """Run the DAG on the live groups of the policies; return what it said."""
    conf = {"policies": str(settings.policies), "data": str(settings.data), "source": "live", "watch_seconds": 6}
    notifier = {
        "classpath": "tests.dags.noting.NotingNotifier",
        "kwargs": {"file": str(settings.work / "notes.txt"), "line": "{{ event }}: {{ sentence }}"},
    }
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.run_dag", "1", json.dumps(conf)],
        cwd=ROOT,
        env=os.environ
        | environment(settings)
        | {"CONSUMER_PLANNER_NOTIFIER": json.dumps(notifier)}
        | settings_of_notices,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stdout + ended.stderr


def test_a_lasting_hold_and_a_group_that_is_never_read_are_noticed_once(
    kafka_cluster: KafkaCluster, tmp_path: Path
) -> None:
    kafka_cluster.create_topic("dag-notices", partitions=3)
    members = kafka_cluster.load().start()
    members.start_consumer("c0", group="dag-notices", topics=["dag-notices"])
    members.await_event("c0", "assigned")
    settings = Settings(tmp_path / "policies", tmp_path, tmp_path / "work")
    settings.airflow_home.mkdir(parents=True)
    settings.policies.mkdir()
    # Six seconds are no tenth of an hour, so that it holds run after run.
    hour = kafka_policy(kafka_cluster.bootstrap, "dag-notices").replace("seconds: 120", "seconds: 3600")
    (settings.policies / "near.yaml").write_text(hour, encoding="utf-8")
    (settings.policies / "far.yaml").write_text(kafka_policy(NOBODY, "dag-far"), encoding="utf-8")
    said = [
        run(settings, CONSUMER_PLANNER_HOLD_RUNS="2", CONSUMER_PLANNER_DEADLINE_MINUTES="0.05") for _ in range(RUNS)
    ]
    members.stop()

    runs = sorted((settings.data / "runs").iterdir())
    assert len(runs) == RUNS, said[-1][-4_000:]
    notes = (settings.work / "notes.txt").read_text(encoding="utf-8").splitlines()
    (holding,) = [line for line in notes if line.startswith("holding: ")]
    assert "dag-notices holds since " in holding
    assert ", 2 runs in a row: Hold at 1 consumer: its rates are " in holding
    (overdue,) = [line for line in notes if line.startswith("overdue: ")]
    assert overdue.startswith("overdue: dag-far has had no decision for ")
    assert NOBODY in overdue
    assert sum(line.startswith("failed: conclude: ") for line in notes) == RUNS

    covered = [
        next(
            part.completeness
            for part in SNAPSHOT.read(RunFolder(one).snapshot("dag-notices")).parts
            if part.name == "rates"
        )
        for one in runs
    ]
    assert covered[0] < covered[1] < covered[2], "each run looks back at what the earlier ones left"
