"""What keeps the history small, whole and somewhere else: compaction, retention, recovery, URIs, metrics."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.errors import StorageError
from planner.history.intervals import queue_intervals
from planner.model.intervals import QueueInterval
from planner.model.points import GroupPoint, MetricHistory
from planner.model.samples import GroupSample
from planner.storage.layout import RunFolder, history_folder
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import Change, read_intervals, recover
from spark_apps.history.app import update
from spark_apps.history.metrics import import_metrics
from spark_apps.history.rebuild import rebuild
from spark_apps.history.schemas import HISTORY
from spark_apps.history.upkeep import tidy
from spark_apps.snapshot.app import take_snapshots
from tests.sample_builders import START
from tests.spark.test_history import expected, files_of, found
from tests.spark.worlds import SAMPLE_EVERY_S, as_group, eventful, land, policies

pytestmark = pytest.mark.spark

DAY = timedelta(days=1)


def history_of(spark: SparkSession, data: Path) -> Folder:
    return Folder.of(spark, history_folder(data))


def parquet_files(data: Path, table: str) -> list[str]:
    folder = history_folder(data) / table
    return sorted(str(path.relative_to(folder).parent) for path in folder.rglob("*.parquet"))


def add(spark: SparkSession, data: Path, *runs: tuple[GroupSample, ...]) -> None:
    """Land and add the samples of one run after the other."""
    for samples in runs:
        land(data, samples)
        update(spark, data, samples[-1].at, SAMPLE_EVERY_S)


def test_closed_days_become_one_file_each_and_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    add(spark, tmp_path, samples[:20], samples[20:])
    before = found(spark, tmp_path)
    history = history_of(spark, tmp_path)
    many = {table: len(parquet_files(tmp_path, table)) for table in ("intervals", "traces", "samples")}
    assert min(many.values()) >= 2
    tidy(history, samples[-1].at, keep_days=30)
    assert {table: len(parquet_files(tmp_path, table)) for table in many} == many, "the day is not over"
    tidy(history, samples[-1].at + DAY, keep_days=30)
    day = "day=2026-11-21/system=rocketmq"
    assert [parquet_files(tmp_path, table) for table in many] == [[day], [day], [day]]
    pd.testing.assert_frame_equal(found(spark, tmp_path), before, check_exact=True)
    rebuild(history, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), before, check_exact=True)


def test_files_that_ended_before_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    add(spark, tmp_path, samples[:20], samples[20:])
    whole = found(spark, tmp_path)
    history = history_of(spark, tmp_path)
    for since, wanted in ((samples[19].at + timedelta(milliseconds=2), 1), (samples[19].at, 2)):
        read = read_intervals(history, HISTORY, since, samples[-1].at)
        assert len(read.inputFiles()) == wanted
        assert read.count() == (whole["ended_at"] > since).sum() > 0


def test_old_days_go_and_the_last_state_of_a_queue_stays(spark: SparkSession, tmp_path: Path) -> None:
    old = eventful(6)
    again = tuple(replace(sample, at=sample.at + 40 * DAY) for sample in eventful(12)[6:])
    bank = as_group(tuple(replace(sample, at=sample.at + 39 * DAY) for sample in old), "bank")
    add(spark, tmp_path, old, bank)
    tidy(history_of(spark, tmp_path), bank[-1].at, keep_days=39)
    assert found(spark, tmp_path)["day"].nunique() == 2, "exactly so many days are kept"
    tidy(history_of(spark, tmp_path), bank[-1].at, keep_days=38)
    assert set(found(spark, tmp_path)["group"]) == {"bank"}
    tidy(history_of(spark, tmp_path), bank[-1].at + 3 * DAY, keep_days=1)
    assert set(found(spark, tmp_path)["group"]) == {"bank"}, "the longest window may need three days"
    add(spark, tmp_path, again)
    wanted = expected((*old, *again))
    goes_on = found(spark, tmp_path).query("group == 'shop'").reset_index(drop=True)
    pd.testing.assert_frame_equal(goes_on, wanted[wanted["ended_at"] >= again[0].at].reset_index(drop=True))


def test_a_run_that_ended_within_its_change_is_carried_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = eventful(8)
    land(tmp_path, samples)
    moved: list[str] = []

    def move_once(self: Folder, target: Folder) -> None:
        if moved and self.name != "journal.json.part":
            raise RuntimeError("killed")
        if self.name.endswith(".parquet"):
            moved.append(self.name)
        real(self, target)

    real = Folder.move_to
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="killed"):
        patched.setattr(Folder, "move_to", move_once)
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    assert len(moved) == 1
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected(samples), check_exact=True)
    assert not (history_folder(tmp_path) / "_staging").exists()


def test_what_was_only_prepared_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    history = history_of(spark, tmp_path)
    Change(history).write(spark.range(3), "intervals", "day=2026-11-21", "system=rocketmq", source="sample")
    assert (history_folder(tmp_path) / "_staging").exists()
    recover(history)
    assert files_of(history_folder(tmp_path)) == {}


def test_a_history_lies_wherever_a_uri_says(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(8)
    land(tmp_path, samples)
    (policy,) = policies(tmp_path / "policies")
    for place in (f"file://{tmp_path}/else where", _view(spark, tmp_path / "mounted")):
        land(tmp_path, samples)
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S, place)
        take_snapshots(spark, tmp_path, [policy], samples[-1].at, place)
        wanted = pipeline.take_snapshot(samples, SAMPLE_EVERY_S, policy, samples[-1].at)
        assert RunFolder.of(tmp_path, samples[-1].at).snapshot("shop").read_bytes() == SNAPSHOT.dump(wanted)
    assert not history_folder(tmp_path).exists()
    assert {path.name for path in (tmp_path / "mounted" / "history").iterdir()} > {"intervals", "states"}


def _view(spark: SparkSession, folder: Path) -> str:
    """Return a URI on Hadoop's ``viewfs`` that leads to a local folder: not the local file system by itself."""
    folder.mkdir()
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("fs.viewfs.mounttable.planner.link./lake", f"file://{folder}")
    return "viewfs://planner/lake/history"


