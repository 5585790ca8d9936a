"""``planner status``: where plans stand."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import rollouts
from planner.cli.console import Answer, FormatOption, Output, answering, errors, text_console
from planner.cli.rollouts import Kubeconfig, Namespace
from planner.errors import PlannerError

if TYPE_CHECKING:
    from planner.deployments.api import RolloutApi
    from planner.execution.ports import StoredPlan


def status(
    plan: Annotated[
        str | None, typer.Argument(help="Name of a plan in the cluster, or its file; default: all of the namespace.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say how far a plan has come, or list all plans of a namespace."""
    with answering(form, output) as answer:
        plan_namespace, name = rollouts.locate_plan(plan, namespace) if plan else (namespace or "default", None)
        with rollouts.open_cluster(kubeconfig) as api:
            if name is None:
                list_all(api, plan_namespace, answer)
            else:
                show(read_plan(api, plan_namespace, name), plan_namespace, answer)


def list_all(api: "RolloutApi", namespace: str, answer: Answer) -> None:
    """Print all plans of the namespace; those that cannot be read are named on standard error."""
    listed = api.plans(namespace)
    if not listed:
        api.check_installed()  # a server that knows no plans lists none, too
    plans, unreadable = readable(listed)
    _list(plans, namespace, answer)
    for error in unreadable:
        errors.print(f"not shown: {error}")


def read_plan(api: "RolloutApi", namespace: str, name: str) -> "StoredPlan":
    """Return a plan of the cluster. Raises ``BadInputError`` when there is none."""
    from planner.deployments.plans import ClusterPlans, no_plan

    stored = ClusterPlans(api, namespace).read(name)
    if stored is None:
        raise no_plan(namespace, name)
    return stored


def show(stored: "StoredPlan", namespace: str, answer: Answer) -> None:
    """Print where one plan stands, and the command that goes on with it."""
    if not answer.is_text:
        answer.write(rollouts.PROGRESS, rollouts.answer(stored, namespace))
        return
    from planner.cli.tree import plan_tree

    text_console().print(plan_tree(stored, None))
    for refusal in stored.status.refusals:
        text_console().print(f"{refusal.code}: {refusal.sentence}", soft_wrap=True)
    rollouts.print_next_step(stored, namespace)


def readable(listed: Sequence[Mapping[str, Any]]) -> "tuple[list[StoredPlan], list[PlannerError]]":
    """Return the plans, and the errors of those that cannot be read: one is no reason to show none."""
    from planner.deployments.plans import stored_plan

    plans, unreadable = [], []
    for manifest in listed:
        try:
            plans.append(stored_plan(manifest))
        except PlannerError as error:
            unreadable.append(error)
    return plans, unreadable


def _list(plans: "list[StoredPlan]", namespace: str, answer: Answer) -> None:
    if not answer.is_text:
        answer.write(f"{rollouts.PROGRESS}List", [rollouts.answer(stored, namespace) for stored in plans])
        return
    if not plans:
        text_console().print(f"There is no plan in namespace {namespace}.")
    for stored in plans:
        text_console().print(line_of(stored), soft_wrap=True)


def line_of(stored: "StoredPlan") -> str:
    """Return in one line where a plan stands."""
    step = f"step {stored.status.step} of {len(stored.plan.steps)}"
    message = stored.status.held or stored.status.message
    return f"{stored.name}  {stored.plan.group.group}  {stored.status.phase}  {step}  {message}"
