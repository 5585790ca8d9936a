"""Plan one migration, ask a person, and hand the plan to the apply DAG.

Give a policy (a file, or `k8s://NAMESPACE/NAME`) and what is to become different, spelt as in a plan; the form has an
example of every kind.

`check` refuses a wrong policy or request at once. `observe` watches the group, `plan` writes the plan or fails with the
refusal's name. `ask` shows the approvers that the policy names what is going to be done and what it costs, and waits
for *Approve* or *Reject*, as long as the plan holds; only where steps set offsets it asks for their phrases, word by
word, and a wrong one is refused and asked again. Only an approved plan is handed over: `apply` triggers
`consumer_planner_apply`, which follows it. Rejected, nothing happens.

Under `airflow dags test` the question stays open until somebody answers it through an API server on the same database.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, chain, get_current_context, task

from planner.orchestration.approval import AskApproval, typed_phrases
from planner.orchestration.connections import airflow_connections
from planner.orchestration.examples import examples_in_markdown
from planner.orchestration.forms import (
    POOL,
    SETTINGS,
    SHORT,
    STARTED_BY_PEOPLE,
    WINDOW,
    chosen,
    data_field,
    kubeconfig_field,
    kubeconfig_of,
    namespace_field,
    optional,
    required_field,
    result_field,
    source_field,
    text_field,
    watch_field,
)
from planner.orchestration.notifying import notify
from planner.orchestration.retries import without_useless_retries
from planner.orchestration.run_notes import leave_note

NO_PLAN = "1 policy: 0 plans, 1 failed"

PARAMS = {
    "policy": required_field(
        "Policy",
        "ConsumerScalingPolicy of the group: a file on the workers, or k8s://NAMESPACE/NAME (by the field kubeconfig).",
        examples=["/policies/shop.yaml", "k8s://shop/shop-orders"],
    ),
    "migration": Param(
        type="object",
        title="Migration",
        description_md=f"What is to become different. One of:\n\n{examples_in_markdown()}",
        # The rest is checked by the task check: a schema of all kinds answers a typo with itself, 20 000 characters.
        properties={"kind": {"type": "string"}},
        required=["kind"],
    ),
    "source": source_field("snapshot", "a file of planner snapshot, young enough for the policy"),
    "snapshot": text_field(
        "Snapshot", "With the source snapshot: the file that planner snapshot has written.", section=SETTINGS
    ),
    "watch_seconds": watch_field("the policy's window"),
    "data": data_field(),
    "namespace": namespace_field("the policy's own"),
    "kubeconfig": kubeconfig_field("workers and triggerers, for policies in a cluster and for the apply DAG"),
}


@task(task_display_name="Check the request", execution_timeout=SHORT)
def check(params: Any = None, ti: Any = None) -> str:
    """Refuse a wrong policy or request before anything is watched; return the kind of migration."""
    from planner.runs import migration  # noqa: PLC0415
    from planner.storage.layout import local_folder  # noqa: PLC0415

    leave_note(ti, NO_PLAN)  # unless a later task knows better
    with without_useless_retries(ti, NO_PLAN):
        for name in ("data", "snapshot", "kubeconfig"):
            local_folder(params[name] or "", name)
        chosen(params, "snapshot")
        return migration.check(params["policy"], params["migration"], kubeconfig_of(params))


@task(
    task_display_name="Observe the group",
    retries=2,
    retry_delay=timedelta(seconds=20),
    pool=POOL,
    execution_timeout=WINDOW,
)
def observe(params: Any = None, ti: Any = None) -> Any:
    """Watch the group and write its snapshot; return where."""
    from planner.runs import migration  # noqa: PLC0415

    policy, data, asked = params["policy"], Path(params["data"]), params["migration"]  # checked by check
    with without_useless_retries(ti, NO_PLAN):
        snapshot = chosen(params, "snapshot")
        if snapshot is None:
            with airflow_connections():
                return migration.observe(policy, data, asked, params["watch_seconds"], kubeconfig_of(params))
        return migration.observe_snapshot(policy, data, asked, Path(snapshot), kubeconfig_of(params))


@task(task_display_name="Write the plan", execution_timeout=SHORT)
def plan(params: Any = None, ti: Any = None) -> Any:
    """Write the plan; return what the other tasks have to know of it."""
    from planner.runs import migration  # noqa: PLC0415

    with without_useless_retries(ti, NO_PLAN):
        message = migration.plan(ti.xcom_pull(task_ids="observe"), params["migration"], params["namespace"])
    leave_note(ti, f"1 policy: 1 plan, 0 failed: {message['name']}, nobody has answered")
    notify(get_current_context(), "asked", f"Carry out migration {message['name']}? A person has to approve it.")
    return message


@task(task_display_name="Write the approval", execution_timeout=SHORT)
def approve(ti: Any = None) -> str:
    """Write the person's approval into the plan file; return the digest that was approved."""
    from planner.approval.handover import write_approval  # noqa: PLC0415

    answer = ti.xcom_pull(task_ids="ask")
    with without_useless_retries():
        return write_approval(ti.xcom_pull(task_ids="plan"), answer, typed_phrases(answer or {}))


with DAG(
    "consumer_planner_migration",
    dag_display_name="Consumer planner: migrate a group",
    description="Plan one migration, ask a person, and hand the plan to the apply DAG.",
    schedule=None,
    params=PARAMS,
    doc_md=__doc__,
    **STARTED_BY_PEOPLE,
):
    ask = AskApproval(
        task_id="ask",
        task_display_name="Ask the approvers",
        doc_md="Waits for *Approve* or *Reject* on the page Required Actions, by the policy's approvers.",
        planned="plan",
        # No plan may rest on a snapshot that is older than this when it begins.
        response_timeout=timedelta(hours=1),
    )
    apply = TriggerDagRunOperator(
        task_id="apply",
        task_display_name="Start the apply DAG",
        doc_md="Triggers `consumer_planner_apply` with the approved plan.",
        execution_timeout=SHORT,
        trigger_dag_id="consumer_planner_apply",
        fail_when_dag_is_paused=True,
        conf={
            "plan": result_field("plan", "file"),
            "namespace": result_field("plan", "namespace"),
            "kubeconfig": optional("kubeconfig"),
            "approve": "already",
        },
    )
    chain(check(), observe(), plan(), ask, approve(), apply)