def test_a_file_system_that_nobody_knows_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nosuch://place/history.* cannot be reached \(exists: .*nosuch"):
        update(spark, tmp_path, START, SAMPLE_EVERY_S, "nosuch://place/history")


def test_a_repeated_run_finds_the_sample_that_was_packed_since(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(12)
    add(spark, tmp_path, samples)
    (policy,) = policies(tmp_path / "policies")
    at = samples[6].at
    assert take_snapshots(spark, tmp_path, [policy], at) == []
    wanted = pipeline.take_snapshot(samples, SAMPLE_EVERY_S, policy, at)
    assert RunFolder.of(tmp_path, at).snapshot("shop").read_bytes() == SNAPSHOT.dump(wanted)


def metrics(intervals: tuple[QueueInterval, ...], points: tuple[GroupPoint, ...] = ()) -> MetricHistory:
    newest = max([interval.ended_at for interval in intervals] + [point.at for point in points])
    return MetricHistory(
        "rocketmq", "DefaultCluster", "shop", "prometheus/x", 5.0, 0.0, newest, intervals, points, points
    )


def test_metrics_tell_what_was_before_the_first_sample(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(24)
    add(spark, tmp_path, samples[8:16])
    history = history_of(spark, tmp_path)
    told = metrics(queue_intervals(samples, SAMPLE_EVERY_S))
    pipeline.land_metrics(tmp_path, told)
    added, _ = import_metrics(history, tmp_path)
    assert added == sum(interval.ended_at <= samples[8].at for interval in told.intervals) > 0
    read = found(spark, tmp_path)
    assert dict(read["source"].value_counts()) == {"prometheus/x": added, "sample": len(read) - added}
    assert not read.duplicated(["topic", "broker", "queue_id", "ended_at"]).any()
    assert not list((tmp_path / "metrics").rglob("*.json"))
    pipeline.land_metrics(tmp_path, told)
    assert import_metrics(history, tmp_path) == (0, {})
    rebuild(history, SAMPLE_EVERY_S)
    assert (found(spark, tmp_path)["source"] == "prometheus/x").sum() == added


def test_metrics_go_on_while_nobody_takes_samples(spark: SparkSession, tmp_path: Path) -> None:
    told = queue_intervals(eventful(24), SAMPLE_EVERY_S)
    half = metrics(tuple(interval for interval in told if interval.ended_at < START - timedelta(seconds=60)))
    for part in (half, metrics(told)):
        pipeline.land_metrics(tmp_path, part)
        update(spark, tmp_path, START, SAMPLE_EVERY_S)
        import_metrics(history_of(spark, tmp_path), tmp_path)
    read = found(spark, tmp_path)
    assert len(half.intervals) < len(read) <= len(told)
    assert not read.duplicated(["topic", "broker", "queue_id", "ended_at"]).any()


def test_metrics_that_do_not_tell_queues_apart_are_rows_of_a_topic(spark: SparkSession, tmp_path: Path) -> None:
    add(spark, tmp_path, eventful(4))
    point = GroupPoint(START - DAY, 60.0, 12.5, None, 30, None, 3, is_gap=False, topic="orders")
    pipeline.land_metrics(tmp_path, metrics((), (point,)))
    assert import_metrics(history_of(spark, tmp_path), tmp_path) == (1, {})
    folder = history_folder(tmp_path) / "intervals" / "day=2026-11-20"
    (row,) = spark.read.parquet(str(folder)).collect()
    told = (row.topic, row.queue_id, row.seconds, row.arrival_rate, row.consumption_rate, row.lag, row.broker_offset)
    assert told == ("orders", None, 60.0, 12.5, None, 30, None)
