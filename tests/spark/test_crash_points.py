"""A change to the history is cut off at every call to the file system, or refused there: the next run carries it on."""

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from planner import pipeline
from planner.errors import StorageError
from planner.history.intervals import queue_intervals
from planner.model.points import MetricHistory
from planner.storage.layout import history_folder, samples_folder
from spark_apps.common import history_folder as folders
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.history.app import prepare, update
from spark_apps.history.metrics import import_metrics
from spark_apps.history.upkeep import compact, tidy
from tests.spark.test_history import expected, files_of, found
from tests.spark.worlds import SAMPLE_EVERY_S, eventful, land

pytestmark = pytest.mark.spark

CHANGES = ("mkdirs", "rename", "delete", "create")
V1 = Path(__file__).with_name("history-v1")


class KilledError(BaseException):
    """The process is gone: nobody handles this."""


@contextmanager
def fault_at(point: int, fault: BaseException) -> Iterator[list[str]]:
    """Raise ``fault`` in place of the ``point``-th call that changes the file system; yield those before it.

    One such call is Spark's writing of a table.
    """
    calls: list[str] = []
    ask, parquet = Folder._ask, DataFrameWriter.parquet

    def reach(call: str) -> None:
        if len(calls) + 1 == point:
            raise fault
        calls.append(call)

    def asked(self: Folder, request: str, *arguments: Any) -> Any:
        if request in CHANGES:
            reach(request)
        return ask(self, request, *arguments)

    def written(self: DataFrameWriter, path: str, *arguments: Any, **options: Any) -> None:
        reach("write")
        parquet(self, path, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "_ask", asked)
        patch.setattr(DataFrameWriter, "parquet", written)
        yield calls


def cut_off(history: Folder, run: Any, point: int, fault: BaseException) -> bool:
    """Run until the fault; return whether it came."""
    with fault_at(point, fault):
        try:
            run(history)
        except (KilledError, StorageError):
            return True
    return False


