"""Parquet files of a history that are cut off, overwritten or gone: one sentence that names the file, no trace."""

import random
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from planner.errors import StorageError
from planner.storage.layout import history_folder
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import read_days
from spark_apps.history.app import update
from spark_apps.history.schemas import HISTORY
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
