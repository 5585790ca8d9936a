"""A change to the history is cut off at every call to the file system, or refused there: the next run carries it on."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from planner.errors import StorageError
from planner.storage.layout import history_folder, samples_folder
from spark_apps.common import history_folder as folders
from spark_apps.common.folder import Folder
from spark_apps.history.app import prepare, update
from tests.spark.test_history import expected, files_of, found
from tests.spark.worlds import SAMPLE_EVERY_S, eventful, land

pytestmark = pytest.mark.spark

CHANGES = ("mkdirs", "rename", "delete", "create")
V1 = Path(__file__).with_name("history-v1")


class KilledError(BaseException):
    """The process is gone: nobody handles this."""


@contextmanager
def fault_at(point: int, fault: BaseException) -> Iterator[list[str]]:
    """Raise ``fault`` in place of the ``point``-th call that changes the file system; yield those before it."""
    calls: list[str] = []
    ask = Folder._ask

    def asked(self: Folder, request: str, *arguments: Any) -> Any:
        if request in CHANGES:
            if len(calls) + 1 == point:
                raise fault
            calls.append(request)
        return ask(self, request, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "_ask", asked)
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
    shutil.rmtree(data)
    shutil.copytree(kept, data)


def check_every_point(history: Folder, data: Path, kept: Path, run: Any) -> dict[str, bytes]:
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
    assert points > 10
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
