"""What DAG files have in common: how DAGs are run that people start, and the fields that recur in their forms.

A field that may stay empty permits ``null``: Airflow's form takes an empty text for a missing value.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from airflow.sdk import Param

from planner.errors import BadInputError
from planner.orchestration.notifying import notify_of_failure
from planner.orchestration.tags import policy_tags

SETTINGS, LOCATIONS = "Observation", "Paths and namespaces"
"""Sections of the forms, below what a run is about."""

OWNER: Final = os.environ.get("CONSUMER_PLANNER_OWNER", "consumer-planner")
POLICIES: Final = os.environ.get("CONSUMER_PLANNER_POLICIES", "/etc/consumer-planner/policies")
"""The folder of policies where a run names no other."""

DATA: Final = os.environ.get("CONSUMER_PLANNER_DATA", "/var/lib/consumer-planner")
"""The data folder where a run names no other."""

TAGS: Final = tuple(
    dict.fromkeys(
        (
            "consumer-planner",
            *filter(None, os.environ.get("CONSUMER_PLANNER_TAGS", "").split(",")),
            *policy_tags(POLICIES, DATA),
        )
    )
)
"""Ours, those of the deployment, and the systems and clusters that the policies name."""

POOL: Final = os.environ.get("CONSUMER_PLANNER_POOL", "default_pool")
"""The pool of tasks that read brokers; one of its own bounds how many do so at once."""

SHORT, LONG = timedelta(minutes=15), timedelta(hours=1)
"""After which a task is ended: one that reads and writes files; one that watches brokers or runs on Spark."""

WINDOW: Final = timedelta(days=1) + SHORT
"""After which a task is ended that watches for a policy's whole window, a day at most."""

STARTED_BY_PEOPLE: Final[dict[str, Any]] = {
    "catchup": False,
    # Runs that people start wait for nobody else's.
    "max_active_runs": 16,
    # Nothing starts them by itself, and a run of a paused DAG would wait for ever without a word.
    "is_paused_upon_creation": False,
    "tags": TAGS,
    "default_args": {"owner": OWNER, "on_failure_callback": notify_of_failure},
}
"""Arguments of a DAG without a schedule, which only people or another such DAG start."""


def text_field(title: str, description: str, default: str | None = None, **schema: Any) -> Param:
    """Return a field of the form for a text that may stay empty."""
    return Param(default or None, description=description, type=["null", "string"], title=title, **schema)


def required_field(title: str, description: str, **schema: Any) -> Param:
    """Return a field of the form for a text that the run is about."""
    return Param(type="string", minLength=1, title=title, description=description, **schema)


def kubeconfig_field(where: str) -> Param:
    """Return the form's field for a kubeconfig file; ``where`` says in words on which machines it lies."""
    return text_field(
        "kubeconfig",
        f"File on {where}. Default: CONSUMER_PLANNER_KUBECONFIG; empty: the pod's service account, or kubectl's own.",
        os.environ.get("CONSUMER_PLANNER_KUBECONFIG"),
        section=LOCATIONS,
    )


def kubeconfig_of(params: Mapping[str, Any]) -> Path | None:
    """Return the kubeconfig file that a run names, ``None`` for the pod's own account or kubectl's own file."""
    return Path(params["kubeconfig"]) if params["kubeconfig"] else None


def namespace_field(default: str) -> Param:
    """Return the form's field for a namespace; ``default`` says in words whose an empty one is."""
    return text_field("Namespace", f"Namespace of the plan. Empty: {default}.", section=LOCATIONS, minLength=1)


def data_field(below: str = "") -> Param:
    """Return the form's field for the data folder, or for a folder ``below`` it that keeps other data apart."""
    return Param(
        f"{DATA}/{below}" if below else DATA,
        type="string",
        minLength=1,
        title="Data folder",
        description="Folder of samples, history and runs, mounted on every worker. Default: "
        f"{f'{below} in ' if below else ''}CONSUMER_PLANNER_DATA.",
        section=LOCATIONS,
    )


def policies_field() -> Param:
    """Return the form's field for where policies are."""
    return Param(
        POLICIES,
        type="string",
        minLength=1,
        title="Policies",
        description="Folder of ConsumerScalingPolicy files, or k8s://NAMESPACE. Default: CONSUMER_PLANNER_POLICIES.",
    )


def pages_field() -> Param:
    """Return the form's field for which decisions get a page."""
    return Param(
        os.environ.get("CONSUMER_PLANNER_PAGES", "plans"),
        type="string",
        enum=["all", "plans", "none"],
        title="Pages",
        description="HTML pages: of every decision, of those with a plan, or none; planner report writes one at any "
        "time. Default: CONSUMER_PLANNER_PAGES.",
        section=LOCATIONS,
    )


def keep_days_field() -> Param:
    """Return the form's field for how long what runs leave is kept."""
    return Param(
        int(os.environ.get("CONSUMER_PLANNER_KEEP_DAYS", "30")),
        type="integer",
        minimum=1,
        title="Days to keep",
        description="Days of history, samples, runs and the like to keep. Default: CONSUMER_PLANNER_KEEP_DAYS.",
        section=LOCATIONS,
    )


def source_field(other: str, what: str) -> Param:
    """Return the form's field for where samples come from: the brokers, or ``other``, which is ``what`` in words."""
    return Param(
        "live",
        type="string",
        enum=["live", other],
        title="Source",
        description=f"live: the brokers themselves. {other}: {what}.",
        section=SETTINGS,
    )


def watch_field(default: str) -> Param:
    """Return the form's field for how long live groups are watched; ``default`` says in words what nothing means."""
    return Param(
        None,
        type=["null", "number"],
        minimum=0,
        title="Seconds to watch",
        description=f"With the source live: how long to watch, a sample every 5 s. Empty: {default}.",
        section=SETTINGS,
    )


def chosen(params: Mapping[str, Any], other: str) -> str | None:
    """Return the path of a run whose source is ``other``, ``None`` for a live one.

    Raises ``BadInputError`` where source and path disagree: nobody could say which of them is meant.
    """
    source, path = params["source"], params[other]
    if (source == other) != bool(path):
        raise BadInputError(
            f"source is {source} and {other} is {path or 'empty'}: choose source {other} and give its path, or source "
            f"live and leave {other} empty"
        )
    return path or None


def result_field(task_id: str, field: str) -> str:
    """Return the template of one field of what a task has returned."""
    return f"{{{{ ti.xcom_pull(task_ids='{task_id}')['{field}'] }}}}"


def optional(param: str) -> str:
    """Return the template of a param that may be empty: an empty text for ``null``."""
    return f"{{{{ params.{param} or '' }}}}"
