"""The operator of Spark apps: which connection and which interpreters, asked of it in a process with Airflow."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.run_local import ROOT, Settings, environment

pytestmark = pytest.mark.airflow

ASK = """
import json, sys
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowFailException
from planner.orchestration.spark import SparkStage

SparkSubmitOperator.execute = lambda self, context: None  # what it would submit is asked, not done
stage = SparkStage(task_id="history", code="/code", application="/code/app.py")
try:
    stage.execute({})
    print("TOLD" + json.dumps(stage.env_vars))
except AirflowFailException as error:
    print("TOLD" + json.dumps(str(error)))
"""


def submitted(folder: Path, connection: dict[str, Any] | None, **more: str) -> Any:
    """Return the variables that the stage would submit with, or its sentence."""
    settings = Settings(policies=folder, capture=folder, work=folder)
    env = {**os.environ, **environment(settings), **more}
    for name in ("AIRFLOW_CONN_SPARK_DEFAULT", "PYSPARK_PYTHON"):
        env.pop(name, None)
    if connection is not None:
        env["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps({"conn_type": "spark", **connection})
    ended = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("TOLD")]
    assert lines, ended.stdout + ended.stderr
    return json.loads(lines[-1].removeprefix("TOLD"))


def test_a_missing_connection_is_one_sentence_that_names_the_command(tmp_path: Path) -> None:
    """Red when the provider's default, YARN, is taken in silence."""
    sentence = submitted(tmp_path, None)
    assert sentence.startswith("connection spark_default is not defined")
    assert "airflow connections add spark_default --conn-type spark --conn-host 'local[*]'" in sentence
    other = submitted(tmp_path, None, CONSUMER_PLANNER_SPARK_CONNECTION="our_spark")
    assert other.startswith("connection our_spark is not defined")


@pytest.mark.parametrize(
    ("connection", "executors", "is_driver_here"),
    [
        ({"host": "local[*]"}, sys.executable, True),
        ({"host": "spark://spark:7077"}, "python3", True),
        ({"host": "localhost", "port": 7077}, "python3", True),
        ({"host": "spark://spark:7077", "extra": {"python": "/opt/env/bin/python"}}, "/opt/env/bin/python", True),
        ({"host": "k8s://https://api:6443", "extra": {"deploy-mode": "cluster"}}, "python3", False),
    ],
    ids=["local", "elsewhere", "a host named localhost", "stated", "cluster"],
)
def test_the_interpreter_of_executors_is_the_connections(
    tmp_path: Path, connection: dict[str, Any], executors: str, is_driver_here: bool
) -> None:
    """Red when the worker's own path is sent to machines that do not have it."""
    variables = submitted(tmp_path, connection)
    assert variables["PYTHONPATH"] == "/code"
    assert variables["PYSPARK_PYTHON"] == executors
    assert variables.get("PYSPARK_DRIVER_PYTHON") == (sys.executable if is_driver_here else None)
