"""``make run``'s script: the DAG really runs, through Airflow and local Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from planner import pipeline
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.plan import DECISION, PLAN, document_name, read_plan_or_decision
from planner.documents.policy_folder import read_policies
from planner.errors import OutOfReachError
from planner.model.queues import MessageQueue
from planner.rollout.plan import RolloutPlan
from planner.sources.capture import Capture, open_capture, write_capture
from planner.storage.layout import PolicyFiles, RunFolder
from scripts.run_dag import reason_of
from scripts.run_local import ROOT, STAGES, Settings, environment
from tests.sample_builders import POLICY, watch

pytestmark = pytest.mark.airflow

EVERY_S = 5.0
PATIENCE_S = 600.0


def falling_behind(queue: MessageQueue, number: int) -> tuple[int, int]:
    """Return the offsets of broker and group at a sample: the group does not keep up."""
    return 1000 + (60 + queue.queue_id) * number, 1000 + 50 * number


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a blank in its path, one policy and a small capture of a group that falls behind."""
    folder = tmp_path / "a place"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "shop.yaml").write_text(POLICY, encoding="utf-8")
    write_capture(folder / "capture", watch(40, falling_behind), EVERY_S, ("a test",), ())
    return folder


def command(place: Path) -> list[str]:
    """Return the command of ``make run`` on what is in ``place``."""
    folders = {"--policies": "policies", "--capture": "capture", "--work": "work"}
    given = [part for option, name in folders.items() for part in (option, str(place / name))]
    return [sys.executable, "-m", "scripts.run_local", *given]


