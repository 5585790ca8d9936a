"""The migration DAG: its form and its shape. Real runs of it are those of the pages, and under a real scheduler."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.unit.test_migration_run import RENAME, UPDATE

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
