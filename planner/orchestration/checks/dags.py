"""Our DAGs, loaded from every bundle that this Airflow is configured with."""

from collections.abc import Iterator
from typing import Final

from planner.orchestration.checks.airflow_process import ask_airflow
from planner.orchestration.checks.result import CheckSettings
from planner.text.words import counted

DAG_ID: Final = "consumer_planner"
LOADED_WITHIN_S: Final = 300.0
LINE: Final = "from consumer_planner_dags import consumer_planner  # Airflow"


def check_dags(_: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say which of our DAGs load, and of each of our files that does not, why. Raises ``OutOfReachError``."""
    report = ask_airflow("load-dags", LOADED_WITHIN_S)
    for path, reason in report["errors"].items():
        yield False, f"DAG file {path} cannot be imported: {reason}: correct it"
    where = f"bundle {', '.join(report['bundles'])}"
    if DAG_ID in report["dags"]:
        others = f"; {counted(report['others'], 'other file')} there cannot be imported" if report["others"] else ""
        yield True, f"{', '.join(report['dags'])}: loaded from {where}{others}"
    elif not report["errors"]:
        yield False, f"{where} has no DAG {DAG_ID}: put a file there with the line {LINE}"
