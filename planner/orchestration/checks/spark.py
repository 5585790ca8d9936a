"""The Spark connection: an app of one row is submitted on it, exactly as the tasks submit theirs."""

from collections.abc import Iterator

from planner.orchestration.checks.airflow_process import ask_airflow
from planner.orchestration.checks.result import CheckSettings


def check_spark(settings: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say on which master the app ran, and by which interpreter of the executors. Raises ``OutOfReachError``."""
    report = ask_airflow("spark", settings.spark_s)
    if "problem" in report:
        yield False, report["problem"]
        return
    ran = f"connection {report['connection']}, {report['master']}: a job of one row ran"
    row = report["answer"]
    if row is None:
        yield True, f"{ran}; its driver runs on the cluster, so the executors' interpreter is unknown here"
    else:
        yield True, f"{ran}, executors take {row['interpreter']} (Python {row['python']}, pandas {row['pandas']})"
