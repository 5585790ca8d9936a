"""Plan one migration, ask a person, and hand the plan to the apply DAG.

Trigger it with a policy file and what is to become different, spelt as in a plan, for instance
`{"policy": "/etc/…/shop.yaml", "migration": {"kind": "update", "change": {"containers": [{"container": "app",
"image": "shop:2"}]}}}`. Kinds: update, strategy, rename, relocate, cluster, reset, expand,
assignor, consumerProtocol.

`observe` watches the group, `plan` writes the plan or fails with the refusal's name. `ask` shows what is going to be
done and what it costs, and waits for *Approve* or *Reject*; steps that set offsets ask for their phrases, word by word.
Only an approved plan is handed over: `apply` triggers `consumer_planner_apply`, which follows it. Rejected, nothing
happens.

Under `airflow dags test` the question stays open until somebody answers it through an API server on the same database.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, chain, task

from planner.documents.migration import request_schema
from planner.orchestration.forms import STARTED_BY_PEOPLE, data_field, kubeconfig_field, returned, watch_field
from planner.orchestration.retries import without_hopeless_retries

SNAPSHOT = {
    "title": "a snapshot",
    "type": "object",
    "properties": {"snapshot": {"type": "string", "minLength": 1}},
    "required": ["snapshot"],
    "additionalProperties": False,
}

PARAMS = {
    "policy": Param(type="string", minLength=1, description="ConsumerScalingPolicy file of the group."),
    "migration": Param(type="object", description="What is to become different.", **request_schema()),
    "data": data_field(),
    "source": Param(
        "live",
        oneOf=[{"title": "the brokers themselves", "const": "live"}, SNAPSHOT],
        description='"live", or {"snapshot": file} for one of planner snapshot.',
    ),
    "watch_seconds": watch_field("the policy's window"),
    "namespace": Param(None, type=["null", "string"], minLength=1, description="Default: the policy's own."),
    "kubeconfig": kubeconfig_field("workers and triggerers, for the apply DAG"),
}

CONFIRM = Param(
    "",
    type="string",
    format="multiline",
    description="Where steps set offsets: the phrase of each, word by word, one a line.",
)


@task(retries=2, retry_delay=timedelta(seconds=20))
def observe(params: Any = None) -> Any:
    """Watch the group and write its snapshot; return where."""
    from planner import migration_stages as stages  # noqa: PLC0415

    policy, data, source = Path(params["policy"]), Path(params["data"]), params["source"]
    with without_hopeless_retries():
        if source == "live":
            return stages.observe(policy, data, params["watch_seconds"])
        return stages.observe_snapshot(policy, data, Path(source["snapshot"]))


@task
def plan(params: Any = None, ti: Any = None) -> Any:
    """Write the plan; return what the other tasks have to know of it."""
    from planner import migration_stages as stages  # noqa: PLC0415

    with without_hopeless_retries():
        return stages.plan(ti.xcom_pull(task_ids="observe"), params["migration"], params["namespace"])


@task
def approve(ti: Any = None) -> str:
    """Write the person's approval into the plan file; return the digest that was approved."""
    from planner import migration_stages as stages  # noqa: PLC0415

    with without_hopeless_retries():
        return stages.approve(ti.xcom_pull(task_ids="plan"), ti.xcom_pull(task_ids="ask"))


with DAG("consumer_planner_migration", schedule=None, params=PARAMS, doc_md=__doc__, **STARTED_BY_PEOPLE):
    ask = ApprovalOperator(
        task_id="ask",
        subject=f"Carry out migration {returned('plan', 'name')}?",
        body=returned("plan", "explanation"),
        params={"confirm": CONFIRM},
        # No plan may rest on a snapshot that is older than this when it begins.
        response_timeout=timedelta(hours=1),
    )
    apply = TriggerDagRunOperator(
        task_id="apply",
        trigger_dag_id="consumer_planner_apply",
        fail_when_dag_is_paused=True,
        conf={
            "plan": returned("plan", "file"),
            "namespace": returned("plan", "namespace"),
            "kubeconfig": "{{ params.kubeconfig }}",
            "approve": "already",
        },
    )
    chain(observe(), plan(), ask, approve(), apply)
