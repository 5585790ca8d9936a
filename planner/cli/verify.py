"""``planner verify``: the forecast against what happened."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from planner.cli import rollouts
from planner.cli.console import FormatOption, Output, answering, text_console
from planner.cli.rollouts import Kubeconfig, Namespace, PlanName, Records

if TYPE_CHECKING:
    from planner.execution.ports import StoredPlan


def verify(
    plan: PlanName,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    data: Records = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say for each figure of the forecast whether it was seen there; what nobody could see is unknown.

    Exit code 1 when one was missed, or when the plan has no verdict yet.
    """
    from planner.verification.verdict import Fit

    with answering(form, output) as answer:
        stored, plan_namespace = _read(plan, namespace, kubeconfig)
        verdict = stored.status.verdict
        rollouts.keep_record(data, stored)
        if not answer.is_text:
            fit = None if verdict is None else verdict.fit.value
            answer.write(rollouts.PROGRESS, {**rollouts.answer(stored, plan_namespace), "fit": fit})
        elif verdict is None:
            message = f"Plan {stored.name} has no verdict: it is {stored.status.phase}, {stored.status.message}"
            text_console().print(message, soft_wrap=True)
        else:
            rollouts.print_end(stored)
        if verdict is None or verdict.fit is Fit.OUTSIDE:
            raise typer.Exit(1)


def _read(plan: str, namespace: str | None, kubeconfig: Path | None) -> "tuple[StoredPlan, str]":
    """Return the plan and its namespace. Raises ``BadInputError`` when there is no such plan."""
    from planner.deployments.plans import ClusterPlans, no_plan

    plan_namespace, name = rollouts.locate_plan(plan, namespace)
    with rollouts.open_cluster(kubeconfig) as api:
        stored = ClusterPlans(api, plan_namespace).read(name)
    if stored is None:
        raise no_plan(plan_namespace, name)
    return stored, plan_namespace
