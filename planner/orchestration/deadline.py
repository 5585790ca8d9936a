"""The deadline of a scheduled run: one that has not ended in time is an event of its own, for the notifier."""

from collections.abc import Mapping
from typing import Any, Final

from planner.orchestration.notifying import notify

OVER: Final = ("success", "failed")
"""States of a run whose end was notified already, or is nothing to be notified of."""


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