def put_back(kept: Path, data: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(kept, data)


def check_every_point(history: Folder, data: Path, kept: Path, run: Any, least: int = 11) -> dict[str, bytes]:
    """Cut ``run`` off at each of its calls; after each, one whole run brings the same files as an undisturbed one."""
    shutil.copytree(data, kept)
    run(history)
    whole = files_of(data)
    points = 0
    for fault in (KilledError(), StorageError("the disk is full")):
        for point in range(1, 1_000):
            put_back(kept, data)
            if not cut_off(history, run, point, fault):
                break
            run(history)
            assert files_of(data) == whole, f"{fault!r} at call {point}"
            points += 1
    assert points >= least
    return whole


def test_a_change_is_whole_wherever_it_was_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    data, samples = tmp_path / "data", eventful(24)
    history = Folder.of(spark, history_folder(data))
    land(data, samples[:12])
    update(spark, data, samples[11].at, SAMPLE_EVERY_S)
    land(data, samples[12:])
    # From the journal on nothing is computed any more, so that every call can be tried; before it nothing is changed.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "recover", _killed)
        with pytest.raises(KilledError):
            update(spark, data, samples[-1].at, SAMPLE_EVERY_S)
    assert (data / "history" / "_staging" / "journal.json").exists()
    check_every_point(history, data, tmp_path / "kept", prepare)
    # Killed while it removed sample files: what is left is known to be packed.
    (landed := sorted(samples_folder(data).rglob("*.json")))[3].unlink()
    assert len(landed) > 10
    update(spark, data, samples[-1].at, SAMPLE_EVERY_S)
    assert len(list(samples_folder(data).rglob("*.json"))) == 1
    pd.testing.assert_frame_equal(found(spark, data), expected(samples), check_exact=True)


def test_an_upgrade_is_whole_wherever_it_was_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(V1, history_folder(data))
    history = Folder.of(spark, history_folder(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "recover", _killed)
        with pytest.raises(KilledError):
            prepare(history)
    whole = check_every_point(history, data, tmp_path / "kept", prepare)
    assert any(path.startswith("history/intervals/day=2026-11-21/") for path in whole)


def _killed(_: Folder) -> None:
    raise KilledError


SAMPLES = eventful(24)
Run = Callable[[Folder, Path], object]


def pack(history: Folder, data: Path) -> None:
    update(history.spark, data, SAMPLES[-1].at, SAMPLE_EVERY_S)


def take_metrics_in(history: Folder, data: Path) -> None:
    import_metrics(history, data)


def merge(history: Folder, _: Path) -> None:
    compact(history, "intervals", history.under("intervals", "day=2026-11-21", "system=rocketmq"))


def drop_days(history: Folder, _: Path) -> None:
    tidy(history, SAMPLES[-1].at + timedelta(days=40), keep_days=30)


RUNS = pytest.mark.parametrize("run", [pack, take_metrics_in, merge, drop_days], ids=lambda run: run.__name__)


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which every run has something to do: two runs are packed, samples and metrics wait."""
    folder = tmp_path_factory.mktemp("crash") / "kept"
    for first, last in ((4, 10), (10, 16)):
        land(folder, SAMPLES[first:last])
        update(spark, folder, SAMPLES[last - 1].at, SAMPLE_EVERY_S)
    land(folder, SAMPLES[16:])
    intervals = queue_intervals(SAMPLES, SAMPLE_EVERY_S)
    until = intervals[-1].ended_at
    pipeline.land_metrics(
        folder, MetricHistory("rocketmq", "DefaultCluster", "shop", "prometheus/x", 5.0, 0.0, until, intervals, (), ())
    )
    return folder


def visible(data: Path) -> dict[str, bytes]:
    """Return all that anybody reads: neither what is staged nor the lock."""
    hidden = ("history/_staging", "history/_lock")
    return {name: content for name, content in files_of(data).items() if not name.startswith(hidden)}


@RUNS
def test_what_is_cut_off_before_its_journal_has_changed_nothing(
    spark: SparkSession, tmp_path: Path, kept: Path, run: Run
) -> None:
    data = tmp_path / "data"
    history = Folder.of(spark, history_folder(data))
    for point in range(1, 100):
        put_back(kept, data)
        with fault_at(point, KilledError()) as calls, pytest.raises(KilledError):
            run(history, data)
        if (data / "history" / "_staging" / "journal.json").exists():
            break
        assert visible(data) == visible(kept), calls
    # The last one that was left out follows the journal's being renamed into its place.
    assert calls[-1] == "rename"
    assert "write" in calls or run is drop_days


@pytest.mark.parametrize("run", [merge, drop_days], ids=lambda run: run.__name__)
def test_upkeep_is_whole_wherever_it_was_cut_off(spark: SparkSession, tmp_path: Path, kept: Path, run: Run) -> None:
    data = tmp_path / "data"
    history = Folder.of(spark, history_folder(data))
    put_back(kept, data)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(folders, "recover", _killed)
        run(history, data)
    whole = check_every_point(history, data, tmp_path / "again", prepare, least=8)
    assert len(whole) < len(visible(kept))


@RUNS
def test_a_full_disk_loses_nothing_and_the_next_run_is_whole(
    spark: SparkSession, tmp_path: Path, kept: Path, run: Run
) -> None:
    data, whole = tmp_path / "data", tmp_path / "whole"
    put_back(kept, whole)
    run(Folder.of(spark, history_folder(whole)), whole)
    put_back(kept, data)
    history = Folder.of(spark, history_folder(data))
    for room in (0, 100) if run is drop_days else (0, 2_000):
        with no_room(spark, room), pytest.raises(SystemExit) as ended:
            finish(lambda: run(history, data))
        assert ended.value.code == StorageError.exit_code
        assert visible(data) == visible(kept)
    run(history, data)
    assert not (data / "history" / "_staging").exists()
    if run is not drop_days:
        pd.testing.assert_frame_equal(found(spark, data), found(spark, whole), check_exact=True)
    assert files_of(data / "metrics").keys() == files_of(whole / "metrics").keys()
    assert files_of(data / "samples") == files_of(whole / "samples")


@contextmanager
def no_room(spark: SparkSession, room: int) -> Iterator[None]:
    """Let the kernel refuse Spark's process each file beyond so many bytes, as a full disk does."""
    process = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    _, most = limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (room, most))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, limits)
