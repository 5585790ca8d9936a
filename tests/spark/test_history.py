"""The history app: what Spark says in columns is what the pure function says."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from planner.documents.format import API_VERSION
from planner.errors import DocumentError, NewerVersionError
from planner.history.curve import REACH
from planner.history.intervals import queue_intervals
from planner.model.intervals import QueueInterval
from planner.model.samples import GroupSample
from planner.storage.layout import history_folder, sample_path
from spark_apps.common.errors import error_of_worker
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import HISTORY_VERSION, VERSION, HistoryVersion, check_version
from spark_apps.history.app import Updated, rebuild, update
from spark_apps.history.schemas import HISTORY, INTERVALS, QUEUE_KEY
from spark_apps.snapshot.transforms import intervals_of
from tests.sample_builders import START
from tests.spark.worlds import OWNED_BY_OTHERS, SAMPLE_EVERY_S, STUCK, as_group, eventful, land

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)
FRACTIONS = ("commit_age_s", "lag_s", "arrival_rate", "consumption_rate", "consumer_offset", "lag", "consumed")


def expected(samples: Sequence[GroupSample], sample_every_s: float = SAMPLE_EVERY_S) -> pd.DataFrame:
    """Return the whole history that the pure function gives."""
    rows = [_row(samples[0], interval) for interval in queue_intervals(samples, sample_every_s)]
    return _comparable(pd.DataFrame(rows, columns=HISTORY.fieldNames()))


def _row(sample: GroupSample, interval: QueueInterval) -> tuple[object, ...]:
    queue = interval.queue
    figures = [getattr(interval, name) for name in HISTORY.fieldNames()[len(QUEUE_KEY) : -2]]
    key = (sample.system, sample.cluster, sample.group, queue.topic, queue.broker, queue.queue_id)
    return (*key, *figures, "sample", f"{interval.ended_at:%Y-%m-%d}")


def found(spark: SparkSession, data: Path) -> pd.DataFrame:
    """Return the whole history as it lies on disk."""
    frame = spark.read.schema(HISTORY).parquet(str(history_folder(data) / "intervals"))
    return _comparable(frame.select(*HISTORY.fieldNames()).toPandas())


def _comparable(frame: pd.DataFrame) -> pd.DataFrame:
    for name in ("started_at", "ended_at"):
        frame[name] = pd.to_datetime(frame[name], utc=True).dt.as_unit("us")
    for name in FRACTIONS:
        frame[name] = frame[name].astype("float64")
    frame["queue_id"] = frame["queue_id"].astype("int64")
    for name in ("owners", "moved_from"):
        frame[name] = frame[name].map(lambda names: None if names is None else tuple(names))
    return frame.sort_values([*QUEUE_KEY, "ended_at"]).reset_index(drop=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def bring_up_to_date(
    spark: SparkSession, data: Path, samples: Iterable[GroupSample], every_s: float, each: timedelta = HOUR
) -> None:
    """Land the samples as they come in, and bring the history up to date after each hour, or each other span."""
    spans: dict[int, list[GroupSample]] = {}
    for sample in samples:
        spans.setdefault(int((sample.at - START) // each), []).append(sample)
    for of_span in spans.values():
        land(data, of_span)
        update(spark, data, of_span[-1].at, every_s)


def test_history_is_what_the_pure_function_says_in_every_column(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful()
    land(tmp_path, samples)
    updated = update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    wanted = expected(samples)
    assert updated == Updated(len(samples), late=0, groups=1, intervals=len(wanted))
    assert wanted["broker_reset"].sum() == 1
    assert wanted["consumer_reset"].sum() == 2
    assert wanted["is_gap"].any()
    assert wanted["lag_s_is_least"].any()
    assert (wanted["lag_s"] > 60).any()
    assert set(wanted["moved_from"]) == {(), OWNED_BY_OTHERS}
    pd.testing.assert_frame_equal(found(spark, tmp_path), wanted, check_exact=True)


def test_rows_read_back_are_the_intervals(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(12)
    land(tmp_path, samples)
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    read = intervals_of(spark.read.schema(HISTORY).parquet(str(history_folder(tmp_path) / "intervals")).toPandas())
    assert read == queue_intervals(samples, SAMPLE_EVERY_S)


def test_history_made_bit_by_bit_knows_all_that_came_before(spark: SparkSession, tmp_path: Path) -> None:
    every_s = 1500.0
    samples = eventful(24, start_s=-3600.0, every_s=every_s)
    bring_up_to_date(spark, tmp_path, samples, every_s, each=4 * HOUR)
    wanted = expected(samples, every_s)
    stuck = wanted[(wanted["topic"] == STUCK.topic) & (wanted["broker"] == STUCK.broker) & (wanted["queue_id"] == 1)]
    assert stuck["commit_age_s"].max() > REACH.total_seconds()
    assert list(stuck["lag_s_is_least"])[-2:] == [True, True]
    pd.testing.assert_frame_equal(found(spark, tmp_path), wanted, check_exact=True)


def test_a_day_ends_at_midnight_utc_and_the_next_one_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(24, start_s=14 * 3600.0 - 60.0)
    land(tmp_path, samples)
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    wanted = expected(samples)
    assert set(wanted["day"]) == {"2026-11-21", "2026-11-22"}
    pd.testing.assert_frame_equal(found(spark, tmp_path), wanted, check_exact=True)


def test_running_twice_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(12)
    land(tmp_path, samples)
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    before = files_of(tmp_path)
    assert update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S) == Updated(0, 0, 0, 0)
    assert files_of(tmp_path) == before
    land(tmp_path, samples)  # the observe stage is tried again, too
    assert update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S) == Updated(0, 0, 0, 0)
    assert files_of(tmp_path) == before


def test_packed_samples_go_and_the_newest_of_each_group_stays(spark: SparkSession, tmp_path: Path) -> None:
    shop, bank = eventful(6), as_group(eventful(4), "bank %RETRY%")
    later = eventful(8)[-1]
    land(tmp_path, (*shop, *bank, later))
    update(spark, tmp_path, shop[-1].at, SAMPLE_EVERY_S)
    wanted = {sample_path(tmp_path, sample) for sample in (shop[-1], bank[-1], later)}
    assert set((tmp_path / "samples").rglob("*.json")) == wanted
    pd.testing.assert_frame_equal(
        found(spark, tmp_path), _comparable(pd.concat([expected(shop), expected(bank)])), check_exact=True
    )


def test_a_late_sample_is_packed_and_a_rebuild_puts_it_in(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(24)
    late = samples[9]
    land(tmp_path, [sample for sample in samples if sample != late])
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    without = found(spark, tmp_path)
    land(tmp_path, [late])
    assert update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S) == Updated(1, 1, 1, 0)
    pd.testing.assert_frame_equal(found(spark, tmp_path), without, check_exact=True)
    rebuild(Folder.of(spark, history_folder(tmp_path)), SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected(samples), check_exact=True)


def test_a_history_of_version_1_is_read_on(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parent / "history-v1", history_folder(tmp_path))
    samples = eventful()
    land(tmp_path, samples[24:])
    with pytest.raises(DocumentError, match="history of version 1, expected 2: run the history app once"):
        check_version(Folder.of(spark, history_folder(tmp_path)))
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    wanted, read = expected(samples), found(spark, tmp_path)
    of_version_1 = wanted["ended_at"] <= samples[23].at
    assert 0 < of_version_1.sum() < len(wanted)
    new = ["lag_s", "lag_s_is_least", "moved_from"]
    assert read.loc[of_version_1, new].isna().all(axis=None)
    pd.testing.assert_frame_equal(read.drop(columns=new), wanted.drop(columns=new), check_exact=True)
    assert not list(history_folder(tmp_path).glob("day=*"))


def test_a_newer_planners_history_is_refused_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    history = history_folder(tmp_path)
    history.mkdir()
    (history / "_version.json").write_bytes(HISTORY_VERSION.dump(HistoryVersion(VERSION + 1)))
    before = files_of(tmp_path)
    with pytest.raises(NewerVersionError, match=r"history: found a history of version 3, .* reads version 2: use the"):
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    assert files_of(tmp_path) == before


def test_a_history_without_its_version_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    (history_folder(tmp_path) / "day=2026-11-21" / "hour=10").mkdir(parents=True)
    with pytest.raises(DocumentError, match=r"days of a history without _version\.json"):
        update(spark, tmp_path, START, SAMPLE_EVERY_S)


def test_a_history_says_its_version(spark: SparkSession, tmp_path: Path) -> None:
    update(spark, tmp_path, START, SAMPLE_EVERY_S)
    text = (history_folder(tmp_path) / "_version.json").read_text(encoding="utf-8")
    assert f'"apiVersion":"{API_VERSION}"' in text
    assert '"body":{"version":2}' in text


def test_a_sample_that_is_cut_off_stops_the_run_by_name(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(6)
    land(tmp_path, samples)
    broken = sample_path(tmp_path, samples[3])
    whole = broken.read_bytes()
    broken.write_bytes(whole[:700])
    with pytest.raises(PySparkException) as stopped:
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    ours = error_of_worker(stopped.value)
    assert isinstance(ours, DocumentError)
    assert str(ours).startswith(f"{broken}: not valid JSON")
    assert not (history_folder(tmp_path) / "intervals").exists()
    broken.write_bytes(whole)  # mended: the half-done run is forgotten
    land(tmp_path, samples)
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected(samples), check_exact=True)


def test_a_foreign_file_among_samples_stops_the_run_by_name(spark: SparkSession, tmp_path: Path) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    foreign = sample_path(tmp_path, samples[0]).with_name("notes.json")
    foreign.write_text("{}", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"notes\.json: found among samples"):
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)


def test_every_column_of_an_interval_is_one_of_the_model(spark: SparkSession) -> None:  # noqa: ARG001
    assert set(INTERVALS.names[len(QUEUE_KEY) :]) == set(QueueInterval.__slots__) - {"queue"}


def test_a_queue_that_was_silent_for_long_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    before = eventful(6)
    after = [replace(sample, at=sample.at + timedelta(days=2)) for sample in eventful(12)[6:]]
    for samples in (before, after):
        land(tmp_path, samples)
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected((*before, *after)), check_exact=True)
