"""The DAG on live brokers, as it runs every ten minutes: Airflow, Spark, and the groups' own clusters.

A sampler stands beside it, so that the run looks once. Runs that watch are other tests'.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.policy import parse_policy
from planner.runs.conclude import ages_at_decision_s
from planner.runs.coverage import needs_single_read, read_coverage
from planner.runs.policy_stages import read_decision
from planner.storage.layout import RunFolder, time_of_name
from planner.storage.run import Run
from scripts.run_local import ROOT, Settings, environment
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.processes import ManagedProcess
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.sample_builders import POLICY, kafka_policy

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.cluster, pytest.mark.usefixtures("java")]

WATCH_S = 1_800
"""A run that watches for so long comes too late for all load, and for the test's own end."""
LOAD_S, WAIT_S = 900.0, 300.0
STICKY = {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}


def run_dag(place: Path, asked_at: datetime) -> subprocess.CompletedProcess[str]:
    """Run the DAG on the live groups of the folder's policies."""
    settings = Settings(place / "policies", place, place / "work")
    settings.airflow_home.mkdir(parents=True)
    conf = {
        "policies": str(settings.policies),
        "data": str(settings.data),
        "source": "live",
        "watch_seconds": WATCH_S,
        "until": asked_at.isoformat(),
    }
    return subprocess.run(
        [sys.executable, "-m", "scripts.run_dag", "1", json.dumps(conf)],
        cwd=ROOT,
        env=os.environ | environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )


def start_sampler(policies: Path, data: Path) -> ManagedProcess:
    """Start ``planner sample`` and return it once it covers both groups."""
    words = ["sample", "--policies", str(policies), "--data", str(data), "--every", "15s"]
    sampler = ManagedProcess(
        "sampler", [sys.executable, "-m", "planner.cli.main", *words], policies.parent, {"PYTHONPATH": str(ROOT)}
    )
    sampler.start()
    wanted = [parse_policy(path.read_text(encoding="utf-8"), path.name) for path in policies.iterdir()]
    sampler.wait_until(
        "coverage",
        lambda: all(needs_single_read(read_coverage(data), [policy], datetime.now(UTC)) for policy in wanted),
        WAIT_S,
    )
    return sampler


def test_a_live_run_beside_a_sampler_decides_on_one_look_in_both_systems(
    rocketmq_cluster: Callable[[str], RocketMQCluster], kafka_cluster: KafkaCluster, tmp_path: Path
) -> None:
    kafka_cluster.create_topic("dag-live", partitions=6)
    members = kafka_cluster.load().start()
    for client in ("c0", "c1"):
        members.start_consumer(client, group="dag-live-kafka", topics=["dag-live"], config=STICKY)
        members.await_event(client, "assigned")
    members.produce("p", [PartitionCurve("dag-live", number, ((0.0, 30.0), (LOAD_S, 30.0))) for number in range(6)])
    cluster = rocketmq_cluster(NEW)
    cluster.create_topic("dag-live", 4)
    load = cluster.load(NEW)
    for name in ("c1", "c2"):
        load.start_consumer(group="dag-live", topics=["dag-live"], instance=name, service_ms=20, threads=2)
    rate = ((0.0, 5.0), (LOAD_S, 5.0))
    curves = [QueueCurve("dag-live", broker, queue, rate) for broker in ("broker-a", "broker-b") for queue in range(4)]
    producer = load.start_producer(curves)
    policies = tmp_path / "policies"
    policies.mkdir()
    policy = POLICY.replace("127.0.0.1:9876", cluster.name_server).replace("group: shop", "group: dag-live")
    kafka = kafka_policy(kafka_cluster.bootstrap, "dag-live-kafka")
    (policies / "kafka.yaml").write_text(kafka.replace("seconds: 120", "seconds: 60"), encoding="utf-8")
    (policies / "shop.yaml").write_text(policy.replace("seconds: 120", "seconds: 60"), encoding="utf-8")

    sampler = start_sampler(policies, tmp_path / "work" / "data")
    asked_at = datetime.now(UTC)
    done = run_dag(tmp_path, asked_at)
    assert sampler.stop(300.0) == 0, sampler.log_tail()
    producer.stop()
    load.stop()
    members.stop()

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (folder,) = (tmp_path / "work" / "data" / "runs").iterdir()
    run = Run(folder.parent.parent, RunFolder(folder).policies, *[time_of_name(folder.name)] * 2, 15.0)
    ages_s = ages_at_decision_s(run)
    print(f"ages of the newest sample at the decision: {ages_s}")
    assert sorted(ages_s) == ["dag-live-kafka", "shop"]
    # How old is measured by the soak; here every decision must rest on a look that began when the run was asked for.
    for name, age_s in ages_s.items():
        decided_at_s = RunFolder(folder).policy(name).decision.stat().st_mtime
        assert 0.0 < age_s < decided_at_s - asked_at.timestamp()
    files = RunFolder(folder).policy("shop")
    taken = SNAPSHOT.read(files.snapshot)
    assert taken.clients == ("127.0.0.1@c1", "127.0.0.1@c2")
    assert sum(state.arrival_rate or 0.0 for state in taken.data_queues) == pytest.approx(40.0, rel=0.2)
    decision = read_decision(files.decision).decision
    # Two threads at 20 ms do 100 messages/s, so one consumer is enough for 40.
    assert (decision.current, decision.target) == (2, 1), decision.reason
    assert files.plan.exists()
    assert "Scale from 2 to 1 consumer" in files.report.read_text(encoding="utf-8")

    kafka_files = RunFolder(folder).policy("dag-live-kafka")
    assert SNAPSHOT.read(kafka_files.snapshot).strategy == "cooperative-sticky"
    decision = read_decision(kafka_files.decision).decision
    # 180 records/s at 50 a consumer and at most 80 % of it: 3 would be far above.
    assert (decision.current, decision.target) == (2, 6), decision.reason
    assert "cooperative-sticky" in kafka_files.report.read_text(encoding="utf-8")
