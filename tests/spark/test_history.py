"""The history app: what Spark says in columns is what the pure function says."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from planner.documents.data import SAMPLE
from planner.documents.format import API_VERSION
from planner.errors import DocumentError, NewerVersionError
from planner.history.intervals import queue_intervals
from planner.history.message_age import REACH
from planner.model.intervals import QueueInterval
from planner.model.samples import GroupSample
from planner.storage.landing import reading_files, sample_files, samples_of_reading
from planner.storage.layout import history_folder, sample_path, time_name
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import HISTORY_VERSION, VERSION, HistoryVersion, check_version
from spark_apps.history.app import Updated, update
from spark_apps.history.rebuild import rebuild
from spark_apps.history.schemas import HISTORY, INTERVALS, QUEUE_KEY
from spark_apps.snapshot.transforms import intervals_of
from tests.sample_builders import START
from tests.spark.worlds import OWNED_BY_OTHERS, SAMPLE_EVERY_S, STUCK, as_group, eventful, land, land_readings

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


def test_files_that_are_no_samples_are_set_aside_and_all_others_are_in_the_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    samples = eventful(8)
    land(tmp_path, (*samples, *as_group(samples, "bank")))
    cut, text, far, folder = (sample_path(tmp_path, samples[number]) for number in (2, 3, 4, 5))
    whole = cut.read_bytes()
    cut.write_bytes(whole[:700])
    text.write_bytes(b"\xff\xfe\x00")
    offsets = samples[4].offsets
    beyond = replace(offsets[0], broker_offset=2**63)  # no column holds it
    far.write_bytes(SAMPLE.dump(replace(samples[4], offsets=(beyond, *offsets[1:]))))
    folder.unlink()
    folder.mkdir()
    stray, no_time = cut.with_name("notes.json"), cut.with_name("20269999T999999.999Z.json")
    for path in (stray, no_time):
        path.write_text("{}", encoding="utf-8")
    done = update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    bad = [cut, text, far, folder, stray, no_time]
    assert sorted(done.set_aside) == sorted(map(str, bad))
    assert sorted((cut.parent / "set-aside").iterdir()) == sorted(cut.parent / "set-aside" / path.name for path in bad)
    assert done.set_aside[str(cut)].startswith(f"{cut}: not valid JSON")
    assert done.set_aside[str(far)].startswith(f"{far}: a figure or time is beyond what the history can hold")
    assert f"lies in {cut.parent / 'set-aside'}" in done.set_aside[str(stray)]
    assert (done.samples, done.groups) == (2 * len(samples) - 4, 2)
    read = found(spark, tmp_path)
    for group, left in (("shop", [samples[number] for number in (0, 1, 6, 7)]), ("bank", samples)):
        rows = read[read["group"] == group].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, expected(as_group(left, group)), check_exact=True)
    assert update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S).set_aside == {}


def test_readings_come_to_the_same_history_as_files_of_one_sample(spark: SparkSession, tmp_path: Path) -> None:
    """Red where a layout is passed over, a group that failed in the last reading loses its newest, an edited line
    costs its neighbours, or a reading stays for ever."""
    shop = eventful(10)
    bank = as_group(shop, "bank %RETRY%")
    land(tmp_path, (*shop[:3], *bank[:3]))
    land_readings(tmp_path, shop[3:6], bank[3:5])
    assert update(spark, tmp_path, shop[5].at, SAMPLE_EVERY_S).samples == 11
    (kept,) = reading_files(tmp_path)
    assert [sample.key[2] for sample in samples_of_reading(kept)[0]] == ["shop"]
    assert {sample.path for sample in sample_files(tmp_path)} == {sample_path(tmp_path, bank[4])}
    assert update(spark, tmp_path, shop[5].at, SAMPLE_EVERY_S) == Updated(0, 0, 0, 0)
    land_readings(tmp_path, shop[3:6], bank[3:5])  # the observe stage is tried again, too
    assert update(spark, tmp_path, shop[5].at, SAMPLE_EVERY_S) == Updated(0, 0, 0, 0)
    assert list(reading_files(tmp_path)) == [kept]

    land_readings(tmp_path, shop[6:], bank[6:])
    edited = next(path for path in reading_files(tmp_path) if time_name(shop[6].at) in path.name)
    line = samples_of_reading(edited)[0][0].document()[:-1]
    edited.write_bytes(edited.read_bytes().replace(line, line.replace(b'"topic":"orders"', b'"topic":"ordert"', 1)))
    done = update(spark, tmp_path, shop[-1].at, SAMPLE_EVERY_S)
    assert list(done.set_aside) == [str(edited)]
    assert "group bank %RETRY%: its content has digest" in done.set_aside[str(edited)]
    assert (done.samples, done.late, done.groups) == (7, 0, 2)
    assert [path.name for path in edited.parent.glob("set-aside/*")] == [edited.name]
    assert update(spark, tmp_path, shop[-1].at, SAMPLE_EVERY_S) == Updated(0, 0, 0, 0)
    assert len(list(reading_files(tmp_path))) == 1
    assert list(sample_files(tmp_path)) == [], "what left the reading is packed"
    wanted = pd.concat([expected(shop), expected((*bank[:5], *bank[7:]))])
    pd.testing.assert_frame_equal(found(spark, tmp_path), _comparable(wanted), check_exact=True)


def test_every_column_of_an_interval_is_one_of_the_model(spark: SparkSession) -> None:  # noqa: ARG001
    assert set(INTERVALS.names[len(QUEUE_KEY) :]) == set(QueueInterval.__slots__) - {"queue"}


def test_a_queue_that_was_silent_for_long_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    before = eventful(6)
    after = [replace(sample, at=sample.at + timedelta(days=2)) for sample in eventful(12)[6:]]
    for samples in (before, after):
        land(tmp_path, samples)
        update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected((*before, *after)), check_exact=True)
