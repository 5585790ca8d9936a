"""How many consumers should every group have, and how does it get there?

One run decides for all policies of a folder, each by itself: a wrong file or a group that does not answer stops nobody
else. The last task, *conclude*, then fails and names each policy that was not served, with its reason. What was decided
is the result of *plan*: policy, counts, reason and the plan's file. Pages and plans lie below the data folder, in
`runs/<run>/<policy>/`. The run's note has the counts.

`observe` reads the policies once, and keeps them in the run's folder: an edit meanwhile counts from the next run on.
`spark` is one Spark app with the stages history, snapshot, simulate, decide and plan; its log has one line a stage with
what was read and written and the seconds, and a failure begins with the stage's name.
To replay a recording, choose the source `recording` and give its folder and times; a backfill can do that, too. A live
run observes the present and is refused for a time that is over.
"""

# Tasks hand each other one message of paths and times, and what they leave lies below the data folder, as
# planner.storage.layout says. The plain tasks are functions of planner.stages, the Spark task is spark_apps/run/app.py
# on the connection spark_default, or what CONSUMER_PLANNER_SPARK_CONNECTION names.

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain, get_current_context, task

from planner.orchestration.connections import airflow_connections
from planner.orchestration.deadline import deadline_of_runs
from planner.orchestration.forms import (
    LOCATIONS,
    LONG,
    OWNER,
    POLICIES,
    POOL,
    SETTINGS,
    SHORT,
    TAGS,
    chosen,
    data_field,
    optional,
    result_field,
    source_field,
    text_field,
    watch_field,
)
from planner.orchestration.notifying import notify, notify_of_failure
from planner.orchestration.present import check_present
from planner.orchestration.retries import without_useless_retries
from planner.orchestration.run_notes import leave_note
from planner.orchestration.spark import SparkStage

if TYPE_CHECKING:
    from planner.stages import RunMessage

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[1]

EVERY = timedelta(minutes=10)
"""From one scheduled run to the next."""

DEADLINE = timedelta(minutes=float(os.environ.get("CONSUMER_PLANNER_DEADLINE_MINUTES", "60")))
"""A run that has not ended so long after it was queued is notified, as is a policy without a decision for so long."""
HOLD_RUNS = int(os.environ.get("CONSUMER_PLANNER_HOLD_RUNS", "36"))
"""A hold with the same cause is notified once it has lasted for so many runs."""

PARAMS = {
    "policies": Param(
        POLICIES,
        type="string",
        minLength=1,
        title="Policies",
        description="Folder of ConsumerScalingPolicy files, or k8s://NAMESPACE. Default: CONSUMER_PLANNER_POLICIES.",
    ),
    "source": source_field("recording", "a folder of planner record, replayed"),
    "recording": text_field("Recording", "Recording: its folder.", section=SETTINGS),
    "since": text_field(
        "Since", "Recording: start, like 2026-11-21T10:00:00Z. Empty: the interval's.", section=SETTINGS
    ),
    "until": text_field("Until", "Recording: end, like 2026-11-21T11:00:00Z. Empty: the interval's.", section=SETTINGS),
    "watch_seconds": watch_field(
        f"the longest window of all policies, {EVERY.total_seconds() / 2:.0f} at most, and earlier runs' history. "
        "Groups that planner sample covers are looked at once"
    ),
    "data": data_field(),
    "history": text_field(
        "Lag history",
        "URI of the lag history, where it is not a folder of data. Default: CONSUMER_PLANNER_HISTORY.",
        os.environ.get("CONSUMER_PLANNER_HISTORY"),
        section=LOCATIONS,
    ),
    "pages": Param(
        os.environ.get("CONSUMER_PLANNER_PAGES", "plans"),
        type="string",
        enum=["all", "plans", "none"],
        title="Pages",
        description="HTML pages: of every decision, of those with a plan, or none; planner report writes one at any "
        "time. Default: CONSUMER_PLANNER_PAGES.",
        section=LOCATIONS,
    ),
    "keep_days": Param(
        int(os.environ.get("CONSUMER_PLANNER_KEEP_DAYS", "30")),
        type="integer",
        minimum=1,
        title="Days to keep",
        description="Days of history, samples, runs and migrations to keep. Default: CONSUMER_PLANNER_KEEP_DAYS.",
        section=LOCATIONS,
    ),
}


