"""Tasks that runs of groups have in common, whether these are observed live or replayed from a recording."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from airflow.sdk import get_current_context, task

import planner
from planner.orchestration.forms import LONG, SHORT, optional, result_field
from planner.orchestration.notifying import notify
from planner.orchestration.retries import without_useless_retries
from planner.orchestration.spark import FAILURE, SparkStage
from planner.text.printable import one_line

log = logging.getLogger(__name__)

ROOT: Final = Path(planner.__file__).parents[1]
"""Where the planner and its Spark apps are, installed or in a checkout."""


def spark(history: str = "") -> SparkStage:
    """Return the task that submits all stages between observing and reporting as one app.

    ``history`` is the template of the lag history's URI; an empty one is the folder of the run's data.
    """
    passed = {
        "data": result_field("observe", "data"),
        "policies": result_field("observe", "policies"),
        "at": result_field("observe", "until"),
        "sample-every": result_field("observe", "sample_every_s"),
        "history": history,
        "keep-days": optional("keep_days"),
    }
    return SparkStage(
        task_id="spark",
        task_display_name="From samples to plans (Spark)",
        doc_md="History, snapshot, simulate, decide and plan in one Spark app; its log has the figures of each stage.",
        retries=1,
        retry_delay=timedelta(seconds=20),
        execution_timeout=LONG,
        application=str(ROOT / "spark_apps" / "run" / "app.py"),
        name="consumer-planner-run",
        application_args=[f"--{name}={value}" for name, value in passed.items()],
        code=str(ROOT),
    )


# Where Spark failed, too: status, notices and the run's end then say why no policy has a decision.
@task(
    task_display_name="Name decisions and plans",
    execution_timeout=SHORT,
    trigger_rule="all_done_min_one_success",
    show_return_value_in_logs=False,
)
def plan(ti: Any = None) -> Any:
    """Return what came of every policy, which the log tells in a line each; notify of the plans that were made."""
    from planner.runs.plan import results_of  # noqa: PLC0415
    from planner.storage.run import Run  # noqa: PLC0415

    run = Run.of(ti.xcom_pull(task_ids="observe"))
    with without_useless_retries():
        decided = results_of(run, ti.xcom_pull(task_ids="spark", key=FAILURE))
    for line in decided:
        log.info(one_line(f"{line['policy']}: {line['reason']}"))
    made = [f"{line['policy']}: {line['reason']}" for line in decided if line["plan"]]
    if made:
        notify(get_current_context(), "planned", " ".join(made))
    return list(decided)


@task(task_display_name="Write the pages", execution_timeout=LONG)
def report(params: Any = None, ti: Any = None) -> Any:
    """Write the pages that are asked for; return why there is none, by policy."""
    from planner.runs.pages import write_pages  # noqa: PLC0415
    from planner.storage.run import Run  # noqa: PLC0415

    run = Run.of(ti.xcom_pull(task_ids="observe"))
    with without_useless_retries():
        return dict(write_pages(run, params["pages"]))
