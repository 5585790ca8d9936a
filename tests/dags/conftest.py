"""An Airflow of their own for the tests of this folder."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.errors import OutOfReachError
from planner.orchestration.checks.java import check_java
from scripts.run_local import ROOT, Settings, environment
from tests.clusters.errors import CannotRunHereError
from tests.quick_spark import start_spark_quickly

LOAD = """
import json, sys, time, warnings
from airflow.dag_processing.dagbag import DagBag

DagBag("/dev/null")  # Airflow's own start is not the DAG's
warnings.simplefilter("error")
connects = []
sys.addaudithook(lambda event, values: event == "socket.connect" and connects.append(str(values[1])))
started = time.process_time()
bag = DagBag(r"{folder}")
seconds = time.process_time() - started
dags = [
    dict(
        dag_id=dag.dag_id,
        tags=sorted(dag.tags),
        doc=dag.doc_md,
        display_name=dag.dag_display_name,
        description=dag.description,
        descriptions={{name: dag.params.get_param(name).description for name in dag.params}},
        catchup=dag.catchup,
        max_active_runs=dag.max_active_runs,
        timetable=repr(dag.timetable),
        is_scheduled=dag.timetable.can_be_scheduled,
        params={{name: dag.params.get_param(name).schema for name in dag.params}},
        defaults={{name: dag.params.get_param(name).value for name in dag.params}},
        tasks={{
            task.task_id: dict(
                downstream=sorted(task.downstream_task_ids),
                retries=task.retries,
                doc=task.doc_md,
                display_name=task.task_display_name,
                owner=task.owner,
                notifies=bool(task.on_failure_callback),
                timeout=task.execution_timeout,
                limit=task.execution_timeout or getattr(task, "response_timeout", None),
                kind=type(task).__name__,
                connection=getattr(task, "_conn_id", None),
                application=getattr(task, "application", None),
            )
            for task in dag.tasks
        }},
    )
    for dag in bag.dags.values()
]
errors = {{str(path): text for path, text in bag.import_errors.items()}}
unwanted = {{"pandas", "pyspark", "numpy", "confluent_kafka", "kubernetes", "planner.pipeline", "planner.sources.live"}}
heavy = sorted(unwanted & sys.modules.keys())
known = dict(seconds=seconds, errors=errors, dags=dags, heavy=heavy, connects=connects)
print("LOADED" + json.dumps(known, default=str))
"""


@pytest.fixture(scope="session")
def load_dags(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, Any]]:
    """A function: folder of DAG files -> what Airflow makes of it, loaded in a process of its own.

    Airflow reads its settings once and for all when it is imported, so it is never imported in the tests' process.
    """
    work = tmp_path_factory.mktemp("airflow")

    def load(folder: Path) -> dict[str, Any]:
        settings = Settings(policies=work, capture=work, work=work)
        settings.airflow_home.mkdir(exist_ok=True)
        ended = subprocess.run(
            [sys.executable, "-c", LOAD.format(folder=folder)],
            cwd=ROOT,
            env=os.environ | environment(settings),
            capture_output=True,
            text=True,
            check=False,
        )
        told = [line for line in ended.stdout.splitlines() if line.startswith("LOADED")]
        assert told, ended.stdout + ended.stderr
        loaded: dict[str, Any] = json.loads(told[-1].removeprefix("LOADED"))
        return loaded

    return load


@pytest.fixture(scope="session")
def ours(load_dags: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """What Airflow makes of this repository's DAGs."""
    return load_dags(ROOT / "dags")


@pytest.fixture(scope="session")
def java() -> None:
    """Nothing, on a machine with a Java that Spark can run on; every Spark started from here on is quick to start."""
    try:
        check_java()
    except OutOfReachError as error:
        raise CannotRunHereError("Java", str(error)) from error
    start_spark_quickly()
