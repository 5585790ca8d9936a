"""``planner status``: where plans stand."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import rollouts
from planner.cli.console import Output, OutputForm, errors, print_json, text_console
from planner.cli.rollouts import Kubeconfig, Namespace
from planner.errors import PlannerError

if TYPE_CHECKING:
    from planner.execution.ports import StoredPlan


def status(
    plan: Annotated[
        str | None, typer.Argument(help="Name of a plan in the cluster, or its file; default: all of the namespace.")
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    output: Output = OutputForm.TEXT,
) -> None:
    """Say how far a plan has come, or list all plans of a namespace."""
    from planner.deployments.plans import ClusterPlans, no_plan

    place, name = rollouts.plan_place(plan, namespace) if plan else (namespace or "default", None)
    with rollouts.open_cluster(kubeconfig) as api:
        if name is None:
            listed = api.plans(place)
            if not listed:
                api.check_installed()  # a server that knows no plans lists none, too
            found, unreadable = _readable(listed)
            _list(found, place, output)
            for error in unreadable:
                errors.print(f"not shown: {error}", markup=False)
            return
        stored = ClusterPlans(api, place).read(name)
    if stored is None:
        raise no_plan(place, name)
    if output is OutputForm.JSON:
        print_json(rollouts.answer(stored, place))
        return
    from planner.cli.tree import plan_tree

    text_console().print(plan_tree(stored, None))
    for refusal in stored.status.refusals:
        text_console().print(f"{refusal.code}: {refusal.sentence}", markup=False, soft_wrap=True)


def _readable(listed: Sequence[Mapping[str, Any]]) -> "tuple[list[StoredPlan], list[PlannerError]]":
    """Return the plans, and the errors of those that cannot be read: one is no reason to show none."""
    from planner.deployments.plans import stored_plan

    found, unreadable = [], []
    for one in listed:
        try:
            found.append(stored_plan(one))
        except PlannerError as error:
            unreadable.append(error)
    return found, unreadable


def _list(found: "list[StoredPlan]", namespace: str, output: OutputForm) -> None:
    if output is OutputForm.JSON:
        print_json([rollouts.answer(stored, namespace) for stored in found])
        return
    if not found:
        text_console().print(f"There is no plan in namespace {namespace}.", markup=False)
    for stored in found:
        step = f"step {stored.status.step} of {len(stored.plan.steps)}"
        told = stored.status.held or stored.status.message
        line = f"{stored.name}  {stored.plan.group.group}  {stored.status.phase}  {step}  {told}"
        text_console().print(line, markup=False, soft_wrap=True)
