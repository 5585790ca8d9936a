"""How many consumers should every group have, and how does it get there?

One run decides for all policies of a folder, each by itself: a wrong file or a group that does not answer stops nobody
else. The last task, *conclude*, then fails and names each policy that was not served, with its reason. What was decided
is the result of *plan*: policy, counts, reason and the plan's file. Pages and plans lie below the data folder, in
`runs/<run>/<policy>/`. The run's note has the counts. *offer* makes an event of the asset `consumer_planner_plans` for
each plan, by which `consumer_planner_approval` asks people.

`observe` reads the policies once, and keeps them in the run's folder: an edit meanwhile counts from the next run on.
`spark` is one Spark app with the stages history, snapshot, simulate, decide, plan and tidy; its log has one line a
stage with what was read and written and the seconds, and a failure begins with the stage's name. The tasks after it run
then, too: no policy has a decision, its status says why, and *conclude* fails.
A live run observes the present and is refused for a time that is over. To replay a recording, start
`consumer_planner_replay`, which keeps its data apart and takes no place in the schedule; the source `recording` of this
DAG is for backfills and `make run`: give it a data folder of its own.
"""

# Tasks hand each other one message of paths and times, and what they leave lies below the data folder, as
# planner.storage.layout says. The plain tasks are functions of planner.runs, the Spark task is spark_apps/run/app.py
# on the connection spark_default, or what CONSUMER_PLANNER_SPARK_CONNECTION names.

import logging
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronDataIntervalTimetable, chain, get_current_context, task

from planner.orchestration.assets import OFFERS, add_events
from planner.orchestration.connections import airflow_connections
from planner.orchestration.deadline import deadline_of_runs
from planner.orchestration.forms import (
    LOCATIONS,
    LONG,
    OWNER,
    POOL,
    SETTINGS,
    SHORT,
    TAGS,
    chosen,
    data_field,
    keep_days_field,
    optional,
    pages_field,
    policies_field,
    source_field,
    text_field,
    watch_field,
)
from planner.orchestration.notifying import notify, notify_of_failure
from planner.orchestration.period import cron_of, run_period
from planner.orchestration.present import check_present
from planner.orchestration.retries import without_useless_retries
from planner.orchestration.run_notes import leave_note
from planner.orchestration.run_tasks import plan, report, spark

if TYPE_CHECKING:
    from planner.storage.run import RunMessage

log = logging.getLogger(__name__)

EVERY = run_period()
"""From one scheduled run to the next."""

DEADLINE = timedelta(minutes=float(os.environ.get("CONSUMER_PLANNER_DEADLINE_MINUTES", "60")))
"""A run that has not ended so long after it was queued is notified, as is a policy without a decision for so long."""
HOLD_RUNS = int(os.environ.get("CONSUMER_PLANNER_HOLD_RUNS", "36"))
"""A hold with the same cause is notified once it has lasted for so many runs."""

PARAMS = {
    "policies": policies_field(),
    "source": source_field("recording", "a folder of planner record, replayed"),
    "recording": text_field(
        "Recording", "With the source recording: the folder that planner record has written.", section=SETTINGS
    ),
    "since": text_field(
        "Since", "With the source recording: start, like 2026-11-21T10:00:00Z. Empty: the interval's.", section=SETTINGS
    ),
    "until": text_field(
        "Until", "With the source recording: end, like 2026-11-21T11:00:00Z. Empty: the interval's.", section=SETTINGS
    ),
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
    "pages": pages_field(),
    "keep_days": keep_days_field(),
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
    ti: Any = None,
    dag_run: Any = None,
    logical_date: datetime | None = None,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
) -> "RunMessage":
    """Land raw samples of every policy's group; return the run that the other tasks work on."""
    from planner.policies.fleet import policy_location  # noqa: PLC0415
    from planner.runs.observe import observe_capture, observe_live  # noqa: PLC0415
    from planner.storage.layout import local_folder  # noqa: PLC0415

    with without_useless_retries(ti):
        policies, data = policy_location(params["policies"]), local_folder(params["data"], "data")
        recording = chosen(params, "recording")
        if recording is None:
            check_present(dag_run.run_type, logical_date)
            # Half of the time at most: a watch holds a worker's slot. Where planner sample runs, it is one read.
            longest_s = EVERY.total_seconds() / 2
            # Where no group at all is read: the last try goes on, so that every policy has its reason at the end.
            more = {"can_retry": ti.try_number <= ti.max_tries}
            with airflow_connections():
                return observe_live(policies, data, params["watch_seconds"], longest_s, **more).message()
        since, until = params["since"] or data_interval_start, params["until"] or data_interval_end
        return observe_capture(policies, data, local_folder(recording, "recording"), since, until).message()


@task(task_display_name="Offer the plans", outlets=[OFFERS], execution_timeout=SHORT)
def offer(params: Any = None, ti: Any = None, outlet_events: Any = None) -> Any:
    """Write the status of policies in a cluster; make an event for each plan that people are to be asked for.

    Returns why plans were not offered or written, by policy. Plans of a recording are offered to nobody.
    """
    from planner.approval.offers import offer_plans  # noqa: PLC0415
    from planner.policies.cluster_reports import report_run  # noqa: PLC0415
    from planner.storage.run import Run  # noqa: PLC0415

    run, decided = Run.of(ti.xcom_pull(task_ids="observe")), ti.xcom_pull(task_ids="plan")
    with without_useless_retries():
        cluster = report_run(run, decided, run.until + EVERY)
        if params["source"] != "live":
            return dict(cluster.failures)
        offers = offer_plans(run, decided, cluster, datetime.now(UTC))
    add_events(outlet_events, offers.plans)
    return {**cluster.failures, **offers.failures}


@task(task_display_name="Name who was not served", execution_timeout=SHORT)
def conclude(params: Any = None, ti: Any = None) -> str:
    """Return what came of the run in counts; fail naming each policy that was not served and what was not tidied."""
    from planner.policies.notices import NoticeRules  # noqa: PLC0415
    from planner.runs.conclude import ages_at_decision_s, conclude_run, count_note, notices_after, tidy_data  # noqa: PLC0415
    from planner.storage.run import Run  # noqa: PLC0415

    run = Run.of(ti.xcom_pull(task_ids="observe"))
    decided = ti.xcom_pull(task_ids="plan")
    unserved = ti.xcom_pull(task_ids="report") | ti.xcom_pull(task_ids="offer")
    with without_useless_retries():
        leave_note(ti, count_note(run, decided, unserved))
        if params["source"] == "live":
            ages_s = ages_at_decision_s(run)
            if ages_s:
                log.info("data were %.0f s old when the last decision was written", max(ages_s.values()))
            for event, sentence in notices_after(run, decided, NoticeRules(HOLD_RUNS, DEADLINE)):
                notify(get_current_context(), event, sentence)
        return conclude_run(run, decided, unserved | tidy_data(run, params["keep_days"]))


with DAG(
    "consumer_planner",
    dag_display_name="Consumer planner: decide and plan",
    description="How many consumers should every group have, and how does it get there?",
    schedule=CronDataIntervalTimetable(cron_of(EVERY), timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    deadline=deadline_of_runs(DEADLINE),
    params=PARAMS,
    tags=TAGS,
    default_args={"owner": OWNER, "on_failure_callback": notify_of_failure},
    doc_md=__doc__,
):
    observed, planned = observe(), plan()
    chain(observed, spark(optional("history")), planned, report(), offer(), conclude())
    # Besides Spark: without a run there is nothing to be said of policies.
    chain(observed, planned)
