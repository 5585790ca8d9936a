"""The deadline of a scheduled run: one that has not ended in time is an event of its own, for the notifier."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from airflow.sdk import (  # type: ignore[attr-defined]  # Airflow 3.3.2 left the deadlines out of its types
    DeadlineAlert,
    DeadlineReference,
    SyncCallback,
)

from planner.orchestration.notifying import SETTING, notify

OVER: Final = ("success", "failed")
"""States of a run whose end was notified already, or is nothing to be notified of."""


def deadline_of_runs(after: timedelta) -> Any | None:
    """Return the alert on runs that have not ended ``after`` they were queued, ``None`` where nobody is notified.

    ``airflow dags test`` of Airflow 3.3.2 fails on every DAG that has a deadline
    (``DagRun``, ``DeadlineAlertModel.get_by_id`` of one that is not stored).
    """
    if not os.environ.get(SETTING):
        return None
    return DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, after, SyncCallback(notify_of_late_run))


def notify_of_late_run(context: Mapping[str, Any]) -> None:
    """Notify of a run that goes on past its deadline: the callback of its ``DeadlineAlert``, run by an executor.

    Airflow calls it for a run that has failed in time, too: that was notified when it failed.
    """
    run = context["dag_run"]
    if run["state"] in OVER:
        return
    sentence = (
        f"run {run['dag_run_id']} has not ended: it is {run['state']} since {run['queued_at'] or run['run_after']}, "
        "and meanwhile no policy has a new decision. See which of its tasks waits or hangs."
    )
    notify(context, "overdue", sentence)
