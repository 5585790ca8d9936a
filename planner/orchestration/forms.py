"""What DAG files have in common: how DAGs are run that people start, and the fields that recur in their forms."""

import os
from typing import Any, Final

from airflow.sdk import Param

TAGS: Final = ("consumer-planner",)

STARTED_BY_PEOPLE: Final[dict[str, Any]] = {
    "catchup": False,
    # Runs that people start wait for nobody else's.
    "max_active_runs": 16,
    # Nothing starts them by itself, and a run of a paused DAG would wait for ever without a word.
    "is_paused_upon_creation": False,
    "tags": TAGS,
}
"""Arguments of a DAG without a schedule, which only people or another such DAG start."""


def kubeconfig_field(where: str) -> Param:
    """Return the form's field for a kubeconfig file; ``where`` says in words on which machines it lies."""
    return Param(
        os.environ.get("CONSUMER_PLANNER_KUBECONFIG", ""),
        type="string",
        description=f"kubeconfig file on {where}. Default: CONSUMER_PLANNER_KUBECONFIG; empty: the pod's service "
        "account, or kubectl's own.",
    )


def data_field() -> Param:
    """Return the form's field for the data folder."""
    return Param(
        os.environ.get("CONSUMER_PLANNER_DATA", "/var/lib/consumer-planner"),
        type="string",
        minLength=1,
        description="Folder of samples, history and runs. Default: CONSUMER_PLANNER_DATA.",
    )


def watch_field(default: str) -> Param:
    """Return the form's field for how long live groups are watched; ``default`` says in words what nothing means."""
    return Param(
        None,
        type=["null", "number"],
        minimum=0,
        description=f"Live: how long to watch, a sample every 5 s. Default: {default}.",
    )


def returned(task_id: str, field: str) -> str:
    """Return the template of one field of what a task has returned."""
    return f"{{{{ ti.xcom_pull(task_ids='{task_id}')['{field}'] }}}}"
