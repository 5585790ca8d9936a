"""``planner verify``: the forecast against what happened."""

import typer

from planner.cli import rollouts
from planner.cli.console import Output, OutputForm, print_json, text_console
from planner.cli.rollouts import Kubeconfig, Namespace, PlanName, Records


def verify(
    plan: PlanName,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    data: Records = None,
    output: Output = OutputForm.TEXT,
) -> None:
    """Say for each figure of the forecast whether it was seen there; what nobody could see is unknown.

    Exit code 1 when one was missed, or when the plan has no verdict yet.
    """
    from planner.deployments.plans import ClusterPlans, no_plan
    from planner.verification.verdict import Fit

    place, name = rollouts.plan_place(plan, namespace)
    with rollouts.open_cluster(kubeconfig) as api:
        stored = ClusterPlans(api, place).read(name)
    if stored is None:
        raise no_plan(place, name)
    verdict = stored.status.verdict
    rollouts.keep_record(data, stored)
    if output is OutputForm.JSON:
        print_json({**rollouts.answer(stored, place), "fit": None if verdict is None else verdict.fit})
    elif verdict is None:
        told = f"Plan {name} has no verdict: it is {stored.status.phase}, {stored.status.message}"
        text_console().print(told, markup=False, soft_wrap=True)
    else:
        rollouts.tell_end(stored)
    if verdict is None or verdict.fit is Fit.OUTSIDE:
        raise typer.Exit(1)
