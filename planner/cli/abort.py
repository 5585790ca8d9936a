"""``planner abort``: undo what a plan has done, and end it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import rollouts
from planner.cli.apply import shown
from planner.cli.console import FormatOption, Output, answering
from planner.cli.rollouts import Kubeconfig, Namespace, PlanName

if TYPE_CHECKING:
    from planner.execution.ports import StoredPlan


def abort(
    plan: PlanName,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", "-p", help="Policy file, or a folder of all; default: the policy object in the cluster."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Undo the steps here, or follow who does; else only ask for it.")] = True,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Abort a plan: its steps are undone, the last one first, until the old state is there again.

    Exit code 1 when it did not end in the old state: it came too late, or is stuck.
    """
    with answering(form, output) as answer:
        stored, plan_namespace = abort_plan(plan, namespace, kubeconfig, policy, wait)
        if answer.is_text:
            rollouts.print_end(stored)
        else:
            answer.write(rollouts.PROGRESS, rollouts.answer(stored, plan_namespace))
        if wait and stored.status.ended not in ("old", "nothing"):
            raise typer.Exit(1)


def abort_plan(
    plan: str, namespace: str | None, kubeconfig: Path | None, policy: Path | None, waits: bool
) -> "tuple[StoredPlan, str]":
    """Return the plan as the abort left it, and its namespace."""
    from planner.deployments.drive import open_ports
    from planner.deployments.plans import ABORT_ANNOTATION, ClusterPlans

    plan_namespace, name = rollouts.locate_plan(plan, namespace)
    with rollouts.open_cluster(kubeconfig) as api:
        ports = open_ports(api, plan_namespace, rollouts.live_groups(), rollouts.policies(api, plan_namespace, policy))
        stored = rollouts.read_plan(ports, plan_namespace, name)
        plans = ClusterPlans(api, plan_namespace)
        if not stored.status.phase.is_final:
            plans.annotate(name, {ABORT_ANNOTATION: "true"})
            stored = plans.read(name) or stored
            if waits:
                with shown(False) as show:
                    stored = rollouts.follow(ports, stored, show, waits_for_approval=False)
        if stored.status.phase.is_final:
            plans.remove_finalizer(stored)  # also where the executor that ended it was killed before that
    return stored, plan_namespace
