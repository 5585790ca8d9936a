"""The scheduled run: how many consumers should every group have, and how to get there.

One run decides for all policies of a folder. Tasks hand each other one message of paths and times; what they find lies
below the data folder, as `planner.storage.layout` says. The plain tasks are functions of `planner.stages`, the Spark
tasks are `spark_apps/<task>/app.py` on the connection `spark_default`.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain, task

from planner.orchestration.forms import TAGS, data_field, returned, watch_field
from planner.orchestration.retries import without_hopeless_retries

if TYPE_CHECKING:
    from planner.stages import RunMessage

ROOT = Path(__file__).resolve().parents[1]

RECORDING = {
    "title": "a recording",
    "type": "object",
    "properties": {"capture": {"type": "string", "minLength": 1}},
    "required": ["capture"],
    "additionalProperties": False,
}

PARAMS = {
    "policies": Param(
        os.environ.get("CONSUMER_PLANNER_POLICIES", "/etc/consumer-planner/policies"),
        type="string",
        minLength=1,
        description="Folder of ConsumerScalingPolicy files. Default: CONSUMER_PLANNER_POLICIES.",
    ),
    "data": data_field(),
    "history": Param(
        os.environ.get("CONSUMER_PLANNER_HISTORY", ""),
        type="string",
        description="URI of the lag history, where it is not a folder of data. Default: CONSUMER_PLANNER_HISTORY.",
    ),
    "keep_days": Param(
        int(os.environ.get("CONSUMER_PLANNER_KEEP_DAYS", "30")),
        type="integer",
        minimum=1,
        description="Days of history and packed samples that are kept. Default: CONSUMER_PLANNER_KEEP_DAYS.",
    ),
    "source": Param(
        "live",
        oneOf=[{"title": "the brokers themselves", "const": "live"}, RECORDING],
        description='"live", or {"capture": folder} to replay a recording.',
    ),
    "watch_seconds": watch_field("the longest window of all policies"),
    "since": Param(
        None, type=["null", "string"], format="date-time", description="Recording: start instead of the interval's."
    ),
    "until": Param(
        None, type=["null", "string"], format="date-time", description="Recording: end instead of the interval's."
    ),
}


@task(retries=2, retry_delay=timedelta(seconds=20))
def observe(
    params: Any = None, data_interval_start: datetime | None = None, data_interval_end: datetime | None = None
) -> "RunMessage":
    """Land raw samples of every policy's group; return the run that the other tasks work on."""
    from planner import stages  # noqa: PLC0415

    policies, data = Path(params["policies"]), Path(params["data"])
    with without_hopeless_retries():
        if params["source"] == "live":
            return stages.observe_live(policies, data, params["watch_seconds"]).message()
        since, until = params["since"] or data_interval_start, params["until"] or data_interval_end
        return stages.observe_capture(policies, data, Path(params["source"]["capture"]), since, until).message()


@task
def plan(ti: Any = None) -> str:
    """Write the plan of every decision to scale; return the run's folder."""
    from planner import stages  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    with without_hopeless_retries():
        stages.plan(run)
    return str(run.folder.path)


@task
def report(ti: Any = None) -> str:
    """Write one page for every decision; return the run's folder."""
    from planner import stages  # noqa: PLC0415

    run = stages.Run.of(ti.xcom_pull(task_ids="observe"))
    with without_hopeless_retries():
        stages.report(run)
    return str(run.folder.path)


def spark(task_id: str, params: tuple[str, ...] = (), **arguments: str) -> SparkSubmitOperator:
    """Return the task that submits ``spark_apps/<task_id>/app.py``.

    Each argument is a field of the run's message; params are passed on under their own names.
    """
    told = [_argument(name, returned("observe", field)) for name, field in arguments.items()]
    told += [_argument(name, f"{{{{ params.{name} }}}}") for name in params]
    return SparkSubmitOperator(
        task_id=task_id,
        conn_id="spark_default",
        application=str(ROOT / "spark_apps" / task_id / "app.py"),
        name=f"consumer-planner-{task_id}",
        application_args=told,
        env_vars={"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)},
    )


def _argument(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')}={value}"


with DAG(
    "consumer_planner",
    schedule=CronDataIntervalTimetable("*/10 * * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=TAGS,
    doc_md=__doc__,
):
    chain(
        observe(),
        spark("history", ("history", "keep_days"), data="data", until="until", sample_every="sample_every_s"),
        spark("snapshot", ("history",), data="data", policies="policies", at="until"),
        spark("simulate", data="data", policies="policies", at="until"),
        spark("decide", data="data", policies="policies", at="until"),
        plan(),
        report(),
    )