@task(
    task_display_name="Observe the groups",
    retries=2,
    retry_delay=timedelta(seconds=20),
    pool=POOL,
    execution_timeout=LONG,
)
def observe(
    params: Any = None,
    dag_run: Any = None,
    logical_date: datetime | None = None,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
) -> "RunMessage":
    """Land raw samples of every policy's group; return the run that the other tasks work on."""
    from planner import stages  # noqa: PLC0415
    from planner.fleet import policy_location  # noqa: PLC0415
    from planner.storage.layout import local_folder  # noqa: PLC0415

    with without_useless_retries():
        policies, data = policy_location(params["policies"]), local_folder(params["data"], "data")
        recording = chosen(params, "recording")
        if recording is None:
            check_present(dag_run.run_type, logical_date)
            # Half of the time at most: a watch holds a worker's slot. Where planner sample runs, it is one read.
            longest_s = EVERY.total_seconds() / 2
            with airflow_connections():
                return stages.observe_live(policies, data, params["watch_seconds"], longest_s).message()
        since, until = params["since"] or data_interval_start, params["until"] or data_interval_end
        return stages.observe_capture(policies, data, local_folder(recording, "recording"), since, until).message()


@task(task_display_name="Name decisions and plans", execution_timeout=SHORT)
def plan(ti: Any = None) -> Any:
    """Return what came of every policy; notify of the plans that were made."""
    from planner import stages  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    with without_useless_retries():
        decided = stages.read_results(run.folder)
    made = [f"{line['policy']}: {line['reason']}" for line in decided if line["plan"]]
    if made:
        notify(get_current_context(), "planned", " ".join(made))
    return list(decided)


@task(task_display_name="Write the pages", execution_timeout=LONG)
def report(params: Any = None, ti: Any = None) -> Any:
    """Write the pages that are asked for; return why there is none, by policy."""
    from planner import stages  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    with without_useless_retries():
        return dict(stages.report(run, params["pages"]))


@task(task_display_name="Name who was not served", execution_timeout=SHORT)
def conclude(params: Any = None, ti: Any = None) -> str:
    """Return what came of the run in counts; fail naming every policy that was not served, with its reason."""
    from planner import stages  # noqa: PLC0415
    from planner.cluster_reports import report_run  # noqa: PLC0415
    from planner.notices import NoticeRules  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    decided, without_page = ti.xcom_pull(task_ids="plan"), ti.xcom_pull(task_ids="report")
    with without_useless_retries():
        without_page |= report_run(run, decided, run.until + EVERY).failures
        leave_note(ti, stages.note(run, decided, without_page))
        if params["source"] == "live":
            age_s = stages.age_at_decision_s(run)
            if age_s is not None:
                log.info("the last decision was written %.0f s after the watch had ended", age_s)
            for event, sentence in stages.notices(run, decided, NoticeRules(HOLD_RUNS, DEADLINE)):
                notify(get_current_context(), event, sentence)
        stages.tidy(run, params["keep_days"])
        return stages.conclude(run, decided, without_page)


def spark() -> SparkStage:
    """Return the task that submits all stages between observing and reporting as one app."""
    passed = {
        "data": result_field("observe", "data"),
        "policies": result_field("observe", "policies"),
        "at": result_field("observe", "until"),
        "sample-every": result_field("observe", "sample_every_s"),
        "history": optional("history"),
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


with DAG(
    "consumer_planner",
    dag_display_name="Consumer planner: decide and plan",
    description="How many consumers should every group have, and how does it get there?",
    schedule=CronDataIntervalTimetable(f"*/{EVERY // timedelta(minutes=1)} * * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    deadline=deadline_of_runs(DEADLINE),
    params=PARAMS,
    tags=TAGS,
    default_args={"owner": OWNER, "on_failure_callback": notify_of_failure},
    doc_md=__doc__,
):
    chain(observe(), spark(), plan(), report(), conclude())
