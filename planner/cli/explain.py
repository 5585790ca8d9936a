"""``planner explain``: a plan in words."""

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.console import Output, OutputForm, print_json, text_console


def explain(
    plan: Annotated[Path, typer.Argument(help="Plan or decision file of planner plan.", show_default=False)],
    output: Output = OutputForm.TEXT,
) -> None:
    """Say why this count, why not the others, and what each step does."""
    from planner.documents.plan import read_plan_or_decision
    from planner.rollout.explain import explain_hold, explain_plan
    from planner.rollout.plan import RolloutPlan

    document = read_plan_or_decision(plan)
    lines = list(explain_plan(document) if isinstance(document, RolloutPlan) else explain_hold(document))
    if output is OutputForm.JSON:
        print_json({"lines": lines})
        return
    console = text_console()
    for number, line in enumerate(lines):
        console.print(line, style="bold" if number == 1 else None, markup=False)
