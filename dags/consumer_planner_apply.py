"""Apply one approved plan: hand it to the controller in the cluster, and follow it to its end.

Trigger it with a plan file, `{"plan": "/path/plan.yaml"}`. Nothing is carried out here: `planner-controller` in the
cluster does that, and goes on when Airflow dies. `follow` waits without holding a worker slot, ends well when the plan
has succeeded (the verdict is in its log and result), and fails with one sentence when it was refused, rolled back,
expired or is stuck, and when nobody works on it.

- `"approve": "already"`: somebody approved the plan, by `planner approve` or by the policy's criteria.
- `"approve": "ask"`: the task `ask` shows what is going to be done, and waits for *Approve* or *Reject*. The approval
  is then set by the account of the kubeconfig, which needs the right to approve.

Clearing `follow`, or the whole run, follows again; nothing is applied twice. Marking it failed stops following only:
the plan goes on until `planner abort` undoes it.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param, chain, task

from planner.orchestration.follow import FollowPlan
from planner.orchestration.forms import STARTED_BY_PEOPLE, kubeconfig_field, returned
from planner.orchestration.retries import without_hopeless_retries

PARAMS = {
    "plan": Param(type="string", minLength=1, description="Plan file of planner plan."),
    "namespace": Param(None, type=["null", "string"], minLength=1, description="Default: the plan file's own."),
    "kubeconfig": kubeconfig_field("workers and triggerers"),
    "approve": Param("already", enum=["already", "ask"], description="Who approves: somebody did, or ask here."),
    "silence_seconds": Param(
        300, type="number", exclusiveMinimum=0, description="Fail when nobody has worked on the plan for so long."
    ),
}


@task
def read(params: Any = None) -> Any:
    """Read the plan file; return what the other tasks have to know of it."""
    from planner.handover import read_plan  # noqa: PLC0415

    with without_hopeless_retries():
        return read_plan(Path(params["plan"]), params["namespace"])


@task.branch
def choose(params: Any = None) -> str:
    """Ask a person first, or not."""
    return "ask" if params["approve"] == "ask" else "hand_over"


@task(retries=3, retry_delay=timedelta(seconds=20), trigger_rule="none_failed_min_one_success")
def hand_over(params: Any = None, ti: Any = None) -> None:
    """Put the approved plan into the cluster, unless it is there already."""
    from planner import handover  # noqa: PLC0415

    kubeconfig = Path(params["kubeconfig"]) if params["kubeconfig"] else None
    with without_hopeless_retries():
        handover.hand_over(ti.xcom_pull(task_ids="read"), kubeconfig, approves=params["approve"] == "ask")


with DAG("consumer_planner_apply", schedule=None, params=PARAMS, doc_md=__doc__, **STARTED_BY_PEOPLE):
    name, namespace = returned("read", "name"), returned("read", "namespace")
    ask = ApprovalOperator(task_id="ask", subject=f"Apply plan {name}?", body=returned("read", "explanation"))
    handed_over = hand_over()
    follow = FollowPlan(
        task_id="follow",
        name=name,
        namespace=namespace,
        kubeconfig="{{ params.kubeconfig }}",
        silence_s="{{ params.silence_seconds }}",
        # Of the task, not of the plan: a plan that ended badly fails at once.
        retries=3,
        retry_delay=timedelta(seconds=10),
    )
    chain(read(), choose(), [ask, handed_over])
    chain(ask, handed_over, follow)
