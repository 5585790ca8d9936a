"""The history app: what Spark says in columns is what the pure function says."""

import shutil
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from planner.documents.format import API_VERSION
from planner.errors import DocumentError, NewerVersionError
from planner.history.intervals import queue_intervals
from planner.model.intervals import QueueInterval
from planner.model.samples import GroupSample
from planner.storage.layout import history_folder, sample_path
from spark_apps.common.errors import error_of_worker
from spark_apps.common.history_folder import HISTORY_VERSION, VERSION, HistoryVersion
from spark_apps.history.app import LOOK_BACK, update
from spark_apps.history.schemas import HISTORY, QUEUE_KEY
from tests.sample_builders import START
from tests.spark.worlds import SAMPLE_EVERY_S, STUCK, as_group, eventful, land

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)


def expected(samples: Sequence[GroupSample], sample_every_s: float = SAMPLE_EVERY_S) -> pd.DataFrame:
    """Return the whole history that the pure function gives."""
    rows = [_row(samples[0], interval) for interval in queue_intervals(samples, sample_every_s)]
    return _comparable(pd.DataFrame(rows, columns=HISTORY.fieldNames()))


def _row(sample: GroupSample, interval: QueueInterval) -> tuple[object, ...]:
    queue, ended = interval.queue, interval.ended_at
    figures = [getattr(interval, name) for name in HISTORY.fieldNames()[len(QUEUE_KEY) : -2]]
    key = (sample.system, sample.cluster, sample.group, queue.topic, queue.broker, queue.queue_id)
    return (*key, *figures, f"{ended:%Y-%m-%d}", f"{ended:%H}")


def found(spark: SparkSession, data: Path) -> pd.DataFrame:
    """Return the whole history as it lies on disk."""
    frame = spark.read.schema(HISTORY).parquet(str(history_folder(data)))
    return _comparable(frame.select(*HISTORY.fieldNames()).toPandas())


