"""``planner report``: one self-contained page with charts."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.console import FormatOption, answering
from planner.cli.making import Forecasts


def report(
    source: Annotated[
        Path,
        typer.Argument(help="Run folder, plan or decision file, or snapshot beside one of these.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.", show_default=False)],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="ConsumerScalingPolicy YAML: draws its bound.", show_default=False),
    ] = None,
    data: Forecasts = None,
    form: FormatOption = None,
) -> None:
    """Write a page that shows what was decided and why: no network, no script, light and dark.

    The snapshot is found beside the plan by its digest, and the counts are simulated again.
    """
    from planner.cli.policy_reading import read_policy
    from planner.report.source import read_case
    from planner.report.write import write_page
    from planner.storage.track_records import read_track

    bound = read_policy(policy).objective.stated_utilisation if policy else None
    case = read_case(source, bound)
    if data is not None:
        case = replace(case, track=read_track(data, case.record.group, case.record.decision.decided_at))
    with answering(form, None) as answer:
        page = write_page(output, case)
        if answer.is_text:
            typer.echo(page)
        else:
            answer.write("Report", {"page": str(page), "next": case.next_command})
