"""A whole Airflow as a team runs it: scheduler, triggerer, DAG processor and API server, on loopback."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psutil

from scripts.run_local import ROOT
from tests.clusters.ports import lease_block
from tests.clusters.postgres import running_postgres
from tests.clusters.processes import ManagedProcess, stop_together
from tests.dags.answering import PATIENCE_S, WAITING, AirflowSettings, ApiServer, airflow, airflow_environment, awaited

STOP_S = 20.0
FAILED = ("failed", "upstream_failed")
SLOTS = 1
"""Tasks that can run at once: whatever waits in one has all others wait."""


@dataclass(frozen=True)
class Airflow:
    """A running Airflow; runs are started by ``airflow dags trigger``."""

    settings: AirflowSettings
    server: ApiServer
    scheduler: ManagedProcess
    triggerer: ManagedProcess

    def trigger(self, dag: str, run: str, conf: Mapping[str, Any]) -> None:
        """Start a run as a person does at a terminal."""
        words = airflow(self.settings, "dags", "trigger", dag, "--run-id", run, "--conf", json.dumps(conf))
        env = airflow_environment(self.settings)
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def dags(self) -> dict[str, bool]:
        """Return the DAGs that are known, and whether each is paused."""
        return {one["dag_id"]: one["is_paused"] for one in self.server.ask("GET", "/dags")["dags"]}

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Return the runs of a DAG."""
        found: list[dict[str, Any]] = self.server.ask("GET", f"/dags/{dag}/dagRuns")["dag_runs"]
        return found

    def ended(self, dag: str, run: str) -> str:
        """Return how a run ended, once it has."""

        def state() -> str | None:
            found: str = self.server.ask("GET", f"/dags/{dag}/dagRuns/{run}")["state"]
            return found if found in ("success", "failed") else None

        return awaited(state, f"the end of run {run} of {dag}")

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        """Return a run's tasks by name."""
        return {one["task_id"]: one for one in self._instances(dag, run)}

    def _instances(self, dag: str, run: str) -> list[dict[str, Any]]:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances"
        found: list[dict[str, Any]] = self.server.ask("GET", path)["task_instances"]
        return found

    def await_task(self, dag: str, run: str, task: str, *states: str) -> dict[str, Any]:
        """Return a task as the API server tells it, once it is in one of the states."""

        def there() -> dict[str, Any] | None:
            found = self.tasks(dag, run)
            if found[task]["state"] in states:
                return found[task]
            over = [one["state"] for one in found.values() if one["state"] in FAILED]
            assert not over, f"{task} of {dag} cannot be {states} any more: {self._told(dag, run)}"
            return None

        try:
            return awaited(there, f"{task} of {dag} to be {' or '.join(states)}")
        except AssertionError as error:
            error.add_note(self._told(dag, run))
            raise

    def _told(self, dag: str, run: str) -> str:
        """Return how a run's tasks stand, with the last lines of those that failed and of the scheduler."""
        tasks = self._instances(dag, run)
        lines = [
            f"{one['task_id']} {one['map_index']}: {one['state']}, try {one['try_number']}, {one['start_date']} to "
            f"{one['end_date']}"
            for one in tasks
        ]
        logs = self.settings.airflow_home / "logs" / f"dag_id={dag}" / f"run_id={run}"
        failed = {one["task_id"] for one in tasks if one["state"] in FAILED}
        tails = [log.read_text("utf-8")[-3_000:] for name in failed for log in logs.glob(f"task_id={name}/**/*.log")]
        return "\n".join((*lines, *tails, self.scheduler.output()[-3_000:]))

    def answer(self, dag: str, run: str, option: str, **params: str) -> dict[str, Any]:
        """Answer the open question of a DAG as a person does, who reads it first; return the question."""
        question = self.server.question(dag)
        self.await_noted(dag, run, question["task_instance"]["task_id"])
        self.server.answer(question, option, **params)
        return question

    def await_noted(self, dag: str, run: str, task: str, times: int = 1) -> None:
        """Wait until the scheduler has noted that a task waits, for the ``times``-th time.

        Who answers before that fails the task: apache/airflow#71580.
        """
        self._await_noted(dag, task, f"'{run}'", times)

    def _await_noted(self, dag: str, task: str, run: str, times: int = 1) -> None:
        noted = f"state success for task instance TaskInstanceKey(dag_id='{dag}', task_id='{task}', run_id={run}"
        self.scheduler.wait_until(
            f"note {times} that {task} waits", lambda: self.scheduler.output().count(noted) >= times, PATIENCE_S
        )

    def questions(self, dag: str, run: str, count: int) -> list[dict[str, Any]]:
        """Return the open questions of a run's mapped tasks, once ``count`` of them may be answered."""

        def all_there() -> list[dict[str, Any]] | None:
            path = f"/dags/{dag}/dagRuns/{run}/hitlDetails?response_received=false"
            found = [
                one for one in self.server.ask("GET", path)["hitl_details"] if one["task_instance"]["state"] in WAITING
            ]
            return found if len(found) == count else None

        try:
            found = awaited(all_there, f"{count} questions of {dag}")
        except AssertionError as error:
            error.add_note(self._told(dag, run))
            raise
        for each in (one["task_instance"] for one in found):
            key = f"'{run}', try_number={each['try_number']}, map_index={each['map_index']})"
            self._await_noted(dag, each["task_id"], key)
        return found

    def result(self, dag: str, run: str, task: str) -> Any:
        """Return what a task has returned."""
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
        return self.server.ask("GET", path)["value"]

    def clear(self, dag: str, run: str, *tasks: str) -> None:
        """Clear tasks of a run, as the button does."""
        body = {"dry_run": False, "dag_run_id": run, "task_ids": tasks, "only_failed": False, "reset_dag_runs": True}
        self.server.ask("POST", f"/dags/{dag}/clearTaskInstances", body)


