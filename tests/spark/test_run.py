"""One app does all stages of a run: what they leave is the pipeline's, and each has its line, figures and name."""

import json
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planner import pipeline
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.plan import DECISION, PLAN, document_name
from planner.errors import IncompleteError, StorageError
from planner.model.samples import GroupSample
from planner.runs.conclude import conclude_run, tidy_data
from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder, history_folder, metrics_folder, sample_path, time_name
from planner.storage.run import Run, read_results
from spark_apps.common import history_lock
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_lock import only_run
from spark_apps.run.app import run_all, stages_of
from tests.sample_builders import watch
from tests.spark.worlds import SAMPLE_EVERY_S, as_group, land, policies

pytestmark = pytest.mark.spark


def falling_behind() -> tuple[GroupSample, ...]:
    """Return samples of a group whose three consumers cannot keep up."""
    return watch(30, lambda queue, number: (1000 + (60 + queue.queue_id) * number, 900 + 55 * number))


def given(data: Path, samples: tuple[GroupSample, ...]) -> Namespace:
    """Return the app's arguments for a run on what has landed."""
    return Namespace(
        data=data,
        policies=data / "policies",
        at=samples[-1].at,
        sample_every=SAMPLE_EVERY_S,
        history="",
        keep_days=30,
    )


def counts(run: RunFolder) -> dict[str, tuple[Any, Any]]:
    """Return what each stage read and wrote."""
    reports = json.loads(run.stages.read_text(encoding="utf-8"))
    assert all(report["seconds"] >= 0 for report in reports)
    return {report["stage"]: (report["read"], report["written"]) for report in reports}


def test_all_stages_in_one_session_leave_what_the_pipeline_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = falling_behind()
    land(tmp_path, (*samples, *as_group(samples, "bank")))
    shop = policies(tmp_path / "policies", ("bank", "nobody", "shop"))[2]
    run = RunFolder.of(tmp_path, samples[-1].at)
    run_all(spark, stages_of(spark, given(tmp_path, samples)), run)

    snapshot = pipeline.take_snapshot(samples, SAMPLE_EVERY_S, shop, samples[-1].at)
    outcomes = pipeline.simulate(snapshot, shop)
    record = pipeline.decide(snapshot, outcomes, shop)
    plan = pipeline.plan(snapshot, record, shop, outcomes)
    assert plan is not None
    files = run.policy("shop")
    assert files.snapshot.read_bytes() == SNAPSHOT.dump(snapshot)
    assert files.outcomes.read_bytes() == OUTCOMES.dump(outcomes)
    assert files.decision.read_text(encoding="utf-8") == DECISION.dump(record, document_name(record))
    assert files.plan.read_text(encoding="utf-8") == PLAN.text(pipeline.plan_document(plan, record, shop))

    bank, nobody, last = read_results(run)
    assert (last["policy"], last["to"], last["plan"]) == ("shop", record.decision.target, str(files.plan))
    assert (bank["to"], bank["plan"]) == (last["to"], str(run.policy("bank").plan))
    assert (nobody["to"], nobody["plan"]) == (None, None)
    assert nobody["reason"].startswith("No decision for policy nobody: group nobody of cluster DefaultCluster has no")

    intervals = 2 * (len(samples) - 1) * len(snapshot.data_queues)
    simulated = 2 * len(outcomes)
    assert counts(run) == {
        "history": ({"samples": 2 * len(samples), "groups": 2}, {"intervals": intervals}),
        "snapshot": ({"policies": 3}, {"snapshots": 2}),
        "simulate": ({"snapshots": 2}, {"outcomes": simulated}),
        "decide": ({"policies": 3, "outcomes": simulated}, {"decisions": 2}),
        "plan": ({"decisions": 2}, {"plans": 2}),
        # No decision waits for it.
        "tidy": ({"sample files": 2 * len(samples)}, {"sample files left": 2}),
    }
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("stage ")]
    assert [line.split()[1] for line in lines] == ["history:", "snapshot:", "simulate:", "decide:", "plan:", "tidy:"]
    assert lines[2].startswith(f"stage simulate: 2 snapshots -> {simulated} outcomes in ")


