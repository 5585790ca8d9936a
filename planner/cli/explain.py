"""``planner explain``: a plan in words."""

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.console import Output, OutputForm, print_json, tell
from planner.cli.making import Forecasts


def explain(
    plan: Annotated[Path, typer.Argument(help="Plan or decision file of planner plan.", show_default=False)],
    data: Forecasts = None,
    output: Output = OutputForm.TEXT,
) -> None:
    """Say why this count, why not the others, and what each step does; with --data also how earlier forecasts did."""
    from planner.calibration import read_track
    from planner.documents.plan import read_plan_or_decision
    from planner.rollout.explain import explain_hold, explain_plan
    from planner.rollout.plan import RolloutPlan

    document = read_plan_or_decision(plan)
    if isinstance(document, RolloutPlan):
        lines, at = list(explain_plan(document)), document.made_at
    else:
        lines, at = list(explain_hold(document)), document.decision.decided_at
    if data is not None:
        lines += read_track(data, document.group, at).lines
    if output is OutputForm.JSON:
        print_json({"lines": lines})
        return
    tell(lines)
