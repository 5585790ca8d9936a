"""``planner backtest``: recorded load under our decisions, other autoscalers' and the best there is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, errors, text_console
from planner.text.words import duration, number

if TYPE_CHECKING:
    from planner.backtest.play import Run
    from planner.backtest.scenario import Prices, Scenario


def backtest(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.json", help="Scenario file; it names its arrivals.", show_default=False)
    ],
    html: Annotated[Path | None, typer.Option(help="Write a page with the picture, too.", show_default=False)] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Play recorded load under several policies in one simulated group, and say what each would have cost.

    Policies: planner, smallest-count (its other rule), keda, flink, hpa-cpu, fixed, and optimum, which knows the
    future. All but the first two are tuned for the scenario with hindsight.
    """
    from planner.backtest.compare import compare
    from planner.documents.backtest import read_scenario

    if html is not None:
        from planner.report.doctor import check_page

        check_page(html)
    with answering(form, output) as answer:
        group, names = read_scenario(scenario)
        runs = compare(group, names, _report)
        if html is not None:
            from planner.report.backtest import write_backtest_page

            write_backtest_page(html, group, runs)
            errors.print(f"planner: page written to {html}")
        if answer.is_text:
            _print(group, runs)
        else:
            answer.write_plain({"policies": [run_document(run, group.prices) for run in runs]})


def run_document(run: "Run", prices: "Prices") -> dict[str, Any]:
    """Return one policy's entry of the answer: hours in consumer-hours, seconds from the begin of the replay."""
    totals = run.totals
    return {
        "policy": run.policy,
        "tuning": run.tuning,
        "hours": round(totals.hours, 4),
        "rebalances": totals.rebalances,
        "moved": totals.moved,
        "duplicates": round(totals.duplicates),
        "late_minutes": totals.late_minutes,
        "worst_wait_s": round(totals.worst_wait_s, 1),
        "cost_h": round(run.cost_h(prices), 4),
        "changes": [[round(second), count] for second, count in run.changes],
    }


def _report(name: str) -> None:
    if errors.is_terminal:
        errors.print(f"planner: playing {name} …", style="dim")


def _print(scenario: "Scenario", runs: "Sequence[Run]") -> None:
    from planner.backtest.compare import OPTIMUM
    from planner.backtest.scenario import STEP_S

    best = next((run.cost_h(scenario.prices) for run in runs if run.policy == OPTIMUM), None)
    played = duration(scenario.steps * STEP_S)
    table = Table(title=f"{played} of {len(scenario.queues)} queues under {scenario.strategy}", title_justify="left")
    headings = ("cost,\nhours", *(("over\noptimum",) if best else ()), "consumer-\nhours", "rebal-\nances")
    table.add_column("policy")
    for heading in (*headings, "late\nminutes", "worst\nwait"):
        table.add_column(heading, justify="right")
    for run in runs:
        totals, cost = run.totals, run.cost_h(scenario.prices)
        over = (f"{cost / best:.2f}",) if best else ()
        figures = (number(totals.hours), number(totals.rebalances), number(totals.late_minutes))
        table.add_row(run.policy, number(cost), *over, *figures, duration(totals.worst_wait_s))
    text_console().print(table)
    for run in runs:
        text_console().print(f"{run.policy}: {run.tuning}.", style="dim")