def test_a_run_that_read_no_group_goes_through_and_leaves_each_policy_its_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing has ever landed of ``bank``; ``shop`` has young samples, which this run could not add to."""
    policies(tmp_path / "policies", ("bank", "shop"))
    samples = falling_behind()
    run = RunFolder.of(tmp_path, samples[-1].at)
    write_atomically(run.problems, json.dumps({"bank": "no broker answers", "shop": "its account is refused"}))
    for landed in ((), samples):
        land(tmp_path, landed)
        run_all(spark, stages_of(spark, given(tmp_path, samples)), run)
        assert [line["reason"] for line in read_results(run)] == [
            "No decision for policy bank: no broker answers.",
            "No decision for policy shop: its account is refused.",
        ]


def test_one_broken_file_stops_no_policy_and_is_named_once_at_the_end_of_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    samples = falling_behind()
    land(tmp_path, (*samples, *as_group(samples, "bank")))
    policies(tmp_path / "policies", ("bank", "shop"))
    folder = RunFolder.of(tmp_path, samples[-1].at)
    run = Run(tmp_path, tmp_path / "policies", samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    broken = sample_path(tmp_path, as_group(samples, "bank")[4])
    broken.write_text("{", encoding="utf-8")
    metrics = metrics_folder(tmp_path) / "rocketmq" / "DefaultCluster" / "bank" / f"{time_name(samples[0].at)}.json"
    write_atomically(metrics, '{"kind": "MetricHistory"}')
    write_atomically(folder.problems, "{}")

    run_all(spark, stages_of(spark, given(tmp_path, samples)), folder)
    decided = read_results(folder)
    assert [line["policy"] for line in decided if line["plan"]] == ["bank", "shop"]
    with pytest.raises(IncompleteError) as ended:
        conclude_run(run, decided, tidy_data(run, 30))
    assert str(ended.value).startswith("2 policies: 2 to scale, 0 to hold, 0 without a decision. 2 failed: ")
    for path in (broken, metrics):
        assert str(path) in str(ended.value)
        assert (path.parent / "set-aside" / path.name).exists()


def test_a_stage_that_fails_names_itself_and_no_later_one_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = falling_behind()
    land(tmp_path, samples)
    policies(tmp_path / "policies")
    run = RunFolder.of(tmp_path, samples[-1].at)
    monkeypatch.setattr(history_lock, "WAIT_S", 0.0)
    stages = stages_of(spark, given(tmp_path, samples))
    with only_run(Folder.of(spark, history_folder(tmp_path))), pytest.raises(SystemExit) as ended:
        finish(lambda: run_all(spark, stages, run))
    assert ended.value.code == StorageError.exit_code
    assert capsys.readouterr().err.startswith("planner: stage history: the history ")
    assert not run.stages.exists()

    def simulate() -> Any:
        return spark.sql("SELECT nothing").collect()

    with pytest.raises(SystemExit) as ended:
        finish(lambda: run_all(spark, {**stages, "simulate": simulate}, run))
    assert ended.value.code == 2
    (sentence,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("planner: ")]
    assert sentence.startswith("planner: stage simulate: AnalysisException: [UNRESOLVED_COLUMN")
    assert list(counts(run)) == ["history", "snapshot"]
    assert not run.results.exists()


def test_what_cannot_be_tidied_keeps_nobody_waiting_and_is_named_at_the_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = falling_behind()
    land(tmp_path, samples)
    policies(tmp_path / "policies")
    folder = RunFolder.of(tmp_path, samples[-1].at)
    run = Run(tmp_path, tmp_path / "policies", samples[-1].at, samples[-1].at, SAMPLE_EVERY_S)
    todo = stages_of(spark, given(tmp_path, samples))
    monkeypatch.setattr(history_lock, "WAIT_S", 0.0)

    def tidy_beside_another() -> Any:
        with only_run(Folder.of(spark, history_folder(tmp_path))):
            return todo["tidy"]()

    run_all(spark, {**todo, "tidy": tidy_beside_another}, folder)
    (decided,) = read_results(folder)
    assert decided["plan"] is not None
    untidied = tidy_data(run, 30)
    assert list(untidied) == ["the history is not tidied"]
    with pytest.raises(IncompleteError, match=r"1 to scale.* 1 failed: the history is not tidied: the history /\S+ is"):
        conclude_run(run, [decided], untidied)
    run_all(spark, todo, folder)
    assert tidy_data(run, 30) == {}


@pytest.mark.parametrize("stage", ["backtest", "decide", "history", "plan", "run", "simulate", "snapshot"])
def test_every_stage_says_how_it_is_run_by_itself(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["app.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(f"spark_apps.{stage}.app").main()
    assert ended.value.code == 0
    assert f"spark-submit spark_apps/{stage}/app.py --data DIR" in " ".join(capsys.readouterr().out.split())
