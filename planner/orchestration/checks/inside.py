"""The process that imports Airflow: ``… -m planner.orchestration.checks.inside ANSWER installation|load-dags|spark``.

What it finds out goes as JSON into the file ANSWER; whatever Airflow and Spark print stays on its output.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import planner

DAG_ID: Final = "consumer_planner"
OURS: Final = re.compile(r"consumer_planner|planner\.orchestration")
"""What a DAG file of ours names."""
ROOT: Final = Path(planner.__file__).parents[1]
"""Where the planner and its Spark apps are, installed or in a checkout."""
_APPS_SENTENCE: Final = re.compile(r"^planner: (.+)$", re.MULTILINE)
_ERROR: Final = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b.*|.*\[[A-Z_]{6,}\].*|.*JAVA_HOME.*")


def load_dags() -> dict[str, Any]:
    """Load the files of every bundle as the DAG processor does; return our DAGs, and errors by file.

    ``others`` counts files with errors that do not name the planner.
    """
    from airflow.dag_processing.bundles.manager import DagBundlesManager  # noqa: PLC0415
    from airflow.dag_processing.dagbag import BundleDagBag  # noqa: PLC0415

    dags: set[str] = set()
    errors: dict[str, str] = {}
    bundles = []
    for bundle in DagBundlesManager().get_all_dag_bundles():
        bundle.initialize()
        bundles.append(f"{bundle.name} ({bundle.path})")
        bag = BundleDagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
        dags |= {dag for dag in bag.dags if dag.startswith(DAG_ID)}
        errors |= {str(Path(bundle.path, path)): _last_line(text) for path, text in bag.import_errors.items()}
    ours = {path: text for path, text in errors.items() if OURS.search(_text_of(Path(path)))}
    return {"dags": sorted(dags), "bundles": bundles, "errors": ours, "others": len(errors) - len(ours)}


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason was given")


def submit_spark() -> dict[str, Any]:
    """Submit the app of one row as the DAG's tasks submit theirs; return master and answer, or what went wrong.

    ``answer`` is ``None`` in the deploy mode ``cluster``, where the driver runs elsewhere.
    """
    from airflow.sdk import Connection  # noqa: PLC0415
    from airflow.sdk.exceptions import AirflowFailException  # noqa: PLC0415

    from planner.orchestration.spark import CONNECTION, SparkStage  # noqa: PLC0415

    answer = Path(sys.argv[1]).with_suffix(".row")
    stage = SparkStage(
        task_id="check",
        application=str(ROOT / "spark_apps" / "check" / "app.py"),
        name="consumer-planner-check",
        application_args=[f"--answer={answer}"],
        code=str(ROOT),
    )
    try:
        stage.execute({})
    except AirflowFailException as error:
        return {"problem": str(error)}
    except Exception as error:
        connection = Connection.get(CONNECTION)
        where = f"connection {CONNECTION}, {_master(connection)}{_interpreter(connection)}"
        return {"problem": f"{where}: {_reason(str(error))}"}
    row = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else None
    return {"connection": CONNECTION, "master": _master(Connection.get(CONNECTION)), "answer": row}


def _master(connection: Any) -> str:
    """Return how the connection names Spark's master, without its account."""
    return f"{connection.host or 'no host'}{f':{connection.port}' if connection.port else ''}"


def _interpreter(connection: Any) -> str:
    """Return which Python the connection names for executors: Java's own words for one that is not there do not."""
    python = connection.extra_dejson.get("python")
    return f", whose executors are to run {python}" if python else ""


def _reason(text: str) -> str:
    """Return why spark-submit failed: the app's own sentence, else the last line that names an error."""
    sentences = _APPS_SENTENCE.findall(text) or [line for line in text.splitlines() if _ERROR.search(line)]
    return sentences[-1].strip() if sentences else _last_line(text)


def describe_installation() -> dict[str, Any]:
    """Return which auth manager is configured, its users where Airflow's settings name them, and the pool's slots."""
    from airflow.configuration import conf  # noqa: PLC0415

    users = conf.getlist("core", "simple_auth_manager_users", fallback=[])
    return {
        "auth_manager": conf.get("core", "auth_manager"),
        "all_admins": conf.getboolean("core", "simple_auth_manager_all_admins", fallback=False),
        "users": [user.partition(":")[0] for user in users],
        "pool": _pool(os.environ.get("CONSUMER_PLANNER_POOL", "default_pool")),
    }


def _pool(name: str) -> dict[str, Any]:
    from airflow.models.pool import Pool  # noqa: PLC0415  no public interface of a task's names pools

    try:
        pool = Pool.get_pool(name)
    except Exception as error:
        return {"problem": _last_line(str(error))}
    return {"slots": None if pool is None else pool.slots}


QUESTIONS: Final = {"installation": describe_installation, "load-dags": load_dags, "spark": submit_spark}


def main() -> None:
    """Find out what the second argument asks for; errors end the process with their trace."""
    Path(sys.argv[1]).write_text(json.dumps(QUESTIONS[sys.argv[2]]()), encoding="utf-8")


if __name__ == "__main__":
    main()
