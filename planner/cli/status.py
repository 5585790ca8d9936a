"""``planner status``: where plans stand."""

from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import rollouts
from planner.cli.console import Output, OutputForm, print_json, text_console
from planner.cli.rollouts import Kubeconfig, Namespace

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
    from planner.deployments.plans import ClusterPlans, no_plan, stored_plan

    place, name = rollouts.plan_place(plan, namespace) if plan else (namespace or "default", None)
    with rollouts.open_cluster(kubeconfig) as api:
        if name is None:
            found = [stored_plan(one) for one in api.plans(place)]
            if not found:
                api.check_installed()  # a server that knows no plans lists none, too
            _list(found, place, output)
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