def run(place: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(
        command(place), cwd=ROOT, env=os.environ | (env or {}), capture_output=True, text=True, check=False
    )


def files_of(place: Path, capture: Capture) -> PolicyFiles:
    """Return the files of the run over the whole capture."""
    return RunFolder.of(place / "work" / "data", capture.header.ended_at).policy("shop")


def processes_of(place: Path) -> Sequence[str]:
    """Return the command lines of processes that have to do with ``place``."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(place) in line and process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
            found.append(line)
    return found


def await_no_process_of(place: Path) -> None:
    """Hold that all of them end. What was killed takes a moment on a busy machine; what was forgotten stays."""
    deadline = time.monotonic() + PATIENCE_S
    while left := processes_of(place):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.spark
@pytest.mark.usefixtures("java")
def test_a_run_gives_what_the_pipeline_gives_and_a_second_one_the_same(place: Path) -> None:
    capture = open_capture(place / "capture")
    (policy,) = read_policies(place / "policies")
    at = capture.header.ended_at
    snapshot = pipeline.take_snapshot(tuple(capture.samples("shop")), EVERY_S, policy, at)
    outcomes = pipeline.simulate(snapshot, policy)
    record = pipeline.decide(snapshot, outcomes, policy)
    plan = pipeline.plan(snapshot, record, policy, outcomes)
    assert plan is not None

    first = run(place)
    assert first.returncode == 0, first.stderr + (place / "work" / "run.log").read_text()[-5000:]
    files = files_of(place, capture)
    assert files.snapshot.read_bytes() == SNAPSHOT.dump(snapshot)
    assert files.outcomes.read_bytes() == OUTCOMES.dump(outcomes)
    assert files.decision.read_text(encoding="utf-8") == DECISION.dump(record, document_name(record))
    assert files.plan.read_text(encoding="utf-8") == PLAN.text(pipeline.plan_document(plan, record, policy))
    assert isinstance(read_plan_or_decision(files.plan), RolloutPlan)
    assert record.decision.reason.split(":")[0] in files.report.read_text(encoding="utf-8")

    lines = first.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("[")] == list(STAGES)
    assert lines[-3:] == [f"shop: {record.decision.reason}", f"plan:   {files.plan}", f"report: {files.report}"]
    assert first.stderr == ""

    made = {path: path.read_bytes() for path in files.folder.iterdir()}
    files.no_decision.write_text("left by somebody", encoding="utf-8")
    second = run(place)
    assert second.returncode == 0, second.stderr
    assert second.stdout.splitlines()[-3:] == lines[-3:]
    assert {path: path.read_bytes() for path in files.folder.iterdir()} == made
    await_no_process_of(place)


@pytest.mark.spark
@pytest.mark.usefixtures("java")
def test_a_broken_capture_fails_observe_with_its_sentence(place: Path) -> None:
    samples = place / "capture" / "samples.jsonl.gz"
    samples.write_bytes(samples.read_bytes()[:900])
    ended = run(place)
    assert ended.returncode == 2
    (sentence,) = ended.stderr.splitlines()
    assert sentence.startswith(f"observe failed: {samples}: cut off or broken")
    assert str(place / "work" / "run.log") in sentence
    assert not (place / "work" / "data").exists()


def test_where_spark_fails_the_run_ends_red_and_names_every_policy_with_its_reason(place: Path) -> None:
    """Spark cannot start here: its connection is not defined. One group is not recorded, one file is no policy."""
    bank = POLICY.replace("shop", "bank")
    (place / "policies" / "bank.yaml").write_text(bank, encoding="utf-8")
    (place / "policies" / "typo.yaml").write_text("kind: [", encoding="utf-8")
    settings = Settings(place / "policies", place / "capture", place / "work")
    settings.airflow_home.mkdir(parents=True)
    header = open_capture(settings.capture).header
    given = {"policies": str(settings.policies), "data": str(settings.data), "recording": str(settings.capture)}
    times = {"since": header.started_at.isoformat(), "until": header.ended_at.isoformat()}
    # One Airflow for both; a replay takes the recording's own times.
    orders = (
        {"dag": "consumer_planner", "conf": {**given, **times, "source": "recording"}},
        {"dag": "consumer_planner_replay", "conf": given},
    )
    env = {**os.environ, **environment(settings)}
    env.pop("AIRFLOW_CONN_SPARK_DEFAULT")
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.run_dag", "1"],
        cwd=ROOT,
        env=env,
        input="\n".join(map(json.dumps, orders)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout[-4000:] + ended.stderr[-4000:]
    events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"event"')]
    begun = [number for number, event in enumerate(events) if (event["stage"], event["event"]) == ("observe", "begun")]
    scheduled, replay = events[: begun[1]], events[begun[1] :]
    expected = {**dict.fromkeys(STAGES, "done"), "spark": "failed", "conclude": "failed"}
    assert states_of(scheduled) == {**expected, "consumer_planner": "ended"}
    without = {stage: state for stage, state in expected.items() if stage not in ("prepare", "offer")}
    assert states_of(replay) == {**without, "consumer_planner_replay": "ended"}
    for run_events in (scheduled, replay):
        sentence = run_events[-2]["sentence"]
        assert sentence.startswith("2 policies: 0 to scale, 0 to hold, 2 without a decision. 3 failed: ")
        assert "shop: No decision for policy shop: connection spark_default is not defined" in sentence
        assert "bank: group bank is not in the recording" in sentence
        assert "typo.yaml" in sentence


def states_of(events: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the last event of each task."""
    return {event["stage"]: event["event"] for event in events}


@pytest.mark.usefixtures("java")
def test_ctrl_c_leaves_nothing_running(place: Path) -> None:
    # A shell without job control lets what it starts in the background ignore Ctrl-C, and all its children, too.
    heeding = ["env", "--default-signal=INT", *command(place)]
    with subprocess.Popen(heeding, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("[1/"):
                break
        deadline = time.monotonic() + PATIENCE_S  # the app runs now: Airflow, spark-submit's JVM, its Python
        while not any("run/app.py" in line for line in processes_of(place)):
            assert time.monotonic() < deadline, processes_of(place)
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert "interrupted" in stderr
    await_no_process_of(place)


def test_missing_java_is_one_sentence(place: Path) -> None:
    ended = run(place, {"JAVA_HOME": str(place / "no java")})
    assert ended.returncode == 3
    (sentence,) = ended.stderr.splitlines()
    assert "Spark needs Java 17 or newer, found none at" in sentence
    assert "apt-get install" in sentence
    assert not (place / "work").exists()


def test_an_empty_policy_folder_is_one_sentence(place: Path) -> None:
    (place / "policies" / "shop.yaml").unlink()
    ended = run(place, {"JAVA_HOME": ""})
    assert ended.returncode == 2
    assert "holds no .yaml file" in ended.stderr
    assert not (place / "work").exists()


def test_the_reason_of_a_failed_spark_task_is_the_apps_sentence() -> None:
    text = "Cannot execute: x. Error code is: 3.\nLast spark-submit output:\nWARN\nplanner: disk full: make room"
    assert reason_of(RuntimeError(text)) == ("disk full: make room", 3)
    assert reason_of(RuntimeError("Cannot execute: x. Error code is: 1.")) == ("spark-submit ended with exit code 1", 1)
    assert reason_of(OutOfReachError("no broker answers")) == ("no broker answers", 3)
    assert reason_of(ValueError("first line\nsecond")) == ("first line", 1)


def test_spark_is_found_whatever_blanks_its_path_has(place: Path) -> None:
    found = environment(Settings(place, place, place / "work"))
    assert (Path(found["SPARK_HOME"]) / "bin" / "spark-class").exists()
