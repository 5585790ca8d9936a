"""The Spark session that every app runs in."""

import io
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.sql import SparkSession

import planner
import spark_apps
from planner.storage.files import write_atomically

TASKS_A_CORE = 2
"""Into how many tasks a stage cuts its work for each core: a large group holds up one of them alone."""
EVERYWHERE = {
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # Raw files are small: packed by their size, not by the 4 MB that opening one is reckoned to cost.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.executorEnv.PYTHONPATH": str(Path(spark_apps.__path__[0]).parent),
}
"""On one machine: nothing listens beyond loopback, and Python workers take the code from where the driver has it."""


@contextmanager
def session(name: str) -> Iterator[SparkSession]:
    """Yield a session whose executors can import the planner; it is stopped at the end.

    The master is the one that spark-submit names, ``local[*]`` when there is none. Settings passed to spark-submit take
    precedence over ours.
    """
    stated = _submitted_conf()
    master = stated.get("spark.master") or "local[*]"
    is_local = re.match(r"local(\[|$)", master) is not None
    if is_local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in (EVERYWHERE | (LOCAL if is_local else {})).items():
        builder = builder.config(key, stated.get(key) or value)
    spark = builder.getOrCreate()
    try:
        with tempfile.TemporaryDirectory(prefix="planner-code-") as folder:
            if not is_local:
                archive = write_atomically(Path(folder) / "planner-code.zip", code_archive())
                spark.sparkContext.addPyFile(str(archive))
            yield spark
    finally:
        with suppress(ConnectionError, Py4JError):  # a Java process that has ended needs no stop
            spark.stop()


def _submitted_conf() -> SparkConf:
    """Return the settings passed to spark-submit, nothing where it did not start us."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # They are in its JVM, to which nothing is connected yet: until then the settings are empty.
        SparkContext._ensure_initialized()
    return SparkConf()


def code_archive() -> bytes:
    """Return planner and apps as a zip: executors run exactly the driver's code, whatever is installed there."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in (planner, spark_apps):
            root = Path(package.__path__[0])
            for path in sorted(root.rglob("*.py")):
                archive.write(path, path.relative_to(root.parent))
    return buffer.getvalue()
