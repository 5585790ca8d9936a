"""``planner demand``: what a group's load may be, and how such forecasts did."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, text_console
from planner.words import UNKNOWN, duration, per_second, percent, rate

if TYPE_CHECKING:
    from planner.demand.outlook import Outlook, Stretch


def demand(
    snapshot: Annotated[Path, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)],
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what the group's load may be in the next two hours, and how earlier forecasts of it did."""
    from planner.demand.outlook import outlook
    from planner.documents.data import SNAPSHOT
    from planner.errors import BadInputError

    taken = SNAPSHOT.read(snapshot)
    loads = outlook(taken)
    if loads is None:
        raise BadInputError(
            f"{snapshot}: found no minute of load up to {taken.at.isoformat()}, expected at least one: watch the group "
            "for two minutes with planner snapshot --observe-seconds 120"
        )
    with answering(form, output) as answer:
        if answer.is_text:
            _print(taken.group, loads)
        else:
            answer.write("Demand", {"group": taken.group, **asdict(loads)})


def _print(group: str, loads: "Outlook") -> None:
    console = text_console()
    known = duration(60.0 * loads.minutes)
    console.print(f"Group {group}: the level is {rate(loads.level)}, by the last {known}.")
    made = f"the errors of forecasts in the last {known}" if loads.rests_on_errors else "the level alone, spread wider"
    table = Table(title=f"Possible loads, messages/s, out of {made}")
    for heading in (
        "from now",
        "low (1 in 10)",
        "middle",
        "high (1 in 10)",
        "so far inside",
        "level's usual miss",
    ):
        table.add_column(heading, justify="right")
    for stretch in loads.stretches:
        table.add_row(*_row(stretch))
    console.print(table)


def _row(stretch: "Stretch") -> tuple[str, ...]:
    return (
        f"{stretch.from_minutes}–{stretch.to_minutes} min",
        per_second(stretch.low),
        per_second(stretch.middle),
        per_second(stretch.high),
        f"{stretch.inside} of {stretch.forecasts}" if stretch.forecasts else UNKNOWN,
        percent(stretch.level_miss),
    )
