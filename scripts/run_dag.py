"""The process that Airflow runs in for ``make run`` and ``make demo``: ``… -m scripts.run_dag EVENTS [CONF [DAG]]``.

EVENTS is a file descriptor to which one JSON line goes as each task begins and ends; CONF is the run's conf as JSON.
Everything else that is said here is noise for the log file. Without DAG it is the scheduled one. Without CONF it runs
one DAG after the other as told, ``{"dag": …, "conf": …}`` a line, says with the event ``ended`` how each run ended, and
goes when its standard input is closed: Airflow wakes up once.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow import __version__
from airflow.listeners import hookimpl

from planner.orchestration.spark import failure_of

DAG_ID = "consumer_planner"
_EXIT_CODE = re.compile(r"Error code is: (\d+)")


class Events:
    """A listener that writes an event for each task that begins, ends well or fails."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8", buffering=1)
        # Tasks must not inherit it: the reader waits until the last writer is gone.
        os.set_inheritable(descriptor, False)

    def tell(self, event: str, stage: str, **more: Any) -> None:
        """Write one event."""
        self._stream.write(json.dumps({"event": event, "stage": stage, **more}) + "\n")

    @hookimpl
    def on_task_instance_running(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """A task begins."""
        self.tell("begun", task_instance.task_id)

    @hookimpl
    def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """A task is done."""
        self.tell("done", task_instance.task_id)

    @hookimpl
    def on_task_instance_failed(self, previous_state: Any, task_instance: Any, error: Any) -> None:  # noqa: ARG002
        """A task failed for good."""
        sentence, code = reason_of(error)
        self.tell("failed", task_instance.task_id, sentence=sentence, code=code)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Tell a stage that is not a task."""
        self.tell("begun", name)
        try:
            yield
        except BaseException as error:
            self.tell("failed", name, sentence=str(error) or type(error).__name__, code=1)
            raise
        self.tell("done", name)


def reason_of(error: object) -> tuple[str, int]:
    """Return why a task failed as one sentence, and the exit code that goes with it.

    A Spark app says its sentence in the output that the operator quotes; ours are raised with their exit code.
    """
    text = str(error)
    if stated := _EXIT_CODE.search(text):
        return failure_of(error), int(stated[1])
    code = getattr(getattr(error, "__cause__", None), "exit_code", None) or getattr(error, "exit_code", 1)
    return failure_of(error), int(code)


def prepare_database() -> None:
    """Make Airflow's database in AIRFLOW_HOME, unless this version of Airflow already made it to the end."""
    home = Path(os.environ["AIRFLOW_HOME"])
    made_by = home / "database-made-by"
    if made_by.exists() and made_by.read_text(encoding="utf-8") == __version__:
        return
    for left_over in home.glob("airflow.db*"):
        left_over.unlink()
    from airflow.utils.db import initdb

    initdb()
    made_by.write_text(__version__, encoding="utf-8")


def load_dags() -> Any:
    """Return all DAGs by name, as Airflow loads them. Raises ``RuntimeError`` with Airflow's words when one cannot."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    if bag.import_errors:
        raise RuntimeError("; ".join(bag.import_errors.values()))
    return bag.dags


def warm_up() -> None:
    """Have the API ready that ``dag.test`` serves its tasks by, before the first order comes."""
    from airflow.sdk.execution_time.supervisor import in_process_api_server

    _ = in_process_api_server().app


def run(dag: Any, conf: Mapping[str, Any]) -> bool:
    """Run a DAG to its end; return whether all its tasks did well."""
    at = datetime.fromisoformat(conf["until"]) if "until" in conf else datetime.now(UTC)
    return bool(dag.test(logical_date=at, run_conf=conf).state == "success")


def main() -> int:
    """Run one DAG, or those that are told; return 0 when all their tasks did well."""
    from airflow.sdk.listener import get_listener_manager

    events = Events(int(sys.argv[1]))
    with events.stage("prepare"):
        prepare_database()
        dags = load_dags()
        get_listener_manager().add_listener(events)
    if len(sys.argv) > 2:
        return 0 if run(dags[sys.argv[3] if len(sys.argv) > 3 else DAG_ID], json.loads(sys.argv[2])) else 1
    is_good = True
    warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        did_well = run(dags[order["dag"]], order["conf"])
        events.tell("ended", order["dag"], is_good=did_well)
        is_good = is_good and did_well
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
