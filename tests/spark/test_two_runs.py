"""Two history runs at once, and a change that was taken apart: no sample is lost, whatever the other does."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from pyspark.sql import SparkSession

from planner.errors import StorageError
from planner.storage.layout import history_folder, samples_folder
from scripts.run_local import ROOT
from spark_apps.common import history_lock
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import Change, recover
from spark_apps.common.history_lock import only_run
from spark_apps.history.app import Updated, update
from tests.spark.test_history import expected, found
from tests.spark.worlds import SAMPLE_EVERY_S, eventful, land

pytestmark = pytest.mark.spark


def test_a_second_run_in_the_middle_of_the_first_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second began between the first's packing and its commit, and threw its staged files away: 24 of 25 lost."""
    samples = eventful(25)
    land(tmp_path, samples)
    refused: list[str] = []
    commit = Change.commit

    def interrupted(self: Change) -> None:
        monkeypatch.setattr(Change, "commit", commit)
        monkeypatch.setattr(history_lock, "WAIT_S", 0.0)
        try:
            update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
        except StorageError as error:
            refused.append(str(error))
        commit(self)

    monkeypatch.setattr(Change, "commit", interrupted)
    update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected(samples), check_exact=True)
    (sentence,) = refused
    holder = f"is changed by {socket.gethostname()} process {os.getpid()} since "
    assert sentence.startswith(f"the history {history_folder(tmp_path)} {holder}")
    assert update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S) == Updated(0, 0, 0, 0), "its lock went with it"


def test_two_processes_at_once_lose_nothing_and_the_second_waits(spark: SparkSession, tmp_path: Path) -> None:
    """Both are let go at the same moment: whichever is first packs all samples, the other finds nothing left to do."""
    samples = eventful(25)
    land(tmp_path, samples)
    history = history_folder(tmp_path)
    words = ["--data", str(tmp_path), "--until", samples[-1].at.isoformat(), "--sample-every", str(SAMPLE_EVERY_S)]
    command = [sys.executable, "-m", "spark_apps.history.app", *words]
    with only_run(Folder.of(spark, history)):
        both = [
            psutil.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "12"
        ]
        for process in both:
            while not any(file.path == str(history / "_lock") for file in process.open_files()):
                assert process.poll() is None, process.communicate()
                time.sleep(0.2)
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    packed = sorted(out.split(" samples up to")[0].split()[-1] for out, _ in said)
    assert packed == ["0", str(len(samples))]
    pd.testing.assert_frame_equal(found(spark, tmp_path), expected(samples), check_exact=True)


def test_a_lock_file_names_its_holder_and_the_command_that_ends_the_doubt(spark: SparkSession, tmp_path: Path) -> None:
    """On a file system that has no locks of the kernel: the same, by a file of its own."""
    file = Folder.of(spark, tmp_path).under("_lock")
    refused = pytest.raises(StorageError, match=r"is changed by \S+ process \d+ since .*hadoop fs -rm file:")
    with history_lock._lock_file(file, 0.0), refused, history_lock._lock_file(file, 0.0):
        pass
    assert not file.exists()


def test_a_change_whose_files_are_gone_is_an_error_and_removes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    history = Folder.of(spark, tmp_path)
    kept = history.under("states", "sample-old.parquet")
    kept.write(b"old")
    change = Change(history, moves=[(history.under("_staging", "1", "a").uri, history.under("states", "new").uri)])
    change.delete([kept])
    with pytest.raises(StorageError, match=r"_staging/1/a is gone and .*states/new is not there"):
        change.commit()
    assert kept.read() == b"old"
    with pytest.raises(StorageError, match="is gone"):
        recover(history)


def test_samples_that_the_history_does_not_give_back_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    files = {path: path.read_bytes() for path in samples_folder(tmp_path).rglob("*.json")}
    write = Change.write

    def forgetful(self: Change, frame: object, *folder: str, source: str) -> None:
        if folder[0] != "samples":
            write(self, frame, *folder, source=source)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Change, "write", forgetful)
        with pytest.raises(StorageError, match=r"does not give it back as it is \(3 like this\): the files are kept"):
            update(spark, tmp_path, samples[-1].at, SAMPLE_EVERY_S)
    assert {path: path.read_bytes() for path in samples_folder(tmp_path).rglob("*.json")} == files
