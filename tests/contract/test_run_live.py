"""``planner run``: a folder of policies on a real broker, run after run with short watches, one broker away.

And with ``planner sample`` beside it, as a process of its own: the run looks once, and looks back for the rest.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.plan import read_plan_or_decision
from planner.documents.policy import parse_policy
from planner.rollout.plan import RolloutPlan
from planner.runs.coverage import needs_single_read, read_coverage
from planner.storage.landing import reading_files
from planner.storage.layout import RunFolder
from tests.clusters.kafka import REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.processes import ManagedProcess
from tests.sample_builders import kafka_policy
from tests.unit.cli.test_cli import planner, refused
from tests.unit.packaging.images import ROOT

pytestmark = pytest.mark.cluster

WATCH_S = 40
MOST_RUNS = 4
"""Two are enough, unless the machine stands still between them."""
WAIT_S = 600.0
LONG_WATCH_S = 900
"""A run that watches for so long is no run that looks back."""


def policy(bootstrap: str, group: str, least: int = 1) -> str:
    """Return a policy whose window of two minutes is longer than a watch."""
    text = kafka_policy(bootstrap, group).replace("minReplicas: 1", f"minReplicas: {least}")
    return text.replace("minCompleteness: 0.1", "minCompleteness: 0.5")


@pytest.fixture(scope="module")
def groups(kafka_cluster: KafkaCluster) -> Iterator[str]:
    """Two groups of default clients, one of them overloaded; gives the bootstrap servers."""
    loads = []
    for topic, rate in (("run-busy", 30.0), ("run-calm", 1.0)):
        kafka_cluster.create_topic(topic, partitions=6)
        curves = [PartitionCurve(topic, number, ((0.0, rate), (1800.0, rate))) for number in range(6)]
        load = kafka_cluster.load().start()
        loads.append(load)
        for client in ("c0", "c1"):
            load.start_consumer(client, group=topic, topics=[topic], config={}, service_ms=20.0)
            load.await_event(client, "assigned")
        load.produce("p", curves)
        load.process.wait_until("records", lambda load=load: bool(load.deliveries()), REQUEST_S)
    yield kafka_cluster.bootstrap
    for load in loads:
        load.stop()


def fleet(folder: Path, bootstrap: str) -> Path:
    """Write policies of both groups, of one whose broker is away, and a file that is none."""
    folder.mkdir()
    (folder / "busy.yaml").write_text(policy(bootstrap, "run-busy"), encoding="utf-8")
    (folder / "calm.yaml").write_text(policy(bootstrap, "run-calm", least=2), encoding="utf-8")
    (folder / "away.yaml").write_text(policy("127.0.0.1:1", "run-away"), encoding="utf-8")
    (folder / "typo.yaml").write_text("kind: ConsumerScalingPolicy\n", encoding="utf-8")
    return folder


def test_a_run_beside_a_sampler_looks_once_and_decides_on_fresh_data(groups: str, tmp_path: Path) -> None:
    """Red when the run watches, holds for want of data, or when one broker that is away stops or fills the sampler."""
    folder, data = fleet(tmp_path / "policies", groups), tmp_path / "data"
    words = ["sample", "--policies", str(folder), "--data", str(data), "--every", "5s", "--health-port", "0"]
    program = [sys.executable, "-m", "planner.cli.main", *words, "--listen-address", "127.0.0.1"]
    sampler = ManagedProcess("sampler", program, tmp_path, {"PYTHONPATH": str(ROOT)})
    sampler.start()
    port = sampler.wait_for_line(r"health on port (\d+)", WAIT_S)[1]
    policies = [parse_policy(policy(groups, name), "p.yaml") for name in ("run-busy", "run-calm")]
    sampler.wait_until(
        "coverage of half a window",
        lambda: needs_single_read(read_coverage(data), policies, datetime.now(UTC)),
        WAIT_S,
    )
    assert [status_of(port, path) for path in ("/healthz", "/readyz")] == [200, 200]
    refused(planner(*words[:5], "--once"), 3, "read by another sampler", f"process {sampler.pid} since")

    run = ["run", "--policies", folder, "--data", data, "--observe-seconds", LONG_WATCH_S, "--no-page"]
    found = planner(*run, "--format", "json")
    assert found.returncode == 1, found.stderr
    answer = json.loads(found.stdout)
    since, until = (datetime.fromisoformat(answer[name]) for name in ("since", "until"))
    assert (until - since).total_seconds() < LONG_WATCH_S, "it watched"
    lines = {line["policy"]: line for line in answer["policies"]}
    assert (lines["run-busy"]["from"], lines["run-busy"]["to"]) == (2, 6), answer
    assert (lines["run-calm"]["from"], lines["run-calm"]["to"]) == (2, 2), answer
    assert {failure["name"] for failure in answer["failures"]} == {"run-away", "typo.yaml"}
    for name in ("run-busy", "run-calm"):
        parts = {part.name: part for part in SNAPSHOT.read(RunFolder(Path(answer["folder"])).snapshot(name)).parts}
        assert parts["rates"].completeness >= 0.5
        assert max(part.age_s for part in parts.values()) <= lines[name]["dataAgeSeconds"] < LONG_WATCH_S

    assert sampler.stop(300.0) == 0, sampler.log_tail()
    away = [line for line in sampler.output().splitlines() if "127.0.0.1:1" in line]
    assert len(away) == 1, away
    assert "none of 1 group was read, tried again" in away[0]
    assert list(reading_files(data))
    assert not list(data.rglob("*.part"))


def status_of(port: str, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_short_runs_decide_by_what_former_ones_saw_and_a_broker_that_is_away_stops_nobody(
    groups: str, tmp_path: Path
) -> None:
    """Red when a run looks at its own watch alone, or when one failure takes the others along."""
    folder, data, plans = fleet(tmp_path / "policies", groups), tmp_path / "data", tmp_path / "plans"

    command = ["run", "--policies", folder, "--data", data, "--plans", plans, "--observe-seconds", WATCH_S]
    first = planner(*command, "--no-page")
    assert first.returncode == 1
    assert "2 to hold, 1 without a decision. 2 failed, as said above: run-away, typo.yaml" in first.stderr
    held = next(line for line in first.stdout.splitlines() if line.startswith("run-busy"))
    assert "2 -> 2" in held
    assert "of the window of 2 min" in held

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
