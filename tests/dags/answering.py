"""Airflow's settings in tests, and its API server, by which a question of a DAG can be answered as a person does."""

import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from scripts.run_local import Settings, environment
from tests.clusters.postgres import Postgres

_T = TypeVar("_T")
PATIENCE_S = 600.0
UNHURRIED_S = 3_600
"""How old a snapshot's data may be where its age is not the matter: a busy machine takes minutes to reach a task."""
WAITING = ("awaiting_input", "deferred")
"""States of a task that has asked and waits for its answer."""


@dataclass(frozen=True)
class AirflowSettings(Settings):
    """Settings of a test's Airflow, and the server of its own database; without one that is a file."""

    database: Postgres | None = None


def settings_in(folder: Path) -> AirflowSettings:
    """Return the settings of an Airflow of its own below the folder."""
    found = AirflowSettings(policies=folder, capture=folder, work=folder)
    found.airflow_home.mkdir(exist_ok=True)
    return found


def airflow_environment(settings: AirflowSettings) -> dict[str, str]:
    """Return the environment of Airflow's processes: whoever asks the API server is its administrator."""
    env = os.environ | environment(settings) | {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True"}
    if settings.database is not None:
        env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = settings.database.url
        env["PYTHONPATH"] += f"{os.pathsep}{settings.database.drivers}"
    return env


def airflow(settings: Settings, *words: str) -> list[str]:
    """Return an Airflow command line."""
    assert settings.airflow_home.exists()
    return [sys.executable, "-m", "airflow", *words]


@dataclass(frozen=True)
class ApiServer:
    """A running API server."""

    url: str

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what it answers."""
        return self._send(method, f"/api/v2{path}", body, {"Authorization": f"Bearer {self._token}"})

    @cached_property
    def _token(self) -> str:
        """The administrator's, which lasts for a day."""
        return str(self._send("GET", "/auth/token")["access_token"])

    def question(self, dag: str) -> dict[str, Any]:
        """Return the open question of a DAG, once there is one whose task waits.

        A question is there a moment before its task's state says so.
        """

        def open_ones() -> Any:
            found = self.ask("GET", f"/dags/{dag}/dagRuns/~/hitlDetails?response_received=false")
            waiting = (one for one in found["hitl_details"] if one["task_instance"]["state"] in WAITING)
            return next(waiting, None)

        found: dict[str, Any] = awaited(open_ones, f"a question of {dag}")
        return found

    def answer(self, question: Mapping[str, Any], option: str, **params: str) -> None:
        """Answer a question."""
        asked = question["task_instance"]
        run, task = asked["dag_run_id"].replace("+", "%2B"), asked["task_id"]
        self.ask(
            "PATCH",
            f"/dags/{asked['dag_id']}/dagRuns/{run}/taskInstances/{task}/{asked['map_index']}/hitlDetails",
            {"chosen_options": [option], "params_input": params},
        )

    def is_up(self) -> bool:
        """True once it answers."""
        try:
            return bool(self._send("GET", "/auth/token"))
        except OSError:
            return False

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        heads = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, data, heads, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def awaited(probe: Callable[[], _T | None], what: str) -> _T:
    """Return what the probe gives once it is something; fail after a long while."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := probe():
            return found
        time.sleep(1.0)
    raise AssertionError(f"{what} did not come within {PATIENCE_S:.0f} s")