@contextmanager
def running_airflow(settings: AirflowSettings, slots: int = SLOTS) -> Iterator[Airflow]:
    """Give a whole Airflow on the settings' folder; at the end no process of it is left."""
    with running_postgres() as database, _running(replace(settings, database=database), slots) as found:
        yield found


@contextmanager
def _running(settings: AirflowSettings, slots: int) -> Iterator[Airflow]:
    lease = lease_block()
    env = airflow_environment(settings) | {
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{lease.first}/execution/",
        "AIRFLOW__CORE__PARALLELISM": str(slots),
        # No DAG changes here; parsed every 30 s they cost as much as all else that an idle Airflow does.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
        # The first request makes the API server load all that it has: on a busy machine that takes a minute.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(PATIENCE_S),
    }
    port = ("--port", str(lease.first), "--host", "127.0.0.1", "--workers", "1")
    # Logs are read from disk: their servers would listen on all addresses.
    parts = {
        "api-server": port,
        "dag-processor": (),
        "scheduler": ("--skip-serve-logs",),
        "triggerer": ("--skip-serve-logs",),
    }
    made = {
        name: ManagedProcess(name, airflow(settings, name, *words), settings.work, env) for name, words in parts.items()
    }
    with ExitStack() as undo:
        undo.callback(lease.release)
        migrate = airflow(settings, "db", "migrate")
        subprocess.run(migrate, cwd=ROOT, env=env, check=True, capture_output=True)
        undo.callback(_stop, tuple(made.values()))
        for process in made.values():
            process.start()
        server = ApiServer(f"http://127.0.0.1:{lease.first}")
        awaited(server.is_up, "the API server")
        yield Airflow(settings, server, made["scheduler"], made["triggerer"])


def _stop(processes: tuple[ManagedProcess, ...]) -> None:
    begun = [process for process in processes if process.running]
    sessions = [process.pid for process in begun]
    children = [child for pid in sessions for child in psutil.Process(pid).children(recursive=True)]
    stop_together(begun, STOP_S)
    for child in psutil.wait_procs(children, 1.0)[1]:
        child.kill()
