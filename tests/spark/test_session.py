"""How the apps run: nothing listens to the world, errors are sentences, executors get the code."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import spark_apps
from planner.errors import DigestError, PlannerError
from planner.storage.layout import history_folder
from spark_apps.common.errors import error_of_worker
from spark_apps.common.session import code_archive
from tests.spark.worlds import eventful, land

pytestmark = pytest.mark.spark


def test_nothing_listens_beyond_loopback(spark: SparkSession) -> None:
    assert spark.sparkContext.uiWebUrl is None
    spark.range(2).mapInPandas(lambda frames: frames, "id long").collect()  # type: ignore[arg-type]
    # The session's brokers are children of this process, too, and 5.5.0's HA port cannot be bound to loopback.
    ours = [psutil.Process(), *filter(_is_of_spark, psutil.Process().children(recursive=True))]
    listening = {
        connection.laddr.ip
        for process in ours
        for connection in _connections_of(process)
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert {address.removeprefix("::ffff:") for address in listening} <= {"127.0.0.1", "::1"}


def _connections_of(process: psutil.Process) -> list[Any]:
    try:
        return list(process.net_connections())
    except psutil.NoSuchProcess:  # a worker that was not needed any more
        return []


def _is_of_spark(process: psutil.Process) -> bool:
    try:
        return any("spark" in word for word in process.cmdline())
    except psutil.Error:  # it has just ended
        return False


def test_executors_get_all_code_of_planner_and_apps(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(code_archive())) as archive:
        archive.extractall(tmp_path)
    program = (
        "import spark_apps.decide.transforms as found, planner.pipeline as path; print(found.__file__, path.__file__)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = ("spark_apps/decide/transforms.py", "planner/pipeline.py")
    assert said.split() == [str(tmp_path / path) for path in wanted]


def test_an_error_of_ours_comes_back_from_a_workers_traceback_as_what_it_was() -> None:
    text = (
        "Traceback (most recent call last):\n  File ...\nplanner.errors.DigestError: a.json: edited\n\n"
        "The above exception was the direct cause of the following exception\nValueError: x\n"
    )
    ours = error_of_worker(PythonException(text))
    assert type(ours) is DigestError
    assert str(ours) == "a.json: edited"
    foreign = error_of_worker(PythonException("planner.sources.rocketmq.errors.FrameError: too long"))
    assert type(foreign) is PlannerError
    assert error_of_worker(PythonException("ValueError: x")) is None


@pytest.mark.usefixtures("java")
def test_an_app_ends_with_one_sentence_and_the_exit_code_of_its_error(tmp_path: Path) -> None:
    samples = eventful(4)
    land(tmp_path, samples)
    (history_folder(tmp_path) / "day=2026-11-21").mkdir(parents=True)
    app = Path(spark_apps.__path__[0]) / "history" / "app.py"
    times = ["--until", samples[-1].at.isoformat(), "--sample-every", "5"]
    ended = subprocess.run(
        [Path(sys.executable).with_name("spark-submit"), app, "--data", tmp_path, *times],
        env=os.environ
        | {
            "PYSPARK_PYTHON": sys.executable,
            # spark-submit's own search for its home breaks on a blank in the path.
            "SPARK_HOME": str(Path(pyspark.__path__[0])),
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    # spark-submit passes everything its Python says on to standard output.
    said = [line for line in ended.stdout.splitlines() if line.startswith("planner: ")]
    assert len(said) == 1
    assert said[0].startswith(f"planner: stage history: {history_folder(tmp_path).as_uri()}: found days of a history")
    assert ended.stdout.splitlines() == said
