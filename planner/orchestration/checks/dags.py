"""Our DAGs, loaded from every bundle that this Airflow is configured with."""

from collections.abc import Iterator
from typing import Final

from planner.orchestration.checks.airflow_process import ask_airflow
from planner.orchestration.checks.result import CheckSettings
from planner.words import counted

DAG_ID: Final = "consumer_planner"
LOADED_WITHIN_S: Final = 300.0
LINE: Final = "from consumer_planner_dags import consumer_planner  # Airflow"


def check_dags(_: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say which of our DAGs load, and of each of our files that does not, why. Raises ``OutOfReachError``."""
    found = ask_airflow("load-dags", LOADED_WITHIN_S)
    for path, reason in found["errors"].items():
        yield False, f"DAG file {path} cannot be imported: {reason}: correct it"
    where = f"bundle {', '.join(found['bundles'])}"
    if DAG_ID in found["dags"]:
        others = f"; {counted(found['others'], 'other file')} there cannot be imported" if found["others"] else ""
        yield True, f"{', '.join(found['dags'])}: loaded from {where}{others}"
    elif not found["errors"]:
        yield False, f"{where} has no DAG {DAG_ID}: put a file there with the line {LINE}"
