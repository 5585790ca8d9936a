"""Spark's classes as an archive that its JVMs map into memory instead of loading them one by one.

An app of the demo takes about half of the processor time with it. HotSpot makes such an archive when a JVM ends
(``-XX:ArchiveClassesAtExit``, JEP 350), and goes without one that does not fit: nothing but time depends on it.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pyspark import __version__ as pyspark_version

from planner.orchestration.checks.java import java_version
from tests.clusters.artifacts import cached
from tests.clusters.errors import StartFailedError

ARCHIVE = "spark.jsa"
QUIETLY = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
APP = """
import tempfile
from spark_apps.common.session import session
with session("classes") as spark, tempfile.TemporaryDirectory() as folder:
    made = spark.createDataFrame([(1, "a"), (2, "b")], "id long, name string")
    made.write.partitionBy("name").parquet(f"{folder}/rows")
    rows = spark.read.parquet(f"{folder}/rows")
    rows.write.json(f"{folder}/lines")
    lines = spark.read.schema(rows.schema).json(f"{folder}/lines")
    pairs = rows.groupBy("name").cogroup(lines.groupBy("name"))
    pairs.applyInPandas(lambda left, right: left, rows.schema).collect()
    rows.mapInPandas(lambda frames: frames, rows.schema).groupBy("name").count().collect()
"""
"""Does once what the apps do, so that the classes are loaded which they load."""


def class_archive(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options of a JVM that uses the archive, which is made first where it is not kept yet.

    ``environment`` is the one that Spark is started in. Raises ``StartFailedError`` with Spark's last lines.
    """
    made_of = "\n".join(
        (APP, *java_version(), pyspark_version, environment["SPARK_HOME"], environment["SPARK_SUBMIT_OPTS"])
    )
    digest = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    folder = cached("spark", digest, lambda fresh: _make(fresh, environment))
    return (f"-XX:SharedArchiveFile={folder / ARCHIVE}", *QUIETLY)


def _make(folder: Path, environment: Mapping[str, str]) -> None:
    app = folder / "app.py"
    app.write_text(APP, encoding="utf-8")
    options = (environment["SPARK_SUBMIT_OPTS"], f"-XX:ArchiveClassesAtExit={folder / ARCHIVE}", *QUIETLY)
    env = {**os.environ, **environment, "SPARK_SUBMIT_OPTS": " ".join(options)}
    done = subprocess.run(
        ["spark-submit", "--master", "local[*]", str(app)], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or not (folder / ARCHIVE).exists():
        raise StartFailedError(f"Spark's classes could not be archived:\n{done.stderr[-2000:]}")
