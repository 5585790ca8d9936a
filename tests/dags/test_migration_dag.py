"""The migration DAG: its form, its shape, and real runs whose question is answered through a real API server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from planner.documents.approve import CONFIRM_ANNOTATION, approval_of, digest_in
from planner.documents.plan import read_document
from scripts.run_local import ROOT
from tests.dags.answering import (
    PATIENCE_S,
    UNHURRIED_S,
    ApiServer,
    airflow,
    airflow_environment,
    api_server,
    awaited,
    settings_in,
)
from tests.unit.cli.test_migrate_cli import files
from tests.unit.test_migration_run import RENAME, TYPED, UPDATE, fresh

pytestmark = pytest.mark.airflow

DAG = "consumer_planner_migration"


def migration_dag(loaded: dict[str, Any]) -> dict[str, Any]:
    (dag,) = [dag for dag in loaded["dags"] if dag["dag_id"] == DAG]
    found: dict[str, Any] = dag
    return found


def test_nothing_is_handed_over_before_a_person_said_yes(ours: dict[str, Any]) -> None:
    tasks = migration_dag(ours)["tasks"]
    assert {name: task["downstream"] for name, task in tasks.items()} == {
        "check": ["observe"],
        "observe": ["plan"],
        "plan": ["ask"],
        "ask": ["approve"],
        "approve": ["apply"],
        "apply": [],
    }
    kinds = {name: task["kind"] for name, task in tasks.items()}
    assert (kinds["ask"], kinds["apply"]) == ("AskApproval", "TriggerDagRunOperator")


@pytest.mark.parametrize(
    ("param", "good", "bad"),
    [
        (
            "migration",
            [UPDATE, RENAME, {"kind": "expand", "topic": "t", "queues": 12}],
            [{}, None, "update", {"kind": 1}],
        ),
        ("policy", ["/x.yaml"], ["", None]),
        ("source", ["live", "snapshot"], ["dead", {}, None, {"snapshot": "/x"}]),
        ("snapshot", [None, "/x"], [1]),
        ("watch_seconds", [None, 0, 30.5], [-1, "long"]),
        ("namespace", [None, "shop"], ["", 1]),
        ("data", ["/x"], ["", None]),
        ("kubeconfig", [None, "", "/x"], [1]),
    ],
)
def test_the_form_refuses_what_no_task_could_use(
    ours: dict[str, Any], param: str, good: list[Any], bad: list[Any]
) -> None:
    validator = Draft202012Validator(migration_dag(ours)["params"][param])
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


class Place:
    """A folder with an Airflow of its own, and an API server on its database."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.folder, self.server, self.settings = folder, server, settings_in(folder)

    def run(self, name: str, migration: dict[str, Any], answer: str, **params: str) -> tuple[str, Path]:
        """Run the DAG by ``airflow dags test``, answer its question; return its state and where its files are."""
        inputs = self.folder / name
        snapshot, policy = files(inputs, fresh(), UNHURRIED_S)
        conf = {"policy": str(policy), "data": str(inputs / "data"), "source": "snapshot"}
        conf |= {"snapshot": str(snapshot)}
        with (inputs / "run.log").open("wb") as log:
            running = subprocess.Popen(
                airflow(self.settings, "dags", "test", DAG, "-c", json.dumps({**conf, "migration": migration})),
                cwd=ROOT,
                env=airflow_environment(self.settings),
                stdout=log,
                stderr=log,
            )
            try:
                question = self.server.question(DAG)
                assert "Step 1: " in question["body"]
                assert approval_of(read_document(self.plan(inputs))) is None
                self.server.answer(question, answer, **params)
                running.wait(PATIENCE_S)
            finally:
                running.kill()
                running.wait()
        (run,) = [one for one in self.runs(DAG) if one["conf"]["policy"] == str(policy)]
        return run["state"], inputs

    def plan(self, inputs: Path) -> Path:
        """Return the plan that was written."""
        (plan,) = (inputs / "data" / "migrations").glob("*/*/plan.yaml")
        return plan

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Return the runs of a DAG."""
        found: list[dict[str, Any]] = self.server.ask("GET", f"/dags/{dag}/dagRuns")["dag_runs"]
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("migration")
    settings = settings_in(folder)
    env = airflow_environment(settings)
    subprocess.run(airflow(settings, "db", "migrate"), cwd=ROOT, env=env, check=True, capture_output=True)
    with api_server(settings) as server:
        yield Place(folder, server)


@pytest.mark.timeout(2_700)
def test_a_yes_with_its_phrase_approves_the_plan_and_triggers_the_apply_dag(place: Place) -> None:
    state, inputs = place.run("yes", RENAME, "Approve", confirm=TYPED)
    assert state == "success", (inputs / "run.log").read_text()[-4000:]
    document = read_document(place.plan(inputs))
    assert approval_of(document) == digest_in(document)
    assert document["metadata"]["annotations"][CONFIRM_ANNOTATION] == TYPED
    (applied,) = awaited(lambda: place.runs("consumer_planner_apply"), "a run of the apply DAG")
    assert applied["conf"]["plan"] == str(place.plan(inputs))
    assert (applied["conf"]["namespace"], applied["conf"]["approve"]) == ("shop", "already")


@pytest.mark.timeout(2_700)
def test_a_no_leaves_the_plan_unapproved_and_hands_nothing_over(place: Place) -> None:
    before = len(place.runs("consumer_planner_apply"))
    state, inputs = place.run("no", UPDATE, "Reject")
    assert state == "success", (inputs / "run.log").read_text()[-4000:]
    assert approval_of(read_document(place.plan(inputs))) is None
    assert len(place.runs("consumer_planner_apply")) == before
