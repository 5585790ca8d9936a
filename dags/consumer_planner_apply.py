"""Apply one approved plan: hand it to the controller in the cluster, and follow it to its end.

Trigger it with a plan file, `{"plan": "/path/plan.yaml"}`. Nothing is carried out here: `planner-controller` in the
cluster does that, and goes on when Airflow dies. `follow` waits without holding a worker slot, ends well when the plan
has succeeded (the verdict is in its log and result), and fails with one sentence when it was refused, rolled back,
expired or is stuck, and when nobody works on it.

- `"approve": "already"`: somebody approved the plan, by `planner approve` or by the policy's criteria.
- `"approve": "criteria"`: the plan goes over without an approval; the controller approves it there by the policy's
  criteria, as it sees the group, or leaves it to a person.
- `"approve": "ask"`: the task `ask` shows the approvers of the plan's policy what is going to be done, and waits for
  *Approve* or *Reject*. The policy is known of a plan that lies where a run or a migration wrote it; the question of
  another anybody may answer who may answer tasks. Where steps set offsets, it asks for their phrases; a wrong one is
  refused and asked again. The approval is then set by the account of the kubeconfig, which needs the right to approve.

Clearing `follow`, or the whole run, follows again; nothing is applied twice. Marking it failed stops following only:
the plan goes on until `planner abort` undoes it.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, chain, task

from planner.orchestration.approval import AskApproval, typed_phrases
from planner.orchestration.follow import FollowPlan
from planner.orchestration.forms import (
    SETTINGS,
    SHORT,
    STARTED_BY_PEOPLE,
    kubeconfig_field,
    kubeconfig_of,
    namespace_field,
    optional,
    required_field,
    result_field,
)
from planner.orchestration.pages import page_link
from planner.orchestration.retries import without_useless_retries

PARAMS = {
    "plan": required_field("Plan", "Plan file of planner plan, on every worker.", examples=["/plans/plan.yaml"]),
    "approve": Param(
        "already",
        type="string",
        enum=["already", "criteria", "ask"],
        title="Approval",
        description="already: somebody has approved the plan. criteria: the controller does, by the policy's criteria. "
        "ask: a person is asked here.",
    ),
    "silence_seconds": Param(
        300,
        type="number",
        exclusiveMinimum=0,
        title="Seconds of silence",
        description="Fail when nobody has worked on the plan for so long.",
        section=SETTINGS,
    ),
    "namespace": namespace_field("the plan file's own"),
    "kubeconfig": kubeconfig_field("workers and triggerers"),
}


@task(task_display_name="Read the plan", execution_timeout=SHORT)
def read(params: Any = None, ti: Any = None) -> Any:
    """Read the plan file; return what the other tasks have to know of it."""
    from planner.approval.handover import read_plan  # noqa: PLC0415
    from planner.approval.offers import question_on  # noqa: PLC0415
    from planner.storage.layout import local_folder  # noqa: PLC0415

    with without_useless_retries(ti):
        local_folder(params["kubeconfig"] or "", "kubeconfig")
        file = local_folder(params["plan"], "plan")
        message = read_plan(file, params["namespace"])
        return question_on(message, page_link(file)) if params["approve"] == "ask" else message


@task.branch(task_display_name="Who approves?", execution_timeout=SHORT)
def choose(params: Any = None) -> str:
    """Ask a person first, or not."""
    return "ask" if params["approve"] == "ask" else "hand_over"


@task(
    task_display_name="Hand the plan over",
    retries=3,
    retry_delay=timedelta(seconds=20),
    execution_timeout=SHORT,
    trigger_rule="none_failed_min_one_success",
)
def hand_over(params: Any = None, ti: Any = None) -> None:
    """Put the approved plan into the cluster, unless it is there already."""
    from planner.approval import handover  # noqa: PLC0415

    kubeconfig = kubeconfig_of(params)
    with without_useless_retries(ti):
        message, answer = ti.xcom_pull(task_ids="read"), ti.xcom_pull(task_ids="ask")
        if params["approve"] == "criteria":
            handover.hand_over_by_criteria(message, kubeconfig)
            return
        handover.hand_over(
            message, kubeconfig, approves=params["approve"] == "ask", phrases=typed_phrases(answer or {})
        )


with DAG(
    "consumer_planner_apply",
    dag_display_name="Consumer planner: apply a plan",
    description="Hand one approved plan to the controller, and follow it to its end.",
    schedule=None,
    params=PARAMS,
    doc_md=__doc__,
    **STARTED_BY_PEOPLE,
):
    name, namespace = result_field("read", "name"), result_field("read", "namespace")
    ask = AskApproval(
        task_id="ask",
        task_display_name="Ask the approvers",
        doc_md="Waits for *Approve* or *Reject* on the page Required Actions, by the policy's approvers.",
        planned="read",
        # No run waits for ever: a plan is over long before (validForSeconds), unless its policy gives it days.
        response_timeout=timedelta(days=7),
    )
    handed_over = hand_over()
    follow = FollowPlan(
        task_id="follow",
        task_display_name="Follow the plan",
        doc_md="Waits without a worker slot until the plan is at its end; the verdict is the result.",
        execution_timeout=SHORT,
        name=name,
        namespace=namespace,
        kubeconfig=optional("kubeconfig"),
        silence_s="{{ params.silence_seconds }}",
        # Of the task, not of the plan: a plan that ended badly fails at once.
        retries=3,
        retry_delay=timedelta(seconds=10),
    )
    chain(read(), choose(), [ask, handed_over])
    chain(ask, handed_over, follow)
