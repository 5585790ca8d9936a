"""What would have been decided for a recorded time? Replay a recording of `planner record`.

Give the recording's folder, and policies for its groups. The stages are those of `consumer_planner`; nothing of the
scheduled runs is touched: samples, history, decisions, plans and pages lie in a data folder of their own, plans are
offered to nobody, and no status is written in a cluster. Several replays may run at once. The last task names each
policy that got no decision, with its reason.
"""

from typing import Any

from airflow.sdk import DAG, chain, task

from planner.orchestration.forms import (
    LONG,
    SETTINGS,
    SHORT,
    STARTED_BY_PEOPLE,
    data_field,
    keep_days_field,
    pages_field,
    policies_field,
    required_field,
    text_field,
)
from planner.orchestration.retries import without_useless_retries
from planner.orchestration.run_notes import leave_note
from planner.orchestration.run_tasks import plan, report, spark

PARAMS = {
    "recording": required_field(
        "Recording", "Folder that planner record has written, readable by the workers.", examples=["/recordings/noon"]
    ),
    "policies": policies_field(),
    "since": text_field(
        "Since", "Start, like 2026-11-21T10:00:00Z. Empty: where the recording begins.", section=SETTINGS
    ),
    "until": text_field("Until", "End, like 2026-11-21T11:00:00Z. Empty: where the recording ends.", section=SETTINGS),
    "data": data_field("replay"),
    "pages": pages_field(),
    "keep_days": keep_days_field(),
}


@task(task_display_name="Replay the recording", execution_timeout=LONG)
def observe(params: Any = None, ti: Any = None) -> Any:
    """Land the recorded samples of every policy's group; return the run that the other tasks work on."""
    from planner.policies.fleet import policy_location  # noqa: PLC0415
    from planner.runs.observe import observe_recording  # noqa: PLC0415
    from planner.storage.layout import local_folder  # noqa: PLC0415

    with without_useless_retries(ti):
        policies, data = policy_location(params["policies"]), local_folder(params["data"], "data")
        recording = local_folder(params["recording"], "recording")
        return observe_recording(policies, data, recording, params["since"], params["until"]).message()


@task(task_display_name="Name who was not served", execution_timeout=SHORT)
def conclude(params: Any = None, ti: Any = None) -> str:
    """Return what came of the run in counts; fail naming each policy that was not served and what was not tidied."""
    from planner.runs.conclude import conclude_run, count_note, tidy_data  # noqa: PLC0415
    from planner.storage.run import Run  # noqa: PLC0415

    run = Run.of(ti.xcom_pull(task_ids="observe"))
    decided, without_page = ti.xcom_pull(task_ids="plan"), ti.xcom_pull(task_ids="report")
    with without_useless_retries():
        leave_note(ti, count_note(run, decided, without_page))
        return conclude_run(run, decided, without_page | tidy_data(run, params["keep_days"]))


with DAG(
    "consumer_planner_replay",
    dag_display_name="Consumer planner: replay a recording",
    description="What would have been decided for a recorded time?",
    schedule=None,
    params=PARAMS,
    doc_md=__doc__,
    **STARTED_BY_PEOPLE,
):
    observed, planned = observe(), plan()
    chain(observed, spark(), planned, report(), conclude())
    # Besides Spark: without a run there is nothing to be said of policies.
    chain(observed, planned)
