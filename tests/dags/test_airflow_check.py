"""``planner airflow check`` where a task would run: a real Airflow home, a real Spark job, a real broker."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.run_local import ROOT
from tests.clusters.kafka import KafkaCluster
from tests.sample_builders import kafka_policy

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

LOCAL = {"conn_type": "spark", "host": "local[*]"}
DAG_FILE = "from dags import consumer_planner  # Airflow\n"
APPROVERS = "  approval: {approvers: [ana]}\n"
KUBERNETES = "  kubernetes: {kubeconfigFile: /nowhere/kubeconfig}\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an Airflow home, DAG folder and policies of its own."""
    for name in ("dags", "policies"):
        (tmp_path / name).mkdir()
    (tmp_path / "dags/planner.py").write_text(DAG_FILE)
    return tmp_path


def check(place: Path, data: Path, connection: dict[str, Any] | None, **more: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and answer of the command in an environment with these connection and variables."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")} | {
        "AIRFLOW_HOME": str(place / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(place / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "CONSUMER_PLANNER_DATA": str(data),
        "CONSUMER_PLANNER_POLICIES": str(place / "policies"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **more,
    }
    if connection is not None:
        env["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps(connection)
    command = [sys.executable, "-m", "planner.cli.main", "airflow", "check", "--spark-seconds", "1500"]
    command += ["--format", "json"]
    ended = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    return ended.returncode, json.loads(ended.stdout)


def sentences(answer: dict[str, Any], name: str, *, ok: bool) -> list[str]:
    """Return the sentences of one check that went well, or that did not."""
    return [one["sentence"] for one in answer["checks"] if (one["check"], one["ok"]) == (name, ok)]


@pytest.mark.cluster
@pytest.mark.usefixtures("java")
def test_all_is_well_where_a_task_would_do_well(place: Path, kafka_cluster: KafkaCluster) -> None:
    """Red when Spark runs no row, a group is not read, or something stays in the data folder."""
    kafka_cluster.create_topic("airflow-check", 2)
    kafka_cluster.commit("airflow-check", {("airflow-check", 0): 0})
    (place / "policies/shop.yaml").write_text(kafka_policy(kafka_cluster.bootstrap, "airflow-check"))

    code, answer = check(place, place / "data", LOCAL)

    assert code == 0, answer
    assert (answer["kind"], answer["ok"]) == ("AirflowCheck", True)
    assert list(dict.fromkeys(one["check"] for one in answer["checks"])) == [
        *(
            "airflow",
            "dags",
            "packages",
            "java",
            "spark",
            "storage",
            "policies",
            "approvers",
            "pool",
            "brokers",
            "kubernetes",
        )
    ]
    assert sentences(answer, "dags", ok=True)[0].startswith("consumer_planner: loaded from bundle dags-folder")
    (spark,) = sentences(answer, "spark", ok=True)
    assert spark.startswith(
        f"connection spark_default, local[*]: a job of one row ran, executors take {sys.executable}"
    )
    assert "group airflow-check was read: 0 members on 1 topic" in sentences(answer, "brokers", ok=True)[0]
    assert not (place / "data").exists()


def test_everything_that_is_not_well_is_named_in_one_go(place: Path) -> None:
    """Red when one failure keeps a later check from being run."""
    (place / "dags/planner.py").write_text(f"{DAG_FILE}import consumer_planner_typo\n")
    (place / "policies/shop.yaml").write_text(kafka_policy("127.0.0.1:1", "shop") + KUBERNETES + APPROVERS)
    (place / "policies/wrong.yaml").write_text(kafka_policy("127.0.0.1:1", "other").replace("maxReplicas", "max"))
    (place / "file").write_text("no folder")

    env = {"JAVA_HOME": str(place / "no java"), "CONSUMER_PLANNER_POOL": "brokers"}
    env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] = "admin:admin"
    code, answer = check(place, place / "file" / "data", None, **env)

    assert (code, answer["ok"]) == (1, False)
    assert len(sentences(answer, "airflow", ok=True)) == 1
    (dags,) = sentences(answer, "dags", ok=False)
    assert dags.startswith(f"DAG file {place}/dags/planner.py cannot be imported: ModuleNotFoundError")
    (java,) = sentences(answer, "java", ok=False)
    assert java.startswith(f"Spark needs Java 17 or newer, found none at {place}/no java/bin/java: install it")
    (spark,) = sentences(answer, "spark", ok=False)
    assert spark.startswith("connection spark_default is not defined")
    storage = sentences(answer, "storage", ok=False)
    assert len(storage) == 2
    assert all("cannot be written (Not a directory)" in one for one in storage)
    assert len(sentences(answer, "policies", ok=True)) == 1
    (policy,) = sentences(answer, "policies", ok=False)
    assert f"{place}/policies/wrong.yaml" in policy
    (approvers,) = sentences(answer, "approvers", ok=False)
    assert "approvers ana: nobody can answer, as none is an id of SimpleAuthManager" in approvers
    # This Airflow has no database yet.
    (pool,) = sentences(answer, "pool", ok=False)
    assert pool.startswith("whether pool brokers exists is unknown: ")
    (broker,) = sentences(answer, "brokers", ok=False)
    assert "127.0.0.1:1" in broker
    (kubernetes,) = sentences(answer, "kubernetes", ok=False)
    assert "the kubeconfig /nowhere/kubeconfig cannot be used" in kubernetes


@pytest.mark.usefixtures("java")
def test_executors_without_their_interpreter_are_named_by_a_job_that_fails(place: Path) -> None:
    """Red when the connection's own interpreter is not the one that is tried."""
    script = (
        "import sys; from planner.orchestration.checks.spark import check_spark; "
        "from planner.orchestration.checks import CheckSettings; "
        "print(list(check_spark(CheckSettings('', '', None, 1500.0))))"
    )
    connection = {**LOCAL, "extra": {"python": str(place / "no-python")}}
    env = os.environ | {
        "AIRFLOW_HOME": str(place / "airflow"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert ended.stdout.startswith("[(False, "), ended.stdout + ended.stderr
    assert f"connection spark_default, local[*], whose executors are to run {place}/no-python: " in ended.stdout
