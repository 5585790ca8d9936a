"""``planner explain``: a plan in words."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.console import Answer, FormatOption, Output, Verbose, answering, print_explanation, print_next
from planner.cli.making import Forecasts

if TYPE_CHECKING:
    from planner.rollout.plan import DecisionRecord, RolloutPlan


def explain(
    plan: Annotated[Path, typer.Argument(help="Plan or decision file of planner plan.", show_default=False)],
    data: Forecasts = None,
    verbose: Verbose = False,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say why this count, why not the others, and what each step does; with --data also how earlier forecasts did."""
    with answering(form, output) as answer:
        document = explain_file(plan, answer, data, verbose)
        if answer.is_text:
            print_next(next_command(document, plan))


def explain_file(
    path: Path, answer: Answer, data: Path | None = None, verbose: bool = True
) -> "RolloutPlan | DecisionRecord":
    """Print the plan or hold in the file in words and return it; machines get every line."""
    from planner.documents.plan import read_plan_or_decision
    from planner.rollout.explain import explain_hold, explain_plan
    from planner.rollout.plan import RolloutPlan
    from planner.storage.track_records import read_track

    document = read_plan_or_decision(path)
    is_short = answer.is_text and not verbose
    if isinstance(document, RolloutPlan):
        lines, at = list(explain_plan(document, is_short=is_short)), document.made_at
    else:
        lines, at = list(explain_hold(document, is_short=is_short)), document.decision.decided_at
    if data is not None:
        lines += read_track(data, document.group, at).lines
    if not answer.is_text:
        answer.write("PlanExplanation", {"lines": lines})
    else:
        print_explanation(lines, "green" if isinstance(document, RolloutPlan) else "yellow")
    return document


def next_command(document: "RolloutPlan | DecisionRecord", path: Path) -> str | None:
    """Return what a reader does next with the file: approve the plan, or what ends the hold."""
    from planner.advice.next_command import command_after_record
    from planner.rollout.next_command import approve_command
    from planner.rollout.plan import RolloutPlan

    if isinstance(document, RolloutPlan):
        return approve_command(document, str(path))
    return str(command_after_record(document))
