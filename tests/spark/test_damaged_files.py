"""Parquet files of a history that are damaged, gone or bombs: one sentence that names the file, no trace."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from planner.errors import StorageError
from planner.storage.layout import history_folder
from spark_apps.common import history_folder as history_folder_module
from spark_apps.common.errors import SENTENCE_MARK, finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import Change, read_days
from spark_apps.common.parquet_files import read_footer
from spark_apps.history.app import update
from spark_apps.history.schemas import HISTORY
from tests.parquet_pages import GOOD, LYING
from tests.spark.worlds import SAMPLE_EVERY_S, eventful, land

pytestmark = pytest.mark.spark


def overwritten(content: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    start = chance.randrange(len(content))
    return content[:start] + chance.randbytes(40) + content[start + 40 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-4],
    "another file": lambda _: b"no Parquet" * 100,
    **{f"overwritten {seed}": lambda content, seed=seed: overwritten(content, seed) for seed in range(12)},
}


def read_all(spark: SparkSession, data: Path) -> None:
    """Read as the apps do."""
    history = Folder.of(spark, history_folder(data))
    read_days(history, "intervals", HISTORY, date.min, date.max).collect()


def test_a_damaged_file_is_named_in_one_sentence(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, samples = tmp_path / "data", eventful(12)
    land(data, samples)
    update(spark, data, samples[-1].at, SAMPLE_EVERY_S)
    shutil.copytree(data, tmp_path / "kept")
    refused = 0
    for name, damage in DAMAGE.items():
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "kept", data)
        path = next((history_folder(data) / "intervals").rglob("*.parquet"))
        path.write_bytes(damage(path.read_bytes()))
        path.with_name(f".{path.name}.crc").unlink()  # Hadoop's own checksum: other file systems have none
        try:
            finish(lambda: read_all(spark, data))
        except SystemExit as left:
            refused += 1
            assert left.code == StorageError.exit_code, name
            assert path.name in capsys.readouterr().err, name
    assert refused >= 4


def write_bomb(path: Path) -> None:
    """Write 101 million rows of one value: some 100 KB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    million = pa.record_batch({"seconds": pa.repeat(pa.scalar(30.0), 1_000_000)})
    with pq.ParquetWriter(path, million.schema, compression="zstd") as writer:
        for _ in range(101):
            writer.write_batch(million)
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("folder", [".", "below"])
def test_a_small_file_of_many_rows_is_refused_before_a_row_is_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    data, samples = tmp_path / "data", eventful(12)
    land(data, samples)
    update(spark, data, samples[-1].at, SAMPLE_EVERY_S)
    path = next((history_folder(data) / "intervals").rglob("*.parquet"))
    write_bomb(path.parent / folder / "sampled bomb.parquet")
    rows = lambda: read_days(Folder.of(spark, history_folder(data)), "intervals", HISTORY, date.min, date.max)  # noqa: E731
    with pytest.raises(SystemExit) as left:
        finish(lambda: rows().limit(1).collect())
    assert left.value.code == StorageError.exit_code
    sentence = capsys.readouterr().err
    assert "sampled bomb.parquet states a file of 101000000 rows, expected 0 to 100000000" in sentence


def test_many_rows_become_several_files(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we write is never refused."""
    monkeypatch.setattr(history_folder_module, "FILE_ROWS", 10)
    history = Folder.of(spark, tmp_path / "history")
    change = Change(history)
    change.write(spark.range(0, 11, numPartitions=1), "states", source="x")
    change.commit()
    rows = [read_footer(file).rows for file in history.under("states").files()]
    assert sorted(rows) == [1, 10]


def says_that_java_ended(stderr: str) -> bool:
    """Return whether one line does: Py4J may log below it what it could not tidy in a Java that is gone."""
    lines = [line for line in stderr.splitlines() if line.startswith(SENTENCE_MARK)]
    return len(lines) == 1 and lines[0].startswith("planner: stage history: a Java process of Spark ended")


READ = """
import sys
from pyspark.sql.types import DoubleType, StructField, StructType
from spark_apps.common.errors import finish, name_stage
from spark_apps.common.folder import Folder
from spark_apps.common.parquet_files import read_parquet
from spark_apps.common.session import session

def main():
    schema = StructType([StructField("seconds", DoubleType())])
    with session("pages") as spark, name_stage("history"):
        for path in sys.argv[1:]:
            base = Folder.of(spark, path.rpartition("/")[0])
            print([row[0] for row in read_parquet([Folder.of(spark, path)], schema, base).collect()], flush=True)

finish(main)
"""


@pytest.mark.usefixtures("java")
def test_a_page_that_takes_all_memory_ends_in_one_sentence(tmp_path: Path) -> None:
    """Spark's Java does not survive it, whatever its memory: the process that asks it does, and says what to do.

    Py4J logs a trace of its own above.
    """
    attack = "numbers in a run of 8 GiB"
    for name, content in (GOOD | {attack: LYING[attack]}).items():
        (tmp_path / name).write_bytes(content())
    files = [str(tmp_path / name) for name in (*GOOD, attack)]
    command = [sys.executable, "-c", READ, *files]
    options = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell"}
    run = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=os.environ | options, capture_output=True, text=True, check=False
    )
    assert run.stdout.splitlines() == ["[1.0, 2.0, 3.0]"] * 2, run.stderr
    assert run.returncode == StorageError.exit_code, run.stderr
    assert says_that_java_ended(run.stderr), run.stderr


CUT_OFF = """
import signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from spark_apps.common.errors import finish, name_stage
from spark_apps.common.session import session

def main():
    with ExitStack() as stack, ThreadPoolExecutor(1) as another_thread, name_stage("history"):
        spark = stack.enter_context(session("cut off"))
        java = spark.sparkContext._gateway.proc
        if sys.argv[1] == "stop":
            spark.sparkContext.stop()  # whose errors Spark minds itself
        java.send_signal(signal.SIGSTOP)
        threading.Timer(1, java.kill).start()
        count = lambda: spark.range(3).count()
        calls = {
            "count": count,
            "count in another thread": lambda: another_thread.submit(count).result(),
            "stop": stack.close,
        }
        calls[sys.argv[1]]()

finish(main)
"""


def cut_off(call: str) -> "subprocess.CompletedProcess[str]":
    """Let Java end before it has read the call, which resets the connection: another error than an empty answer's.

    Another thread has no connection yet, so that what is left unread is its first word.
    """
    command = [sys.executable, "-c", CUT_OFF, call]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("call", ["count", "count in another thread"])
def test_a_call_that_java_leaves_unread_ends_in_one_sentence(call: str) -> None:
    run = cut_off(call)
    assert run.returncode == StorageError.exit_code, run.stderr
    assert says_that_java_ended(run.stderr), run.stderr


@pytest.mark.usefixtures("java")
def test_an_app_that_is_done_does_not_care_that_its_java_ends_before_it_is_stopped() -> None:
    assert cut_off("stop").returncode == 0


class TextlessError(Py4JJavaError):
    """An error whose text Java has, which ended meanwhile."""

    def __init__(self) -> None:
        Exception.__init__(self)

    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_an_error_whose_java_has_ended_is_one_sentence_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Red where the text of Spark's error is asked for as if Java were there: then the app ends in a trace."""

    def main() -> None:
        raise TextlessError

    with pytest.raises(SystemExit) as end:
        finish(main)
    assert end.value.code == StorageError.exit_code
    assert "a Java process of Spark ended" in capsys.readouterr().err
