"""How many consumers should every group have, and how does it get there?

One run decides for all policies of a folder, each by itself: a wrong file or a group that does not answer stops nobody
else. The last task, *conclude*, then fails and names each policy that was not served, with its reason. What was decided
is the result of *plan*: policy, counts, reason and the plan's file. Pages and plans lie below the data folder, in
`runs/<run>/<policy>/`. The run's note has the counts.

`observe` reads the policies once, and keeps them in the run's folder: an edit meanwhile counts from the next run on.
To replay a recording, choose the source `recording` and give its folder and times; a backfill can do that, too. A live
run observes the present and is refused for a time that is over.
"""

# Tasks hand each other one message of paths and times, and what they leave lies below the data folder, as
# planner.storage.layout says. The plain tasks are functions of planner.stages, the Spark tasks are
# spark_apps/<task>/app.py on the connection spark_default, or what CONSUMER_PLANNER_SPARK_CONNECTION names.

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain, get_current_context, task

from planner.orchestration.connections import airflow_connections
from planner.orchestration.deadline import deadline_of_runs
from planner.orchestration.forms import (
    LONG,
    OWNER,
    PLACES,
    POLICIES,
    POOL,
    SETTINGS,
    SHORT,
    TAGS,
    chosen,
    data_field,
    optional,
    returned,
    source_field,
    text_field,
    watch_field,
)
from planner.orchestration.notifying import notify, notify_of_failure
from planner.orchestration.present import check_present
from planner.orchestration.retries import without_hopeless_retries
from planner.orchestration.run_notes import leave_note
from planner.orchestration.spark import SparkStage

if TYPE_CHECKING:
    from planner.stages import RunMessage

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
        f"the longest window of all policies, {EVERY.total_seconds() / 2:.0f} at most, and earlier runs' history"
    ),
    "data": data_field(),
    "history": text_field(
        "Lag history",
        "URI of the lag history, where it is not a folder of data. Default: CONSUMER_PLANNER_HISTORY.",
        os.environ.get("CONSUMER_PLANNER_HISTORY"),
        section=PLACES,
    ),
    "keep_days": Param(
        int(os.environ.get("CONSUMER_PLANNER_KEEP_DAYS", "30")),
        type="integer",
        minimum=1,
        title="Days to keep",
        description="Days of history, samples, runs and migrations to keep. Default: CONSUMER_PLANNER_KEEP_DAYS.",
        section=PLACES,
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

    with without_hopeless_retries():
        policies, data = policy_location(params["policies"]), local_folder(params["data"], "data")
        recording = chosen(params, "recording")
        if recording is None:
            check_present(dag_run.run_type, logical_date)
            # Half of the time at most: a watch holds a worker's slot.
            longest_s = EVERY.total_seconds() / 2
            with airflow_connections():
                return stages.observe_live(policies, data, params["watch_seconds"], longest_s).message()
        since, until = params["since"] or data_interval_start, params["until"] or data_interval_end
        return stages.observe_capture(policies, data, local_folder(recording, "recording"), since, until).message()


@task(task_display_name="Write the plans", execution_timeout=LONG)
def plan(ti: Any = None) -> Any:
    """Write the plan of every decision to scale; return what came of every policy."""
    from planner import stages  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    with without_hopeless_retries():
        decided = stages.plan(run)
    made = [f"{line['policy']}: {line['reason']}" for line in decided if line["plan"]]
    if made:
        notify(get_current_context(), "planned", " ".join(made))
    return list(decided)


@task(task_display_name="Write the pages", execution_timeout=LONG)
def report(ti: Any = None) -> Any:
    """Write one page for every decision; return why there is none, by policy."""
    from planner import stages  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    with without_hopeless_retries():
        return dict(stages.report(run))


@task(task_display_name="Name who was not served", execution_timeout=SHORT)
def conclude(params: Any = None, ti: Any = None) -> str:
    """Return what came of the run in counts; fail naming every policy that was not served, with its reason."""
    from planner import stages  # noqa: PLC0415
    from planner.cluster_reports import report_run  # noqa: PLC0415
    from planner.notices import NoticeRules  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    decided, without_page = ti.xcom_pull(task_ids="plan"), ti.xcom_pull(task_ids="report")
    with without_hopeless_retries():
        without_page |= report_run(run, decided, run.until + EVERY).failures
        leave_note(ti, stages.note(run, decided, without_page))
        if params["source"] == "live":
            for event, sentence in stages.notices(run, decided, NoticeRules(HOLD_RUNS, DEADLINE)):
                notify(get_current_context(), event, sentence)
        stages.tidy(run, params["keep_days"])
        return stages.conclude(run, decided, without_page)


def spark(task_id: str, display_name: str, doc: str, params: tuple[str, ...] = (), **arguments: str) -> SparkStage:
    """Return the task that submits ``spark_apps/<task_id>/app.py``; ``display_name`` and ``doc`` are for people.

    Each argument is a field of the run's message; params are passed on under their own names.
    """
    passed = [_argument(name, returned("observe", field)) for name, field in arguments.items()]
    passed += [_argument(name, optional(name)) for name in params]
    return SparkStage(
        task_id=task_id,
        task_display_name=display_name,
        doc_md=doc,
        retries=1,
        retry_delay=timedelta(seconds=20),
        execution_timeout=LONG,
        application=str(ROOT / "spark_apps" / task_id / "app.py"),
        name=f"consumer-planner-{task_id}",
        application_args=passed,
        code=str(ROOT),
    )


def _argument(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')}={value}"


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
    chain(
        observe(),
        spark(
            "history",
            "Add to the lag history (Spark)",
            "From raw samples to the lag history.",
            ("history", "keep_days"),
            data="data",
            until="until",
            sample_every="sample_every_s",
        ),
        spark(
            "snapshot",
            "Take the snapshots (Spark)",
            "What is true of every group, from history and newest sample.",
            ("history",),
            data="data",
            policies="policies",
            at="until",
        ),
        spark(
            "simulate",
            "Simulate every count (Spark)",
            "What every useful count of consumers would mean.",
            data="data",
            policies="policies",
            at="until",
        ),
        spark(
            "decide",
            "Decide (Spark)",
            "Scale or hold, and why, for each policy.",
            data="data",
            policies="policies",
            at="until",
        ),
        plan(),
        report(),
        conclude(),
    )
