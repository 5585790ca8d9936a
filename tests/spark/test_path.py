"""Snapshot, simulate and decide on Spark give what the pipeline gives, byte for byte."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
import typer
from pyspark.sql import SparkSession

from planner import pipeline
from planner.cli.main import app
from planner.demand.past import continue_past
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.format import canonical
from planner.documents.plan import DECISION, document_name
from planner.documents.policy import parse_policy
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot, SeriesPoint
from planner.storage.layout import RunFolder, sample_path
from spark_apps.decide.app import decide
from spark_apps.history.app import update
from spark_apps.simulate import schemas
from spark_apps.simulate.app import write_outcomes
from spark_apps.simulate.transforms import simulate
from spark_apps.snapshot.app import take_snapshots
from tests.builders import kafka_snapshot
from tests.sample_builders import POLICY, watch
from tests.spark.worlds import SAMPLE_EVERY_S, as_group, eventful, land, policies

pytestmark = pytest.mark.spark


def history_of(spark: SparkSession, data: Path, samples: Sequence[GroupSample]) -> None:
    """Land the samples and bring the history up to date."""
    land(data, samples)
    update(spark, data, max(sample.at for sample in samples), SAMPLE_EVERY_S)


def put_snapshot(data: Path, policy: str, snapshot: GroupSnapshot) -> RunFolder:
    """Write a snapshot where the snapshot app writes it."""
    run = RunFolder.of(data, snapshot.at)
    run.snapshots.mkdir(parents=True, exist_ok=True)
    run.snapshot(policy).write_bytes(SNAPSHOT.dump(snapshot))
    return run


def busy() -> GroupSnapshot:
    """Return the snapshot of a group whose three consumers cannot keep up."""
    samples = watch(30, lambda queue, number: (1000 + (60 + queue.queue_id) * number, 900 + 55 * number))
    return pipeline.take_snapshot(samples, SAMPLE_EVERY_S, parse_policy(POLICY, "shop.yaml"), samples[-1].at)


@pytest.mark.parametrize("before_the_end_s", [0.0, 2.5, 60.0])
def test_snapshots_are_the_pipelines_to_the_byte(spark: SparkSession, tmp_path: Path, before_the_end_s: float) -> None:
    samples = eventful()
    history_of(spark, tmp_path, samples)
    (policy,) = policies(tmp_path / "policies")
    at = samples[-1].at - timedelta(seconds=before_the_end_s)
    assert take_snapshots(spark, tmp_path, [policy], at) == []
    wanted = pipeline.take_snapshot(samples, SAMPLE_EVERY_S, policy, at)
    assert wanted.recent
    assert RunFolder.of(tmp_path, at).snapshot("shop").read_bytes() == SNAPSHOT.dump(wanted)


def test_a_group_seen_once_has_a_snapshot_without_rates(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(1)
    history_of(spark, tmp_path, samples)
    (policy,) = policies(tmp_path / "policies")
    take_snapshots(spark, tmp_path, [policy], samples[0].at)
    wanted = pipeline.take_snapshot(samples, SAMPLE_EVERY_S, policy, samples[0].at)
    assert RunFolder.of(tmp_path, samples[0].at).snapshot("shop").read_bytes() == SNAPSHOT.dump(wanted)


def test_a_window_is_filled_by_the_watch_of_an_earlier_run(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs watch for half of the policy's window of 120 s each, 90 s apart: together they saw all of it."""
    samples = watch(43, lambda _, number: (1000 + 50 * number, 1000 + 50 * number))
    before, now = samples[:13], samples[30:]
    history_of(spark, tmp_path, before)
    history_of(spark, tmp_path, now)
    (policy,) = policies(tmp_path / "policies")
    at = now[-1].at
    assert take_snapshots(spark, tmp_path, [policy], at) == []
    taken = SNAPSHOT.read(RunFolder.of(tmp_path, at).snapshot("shop"))
    assert taken == pipeline.take_snapshot((*before, *now), SAMPLE_EVERY_S, policy, at)
    completeness = {part.name: part.completeness for part in taken.parts}
    assert completeness["rates"] == 1.0
    assert {state.arrival_rate for state in taken.data_queues} == {10.0}