def _comparable(frame: pd.DataFrame) -> pd.DataFrame:
    for name in ("started_at", "ended_at"):
        frame[name] = pd.to_datetime(frame[name], utc=True).dt.as_unit("us")
    for name in ("commit_age_s", "arrival_rate", "consumption_rate", "consumer_offset", "lag", "consumed"):
        frame[name] = frame[name].astype("float64")
    frame["queue_id"] = frame["queue_id"].astype("int64")
    frame["owners"] = frame["owners"].map(tuple)
    return frame.sort_values([*QUEUE_KEY, "ended_at"]).reset_index(drop=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def bring_up_to_date(spark: SparkSession, data: Path, samples: Iterable[GroupSample], every_s: float) -> None:
    """Land the samples hour by hour, as they come in, and bring the history up to date after each hour."""
    by_hour: dict[int, list[GroupSample]] = {}
    for sample in samples:
        by_hour.setdefault(int((sample.at - START) // HOUR), []).append(sample)
    for of_hour in by_hour.values():
        land(data, of_hour)
        update(spark, data, of_hour[0].at, of_hour[-1].at, every_s)


def test_history_is_what_the_pure_function_says_in_every_column(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    land(tmp_path, samples)
    assert update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S) == len(samples)
    wanted = expected(samples)
    assert wanted["broker_reset"].sum() == 1
    assert wanted["consumer_reset"].sum() == 2
    assert wanted["is_gap"].any()
    assert wanted["day"].nunique() == 1
    assert set(wanted["hour"]) == {"09", "10"}
    pd.testing.assert_frame_equal(found(spark, tmp_path), wanted, check_exact=True)


def test_history_made_hour_by_hour_knows_what_came_before_the_hour(spark: SparkSession, tmp_path: Path) -> None:
    every_s = 1500.0  # farther apart than raw samples are read before an hour, so that only the history can tell
    assert timedelta(seconds=every_s) > LOOK_BACK
    samples = eventful(12, start_s=-3600.0, every_s=every_s)
    bring_up_to_date(spark, tmp_path, samples, every_s)
    wanted = expected(samples, every_s)
    stuck = wanted[(wanted["topic"] == STUCK.topic) & (wanted["broker"] == STUCK.broker) & (wanted["queue_id"] == 1)]
    assert stuck["commit_age_s"].max() > 3 * HOUR.total_seconds()
    pd.testing.assert_frame_equal(found(spark, tmp_path), wanted, check_exact=True)


def test_first_sighting_just_before_the_hour_is_the_first_intervals_start(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(6, start_s=-5.0)
    bring_up_to_date(spark, tmp_path, samples, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected(samples), check_exact=True)


def test_running_twice_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    land(tmp_path, samples)
    update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    once = found(spark, tmp_path)
    update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), once, check_exact=True)


def test_a_later_interval_leaves_earlier_hours_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    earlier = [sample for sample in samples if sample.at < START]
    later = [sample for sample in samples if sample.at >= START]
    land(tmp_path, earlier)
    update(spark, tmp_path, earlier[0].at, earlier[-1].at, SAMPLE_EVERY_S)
    hour = history_folder(tmp_path) / "day=2026-11-21" / "hour=09"
    before = files_of(hour)
    land(tmp_path, later)
    update(spark, tmp_path, later[0].at, later[-1].at, SAMPLE_EVERY_S)
    assert files_of(hour) == before


def test_an_interval_without_samples_keeps_what_is_known(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    land(tmp_path, samples)
    update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    before = files_of(history_folder(tmp_path))
    shutil.rmtree(tmp_path / "samples")  # raw samples are kept for less long than the history
    assert update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S) == 0
    assert files_of(history_folder(tmp_path)) == before


def test_groups_do_not_mix(spark: SparkSession, tmp_path: Path) -> None:
    shop, bank = eventful(8), as_group(eventful(6, start_s=-110.0), "bank %RETRY%")
    land(tmp_path, (*shop, *bank))
    update(spark, tmp_path, shop[0].at, bank[-1].at, SAMPLE_EVERY_S)
    wanted = _comparable(pd.concat([expected(shop), expected(bank)]))
    pd.testing.assert_frame_equal(found(spark, tmp_path), wanted, check_exact=True)


def test_a_newer_planners_history_is_refused_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    history = history_folder(tmp_path)
    history.mkdir()
    (history / "_version.json").write_bytes(HISTORY_VERSION.dump(HistoryVersion(VERSION + 1)))
    before = files_of(tmp_path)
    with pytest.raises(NewerVersionError, match=r"history: found a history of version 2, .* reads version 1: use the"):
        update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    assert files_of(tmp_path) == before


def test_a_history_without_its_version_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    (history_folder(tmp_path) / "day=2026-11-21" / "hour=10").mkdir(parents=True)
    with pytest.raises(DocumentError, match=r"days of a history without _version\.json"):
        update(spark, tmp_path, START, START, SAMPLE_EVERY_S)


def test_a_history_says_its_version(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    text = (history_folder(tmp_path) / "_version.json").read_text(encoding="utf-8")
    assert f'"apiVersion":"{API_VERSION}"' in text
    assert '"body":{"version":1}' in text


def test_a_sample_that_is_cut_off_stops_the_run_by_name(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(6)
    land(tmp_path, samples)
    broken = sample_path(tmp_path, samples[3])
    broken.write_bytes(broken.read_bytes()[:700])
    with pytest.raises(PySparkException) as stopped:
        update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
    ours = error_of_worker(stopped.value)
    assert isinstance(ours, DocumentError)
    assert str(ours).startswith(f"{broken}: not valid JSON")
    assert not list(history_folder(tmp_path).glob("day=*"))


def test_a_foreign_file_among_samples_stops_the_run_by_name(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    foreign = sample_path(tmp_path, samples[0]).with_name("notes.json")
    foreign.write_text("{}", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"notes\.json: found among samples"):
        update(spark, tmp_path, samples[0].at, samples[-1].at, SAMPLE_EVERY_S)
