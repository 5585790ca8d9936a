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
from planner.errors import StorageError
from planner.model.samples import GroupSample
from planner.stages import read_results
from planner.storage.layout import RunFolder, history_folder
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
    }
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("stage ")]
    assert [line.split()[1] for line in lines] == ["history:", "snapshot:", "simulate:", "decide:", "plan:"]
    assert lines[2].startswith(f"stage simulate: 2 snapshots -> {simulated} outcomes in ")


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


@pytest.mark.parametrize("stage", ["decide", "history", "plan", "run", "simulate", "snapshot"])
def test_every_stage_says_how_it_is_run_by_itself(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["app.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(f"spark_apps.{stage}.app").main()
    assert ended.value.code == 0
    assert f"spark-submit spark_apps/{stage}/app.py --data DIR" in " ".join(capsys.readouterr().out.split())