def test_a_snapshot_continues_the_load_of_the_one_before(spark: SparkSession, tmp_path: Path) -> None:
    """Red where what the six hours no longer show is lost: here the first of them are of two hours before."""
    history_of(spark, tmp_path, eventful())
    (policy,) = policies(tmp_path / "policies")
    at = eventful()[-1].at
    known = pipeline.take_snapshot(eventful(), SAMPLE_EVERY_S, policy, at)
    former = replace(known, at=at - timedelta(hours=1), recent=tuple(hours_before(known.recent, 2)))
    put_snapshot(tmp_path, "shop", former)
    assert take_snapshots(spark, tmp_path, [policy], at) == []
    taken = SNAPSHOT.read(RunFolder.of(tmp_path, at).snapshot("shop"))
    assert taken == replace(known, past_load=continue_past(former, known))
    assert taken.past_load is not None


def hours_before(points: Sequence[SeriesPoint], hours: int) -> Iterator[SeriesPoint]:
    return (replace(point, at=point.at - timedelta(hours=hours)) for point in points)


def test_a_group_without_samples_is_named_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(8)
    at = samples[-1].at
    history_of(spark, tmp_path, (*samples, *as_group(samples, "bank")))
    wanted = policies(tmp_path / "policies", ("bank", "nobody", "shop"))
    run = RunFolder.of(tmp_path, at)
    run.policy("nobody").folder.mkdir(parents=True)
    run.policy("nobody").plan.write_text("of an earlier try", encoding="utf-8")
    (sentence,) = take_snapshots(spark, tmp_path, wanted, at)
    assert sentence.startswith("No decision for policy nobody: group nobody of cluster DefaultCluster has no sample up")
    assert run.policy("nobody").no_decision.read_text(encoding="utf-8") == sentence + "\n"
    assert not run.policy("nobody").plan.exists()
    assert sorted(path.name for path in run.snapshots.iterdir()) == ["bank.json", "shop.json"]
    write_outcomes(spark, tmp_path, wanted, at)
    decided = decide(spark, tmp_path, wanted, at).reasons
    assert list(decided) == ["bank", "nobody", "shop"]
    assert decided["nobody"] == sentence
    assert run.policy("bank").decision.exists()
    assert not run.policy("nobody").decision.exists()


