"""Have the plans of the scheduled DAG approved, and hand them to the apply DAG.

Nobody starts it: a run of `consumer_planner` that offers plans is an event of the asset `consumer_planner_offered`, and
each of its plans one of `consumer_planner_plans`. A change is offered once while its plan holds.

- A plan that needs a person is one question on the page Required Actions, for the approvers that its policy names. It
  shows what is to change and why, what it costs, the steps, and a link to the page. *Approve* has the plan carried out,
  *Reject* ends it; the reason that is typed is kept, and shown when the change is asked for again. A question ends with
  its plan.
- A plan that the policy's criteria approve is handed over without a click. The controller observes the group itself and
  approves it by the criteria, or leaves it to a person.

Each approved plan has a run of `consumer_planner_apply`, which follows it. The run's note has the answers.
"""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from planner.orchestration.approval import AskForOffer, typed_phrases
from planner.orchestration.assets import OFFERED, offers_of
from planner.orchestration.forms import SHORT, STARTED_BY_PEOPLE, kubeconfig_field
from planner.orchestration.notifying import notify
from planner.orchestration.pages import page_link
from planner.orchestration.retries import without_useless_retries

if TYPE_CHECKING:
    from planner.approval.offers import Question

APPLY = "consumer_planner_apply"
PARAMS = {"kubeconfig": kubeconfig_field("workers and triggerers, for the apply DAG")}


@task(task_display_name="Read the offered plans", execution_timeout=SHORT)
def read(triggering_asset_events: Any = None) -> Any:
    """Return what is to be known of each offered plan, of a policy the newest."""
    from planner.approval.offers import ask, keep_asked  # noqa: PLC0415

    with without_useless_retries():
        # A run that a person starts has no events: nothing is asked.
        offers = tuple(offers_of(triggering_asset_events.get(OFFERED, ())))
        questions = [ask(offer, page_link(Path(offer["plan"]))) for offer in offers]
        keep_asked(questions)
        return questions


@task(task_display_name="Which need a person?", execution_timeout=SHORT)
def choose(plans: Any) -> Any:
    """Return the plans that a person has to approve; notify of each."""
    needed = [plan for plan in plans if not plan["is_approved"]]
    for plan in needed:
        notify(get_current_context(), "asked", f"Carry out plan {plan['name']}? A person has to approve it.")
    return needed


@task(task_display_name="Which do criteria approve?", execution_timeout=SHORT)
def choose_by_criteria(plans: Any, params: Any = None) -> Any:
    """Return what the apply DAG is started with for each plan that the policy's criteria approve."""
    return [conf(plan, params, "criteria") for plan in plans if plan["is_approved"]]


@task(task_display_name="Write the approval", execution_timeout=SHORT)
def approve(plan: Any, answer: Any, params: Any = None) -> Any:
    """Write the person's approval into the plan file; return what the apply DAG is started with."""
    from planner.approval.handover import is_approval, write_approval  # noqa: PLC0415

    # The question itself skips what follows a rejection only where it is not mapped (SkipMixin of Airflow 3.3.2).
    if answer is not None and not is_approval(answer):
        raise AirflowSkipException(f"plan {plan['name']} was rejected: nothing is handed over")
    with without_useless_retries():
        write_approval(plan, answer, typed_phrases(answer or {}))
    return conf(plan, params, "already")


def conf(plan: "Question", params: Mapping[str, Any], approval: str) -> dict[str, Any]:
    """Return what the apply DAG is started with."""
    return {
        "plan": plan["file"],
        "namespace": plan["namespace"],
        "kubeconfig": params["kubeconfig"],
        "approve": approval,
    }


APPLYING: dict[str, Any] = {
    "task_display_name": "Start the apply DAG",
    "doc_md": f"Triggers `{APPLY}` with the plan.",
    "trigger_dag_id": APPLY,
    "fail_when_dag_is_paused": True,
    "execution_timeout": SHORT,
}


@task_group
def person(plan: Any) -> None:
    """One plan that a person has to approve."""
    ask = AskForOffer(
        task_id="ask",
        task_display_name="Ask the approvers",
        doc_md="Waits for *Approve* or *Reject* on the page Required Actions, as long as the plan holds.",
        question=plan,
        all_asked="choose",
        # No run waits for ever: a question ends with its plan, unless its policy gives it many days.
        response_timeout=timedelta(days=7),
    )
    applying: Any = approve(plan, ask.output)  # what comes of it, once it has run
    TriggerDagRunOperator(task_id="apply", conf=applying, **APPLYING)


with DAG(
    "consumer_planner_approval",
    dag_display_name="Consumer planner: approve plans",
    description="Ask the approvers of each offered plan, and hand approved plans to the apply DAG.",
    schedule=[OFFERED],
    params=PARAMS,
    doc_md=__doc__,
    **STARTED_BY_PEOPLE,
):
    plans = read()
    person.expand(plan=choose(plans))
    TriggerDagRunOperator.partial(task_id="apply_by_criteria", **APPLYING).expand(conf=choose_by_criteria(plans))
