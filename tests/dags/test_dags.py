"""All DAGs: they load, keep the house rules, have their shape."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scripts.run_local import ROOT, STAGES

pytestmark = pytest.mark.airflow


def planner_dag(loaded: dict[str, Any]) -> dict[str, Any]:
    """Return what was loaded of the scheduled DAG."""
    (dag,) = [dag for dag in loaded["dags"] if dag["dag_id"] == "consumer_planner"]
    found: dict[str, Any] = dag
    return found


def test_dags_load_without_errors_or_warnings(ours: dict[str, Any]) -> None:
    assert ours["errors"] == {}
    assert len(ours["dags"]) == len(list((ROOT / "dags").glob("[!_]*.py")))


def test_parse_time_is_told(ours: dict[str, Any], record_property: Any) -> None:
    record_property("parse_seconds", ours["seconds"])
    print(f"parsing the DAGs took {ours['seconds']:.3f} s of the processor")


def test_parsing_loads_nothing_heavy_and_asks_nobody(ours: dict[str, Any]) -> None:
    """An Airflow of many DAGs parses them again and again: no broker, API server or other host is spoken to for it."""
    assert ours["heavy"] == []
    assert ours["connects"] == []


def test_every_dag_keeps_the_house_rules(ours: dict[str, Any]) -> None:
    for dag in ours["dags"]:
        assert "consumer-planner" in dag["tags"], dag["dag_id"]
        assert dag["doc"], dag["dag_id"]
        assert dag["catchup"] is False, dag["dag_id"]
        assert dag["display_name"] != dag["dag_id"]
        assert dag["description"], dag["dag_id"]
        for name, task in dag["tasks"].items():
            assert task["doc"], name
            assert task["display_name"] != name
            assert task["owner"] == "consumer-planner", name
            assert task["notifies"], name
            # A question waits for as long as its own limit says.
            assert (task["timeout"] is None) == (task["kind"] in ("AskApproval", "AskForOffer")), name
            assert task["limit"], name
        for name, schema in dag["params"].items():
            assert schema["title"], name
            assert dag["descriptions"][name] or schema["description_md"], name
        # A schedule's runs follow each other; runs that people start, or that wait for people, wait for nobody else's.
        waits_for_people = dag["dag_id"] == "consumer_planner_approval"
        assert (dag["max_active_runs"] == 1) == (dag["is_scheduled"] and not waits_for_people), dag["dag_id"]


@pytest.mark.parametrize(
    ("param", "good", "bad"),
    [
        ("source", ["live", "recording"], ["dead", {}, None, {"capture": "/x"}]),
        ("recording", [None, "/x"], [1]),
        ("policies", ["/x"], ["", None]),
        ("data", ["/x"], ["", 1]),
        ("history", [None, "", "hdfs:///planner/history"], [1]),
        ("keep_days", [1, 30], [0, None, 1.5]),
        ("pages", ["all", "plans", "none"], ["some", None, True]),
        ("since", [None, "2026-11-21T10:00:00Z"], [1]),
        ("until", [None, "2026-11-21T10:00:00Z"], [1]),
        ("watch_seconds", [None, 0, 30.5], [-1, "long"]),
    ],
)
def test_params_refuse_what_no_task_could_use(
    ours: dict[str, Any], param: str, good: list[Any], bad: list[Any]
) -> None:
    validator = Draft202012Validator(planner_dag(ours)["params"][param])
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


def test_all_params_are_checked(ours: dict[str, Any]) -> None:
    names = [
        "data",
        "history",
        "keep_days",
        "pages",
        "policies",
        "recording",
        "since",
        "source",
        "until",
        "watch_seconds",
    ]
    assert sorted(planner_dag(ours)["params"]) == names


def test_shape(ours: dict[str, Any]) -> None:
    tasks = planner_dag(ours)["tasks"]
    assert {name: task["downstream"] for name, task in tasks.items()} == {
        # Where Spark fails, plan says so of every policy; where observe does, there is no run to speak of.
        "observe": ["plan", "spark"],
        "spark": ["plan"],
        "plan": ["report"],
        "report": ["offer"],
        "offer": ["conclude"],
        "conclude": [],
    }


def test_a_replay_has_no_schedule_and_nothing_of_the_scheduled_runs(ours: dict[str, Any]) -> None:
    (replay,) = [dag for dag in ours["dags"] if dag["dag_id"] == "consumer_planner_replay"]
    assert not replay["is_scheduled"]
    assert {name: task["downstream"] for name, task in replay["tasks"].items()} == {
        "observe": ["plan", "spark"],
        "spark": ["plan"],
        "plan": ["report"],
        "report": ["conclude"],
        "conclude": [],
    }
    assert sorted(replay["params"]) == ["data", "keep_days", "pages", "policies", "recording", "since", "until"]
    scheduled = planner_dag(ours)
    assert replay["defaults"]["data"] == f"{scheduled['defaults']['data']}/replay"
    validator = Draft202012Validator(replay["params"]["recording"])
    assert [value for value in ("", None, 1) if validator.is_valid(value)] == []


def test_only_what_a_second_try_may_help_is_tried_again(ours: dict[str, Any]) -> None:
    retries = {name: task["retries"] for name, task in planner_dag(ours)["tasks"].items() if task["retries"]}
    assert retries == {"observe": 2, "spark": 1}
    questions = {
        (name, task["retries"])
        for dag in ours["dags"]
        for name, task in dag["tasks"].items()
        if task["kind"] in ("AskApproval", "AskForOffer")
    }
    assert questions == {("ask", 2), ("person.ask", 2)}


def test_a_run_submits_one_spark_app_and_its_file_exists(ours: dict[str, Any]) -> None:
    tasks = planner_dag(ours)["tasks"]
    (name,) = [name for name, task in tasks.items() if task["kind"] == "SparkStage"]
    assert (name, tasks[name]["connection"]) == ("spark", "spark_default")
    assert tasks[name]["application"] == str(ROOT / "spark_apps" / "run" / "app.py")
    assert (ROOT / "spark_apps" / "run" / "app.py").exists()


def test_it_is_scheduled_every_ten_minutes(ours: dict[str, Any]) -> None:
    assert "*/10 * * * *" in planner_dag(ours)["timetable"] or "CronDataInterval" in planner_dag(ours)["timetable"]


def test_make_run_tells_every_task_in_order(ours: dict[str, Any]) -> None:
    tasks, told, following = planner_dag(ours)["tasks"], ["prepare"], ["observe"]
    while following:
        told += following
        following = [name for name in tasks[told[-1]]["downstream"] if (told[-1], name) != ("observe", "plan")]
    assert told == list(STAGES)


def test_a_dag_that_cannot_be_loaded_is_found(load_dags: Any, tmp_path: Any) -> None:
    (tmp_path / "broken.py").write_text("from airflow.sdk import DAG\nimport nowhere\n", encoding="utf-8")
    assert "nowhere" in next(iter(load_dags(tmp_path)["errors"].values()))