def test_a_reason_from_an_earlier_try_goes_when_there_is_a_sample(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(8)
    at = samples[-1].at
    wanted = policies(tmp_path / "policies")
    assert len(take_snapshots(spark, tmp_path, wanted, at)) == 1
    history_of(spark, tmp_path, samples)
    assert take_snapshots(spark, tmp_path, wanted, at) == []
    assert not RunFolder.of(tmp_path, at).policy("shop").no_decision.exists()


def test_outcomes_are_the_pipelines(spark: SparkSession, tmp_path: Path) -> None:
    (policy,) = policies(tmp_path / "policies")
    snapshot = busy()
    run = put_snapshot(tmp_path, "shop", snapshot)
    write_outcomes(spark, tmp_path, [policy], snapshot.at)
    outcomes = pipeline.simulate(snapshot, policy)
    headline = ("strategy", "count", "utilisation", "wait_s", "drain_s", "moved_fewest", "moved_most", "keeps_up")
    assert {outcome.transition is None for outcome in outcomes} == {True, False}
    rows = [
        (
            "shop",
            position,
            *(getattr(outcome, name) for name in headline),
            *(
                getattr(getattr(outcome.transition, name, None), level, None)
                for name, _ in schemas.COSTS
                for level in schemas.LEVELS
            ),
            canonical(OUTCOMES.body((outcome,))[0]).decode(),
        )
        for position, outcome in enumerate(outcomes)
    ]
    wanted = pd.DataFrame(rows, columns=schemas.OUTCOMES.fieldNames())
    assert len(wanted) > 10
    assert wanted["drain_s"].isna().any()
    found = spark.read.schema(schemas.OUTCOMES).parquet(str(run.outcomes)).toPandas().sort_values("position")
    pd.testing.assert_frame_equal(found.reset_index(drop=True), wanted, check_exact=True, check_dtype=False)


def test_partitions_change_nothing_and_the_command_line_says_the_same(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = busy()
    run = put_snapshot(tmp_path, "shop", snapshot)
    wanted = [("shop", place, "AVG", count) for place, count in enumerate((2, 3, 4, 6, 8))]
    candidates = spark.createDataFrame(wanted, schemas.CANDIDATES)
    found = [
        {row["count"]: row["outcome"] for row in simulate(candidates, run, partitions).collect()}
        for partitions in (1, 7)
    ]
    command = typer.main.get_command(app)
    command.main(["simulate", str(run.snapshot("shop")), "--counts", "2,3,4,6,8", "-o", "json"], standalone_mode=False)
    said = json.loads(capsys.readouterr().out)
    assert found[0] == found[1] == {outcome["count"]: canonical(outcome).decode() for outcome in said}
    assert sum(outcome["transition"]["pause_s"]["p95"] > 0 for outcome in said) == 4


def test_what_a_change_of_a_kafka_group_costs_is_the_same_on_the_command_line(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = put_snapshot(tmp_path, "pay", kafka_snapshot("cooperative-sticky"))
    wanted = [("pay", place, "cooperative-sticky", count) for place, count in enumerate((1, 2, 3))]
    found = simulate(spark.createDataFrame(wanted, schemas.CANDIDATES), run, 2).collect()
    command = typer.main.get_command(app)
    command.main(["simulate", str(run.snapshot("pay")), "--counts", "1,2,3", "-o", "json"], standalone_mode=False)
    said = json.loads(capsys.readouterr().out)
    assert {row["count"]: row["outcome"] for row in found} == {one["count"]: canonical(one).decode() for one in said}
    assert sum(outcome["transition"]["pause_s"]["p95"] > 0 for outcome in said) == 2


def test_decisions_are_the_pipelines_with_what_they_rest_on(spark: SparkSession, tmp_path: Path) -> None:
    (policy,) = policies(tmp_path / "policies")
    snapshot = busy()
    run = put_snapshot(tmp_path, "shop", snapshot)
    write_outcomes(spark, tmp_path, [policy], snapshot.at)
    decided = decide(spark, tmp_path, [policy], snapshot.at).reasons
    outcomes = pipeline.simulate(snapshot, policy)
    record = pipeline.decide(snapshot, outcomes, policy)
    assert not record.decision.is_hold
    assert decided == {"shop": record.decision.reason}
    assert run.policy("shop").decision.read_text(encoding="utf-8") == DECISION.dump(record, document_name(record))
    assert run.policy("shop").outcomes.read_bytes() == OUTCOMES.dump(outcomes)
    # The rule that weighs gives the same bill on Spark.
    text = POLICY.replace("{maxUtilisation: 0.8, backlogGoneSeconds: 600}", "{rule: Horizon}")
    weighing = parse_policy(text, "shop.yaml")
    record = pipeline.decide(snapshot, outcomes, weighing)
    assert record.decision.bill is not None
    assert decide(spark, tmp_path, [weighing], snapshot.at).reasons == {"shop": record.decision.reason}
    assert run.policy("shop").decision.read_text(encoding="utf-8") == DECISION.dump(record, document_name(record))


def test_a_group_without_consumers_ends_with_a_hold(spark: SparkSession, tmp_path: Path) -> None:
    (policy,) = policies(tmp_path / "policies")
    deserted = replace(busy(), clients=())
    run = put_snapshot(tmp_path, "shop", deserted)
    write_outcomes(spark, tmp_path, [policy], deserted.at)
    decide(spark, tmp_path, [policy], deserted.at)
    assert "NoConsumers" in run.policy("shop").decision.read_text(encoding="utf-8")
    assert run.policy("shop").outcomes.read_bytes() == OUTCOMES.dump(())


def test_what_cannot_be_read_of_one_group_keeps_no_other_from_its_decision(spark: SparkSession, tmp_path: Path) -> None:
    wanted = policies(tmp_path / "policies", ("broken", "shop"))
    snapshot = busy()
    run = put_snapshot(tmp_path, "shop", snapshot)
    run.snapshot("broken").write_text("{", encoding="utf-8")
    write_outcomes(spark, tmp_path, wanted, snapshot.at)
    decided = decide(spark, tmp_path, wanted, snapshot.at).reasons
    record = pipeline.decide(snapshot, pipeline.simulate(snapshot, wanted[1]), wanted[1])
    assert decided["shop"] == record.decision.reason
    assert decided["broken"].startswith(f"No decision for policy broken: {run.snapshot('broken')}")
    assert run.policy("broken").no_decision.read_text(encoding="utf-8").strip() == decided["broken"]
    assert not run.policy("broken").decision.exists()


def test_a_broken_sample_of_one_group_keeps_no_other_from_its_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(8)
    wanted = policies(tmp_path / "policies", ("broken", "shop"))
    history_of(spark, tmp_path, samples)
    land(tmp_path, samples)
    land(tmp_path, as_group(samples, "broken"))
    newest = max(sample_path(tmp_path, sample) for sample in as_group(samples, "broken"))
    newest.write_text("{", encoding="utf-8")
    (sentence,) = take_snapshots(spark, tmp_path, wanted, samples[-1].at)
    assert sentence.startswith(f"No decision for policy broken: {newest}")
    assert RunFolder.of(tmp_path, samples[-1].at).snapshot("shop").exists()
