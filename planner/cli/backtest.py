"""``planner backtest``: recorded load under our decisions, other autoscalers' and the best there is."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from planner.cli.backtest_loads import (
    Loaded,
    basis_of,
    checked_names,
    keep_scenario,
    of_metrics,
    of_samples,
    past_document,
)
from planner.cli.console import FormatOption, Output, answering, errors, text_console
from planner.cli.metric_reading import (
    AuthoritiesOption,
    BasicAuthOption,
    BearerOption,
    LabelOption,
    MatchOption,
    PastStepOption,
    QueuesEachOption,
    SystemOption,
)
from planner.cli.past_advice import STEP_S, past_request
from planner.cli.plays import DEFAULT_JOBS, JobsOption, play_policies
from planner.errors import BadInputError
from planner.text.words import duration, number

if TYPE_CHECKING:
    from planner.backtest.play import Run
    from planner.backtest.scenario import Prices


def backtest(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENARIO.json]", help="Scenario file; it names its arrivals.", show_default=False),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(help="Play what this server has of --group: http://host:9090.", show_default=False),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="With --prometheus: the group.", show_default=False)
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="With --data: play the group of this policy.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Data folder of planner sample or planner run to look back at.", show_default=False),
    ] = None,
    days: Annotated[float, typer.Option(min=0.02, max=60, help="How far back.")] = 14.0,
    until: Annotated[
        str | None, typer.Option(help="Up to when (ISO 8601).", show_default="now, or the newest sample")
    ] = None,
    step: PastStepOption = STEP_S,
    capacity: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e9,
            help="Messages per second that one consumer can do.",
            show_default="the policy's, or seen while the group was behind",
        ),
    ] = None,
    queues_each: QueuesEachOption = None,
    play: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy to play; may be repeated.",
            show_default="the scenario's, or planner, keda, flink and optimum",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder for the scenario and its arrivals, to change and play again.", show_default=False),
    ] = None,
    system: SystemOption = None,
    match: MatchOption = None,
    label: LabelOption = None,
    bearer_token_file: BearerOption = None,
    basic_auth_file: BasicAuthOption = None,
    ca_file: AuthoritiesOption = None,
    jobs: JobsOption = DEFAULT_JOBS,
    html: Annotated[Path | None, typer.Option(help="Write a page with the picture, too.", show_default=False)] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Play recorded load under several policies in one simulated group, and say what each would have cost.

    The load is that of a scenario file, or a real group's: as a Prometheus server has it, or as the samples of planner
    sample and planner run have it. Then what the group itself cost stands beside the others.

    Policies: planner, smallest-count (its other rule), keda, flink, hpa-cpu, numaflow, druid, schedule, fixed, and
    optimum, which knows the future. All but the first two are tuned for the scenario with hindsight; keda-defaults,
    flink-defaults, numaflow-defaults and druid-defaults are not.
    """
    _check_sources(scenario, prometheus, group, policy, data)
    if scenario is not None and (capacity, queues_each, until) != (None, None, None):
        raise BadInputError(
            "planner backtest: a scenario file states capacity, queues and times itself: leave --capacity, "
            "--queues-each and --until out, or change the file"
        )
    wished = checked_names(play)
    if html is not None:
        from planner.report.doctor import check_page

        check_page(html)
    with answering(form, output) as answer:
        if scenario is not None:
            from planner.documents.backtest import read_scenario

            played, named = read_scenario(scenario)
            loaded = Loaded(played, named)
        elif prometheus is not None:
            access = (prometheus, bearer_token_file, basic_auth_file, ca_file)
            request = past_request(access, group, (system, match, label), (days, step, until), (None, queues_each))
            loaded = of_metrics(replace(request, capacities={group or "": capacity} if capacity else {}))
        else:
            assert policy is not None
            assert data is not None
            loaded = of_samples(data, policy, days, until, capacity)
        names = wished or loaded.names
        if keep is not None:
            keep_scenario(keep, loaded.scenario, names)
        with errors.status(f"playing {', '.join(names)}"):
            runs = list(play_policies(loaded.scenario, names, jobs))
        if html is not None:
            from planner.report.backtest import write_backtest_page

            write_backtest_page(html, loaded.scenario, runs, loaded.recorded)
            errors.print(f"planner: page written to {html}")
        if answer.is_text:
            _print(loaded, runs)
        else:
            policies = [run_document(run, loaded.scenario.prices) for run in runs]
            answer.write_plain({"policies": policies, **past_document(loaded)})


def _check_sources(
    scenario: Path | None, prometheus: str | None, group: str | None, policy: Path | None, data: Path | None
) -> None:
    """Raise ``BadInputError`` unless exactly one source of the load is named, with what belongs to it."""
    given = [source for source in (scenario, prometheus, policy or data) if source is not None]
    if len(given) != 1:
        raise BadInputError(
            f"planner backtest: found {len(given)} sources of the load, expected one of SCENARIO.json, --prometheus "
            "URL with --group NAME, and --data FOLDER with --policy FILE"
        )
    if (prometheus is None) != (group is None):
        raise BadInputError("planner backtest: --prometheus URL and --group NAME go together")
    if (policy is None) != (data is None):
        raise BadInputError("planner backtest: --data FOLDER and --policy FILE go together")


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


def _print(loaded: Loaded, runs: "Sequence[Run]") -> None:
    from planner.backtest.compare import OPTIMUM
    from planner.backtest.scenario import STEP_S

    scenario, recorded = loaded.scenario, loaded.recorded
    best = next((run.cost_h(scenario.prices) for run in runs if run.policy == OPTIMUM), None)
    played = duration(scenario.steps * STEP_S)
    table = Table(title=f"{played} of {len(scenario.queues)} queues under {scenario.strategy}", title_justify="left")
    headings = ("cost,\nhours", *(("over\noptimum",) if best else ()), "consumer-\nhours", "rebal-\nances")
    table.add_column("policy")
    for heading in (*headings, "late\nminutes", "worst\nwait"):
        table.add_column(heading, justify="right")
    if recorded is not None:
        past, cost = recorded.past, recorded.past.cost_h(scenario.prices)
        over = (f"{cost / best:.2f}",) if best else ()
        figures = (number(past.hours), number(past.rebalances), number(past.late_minutes))
        table.add_row("as it was", number(cost), *over, *figures, "–")
    for run in runs:
        totals, cost = run.totals, run.cost_h(scenario.prices)
        over = (f"{cost / best:.2f}",) if best else ()
        figures = (number(totals.hours), number(totals.rebalances), number(totals.late_minutes))
        table.add_row(run.policy, number(cost), *over, *figures, duration(totals.worst_wait_s))
    text_console().print(table)
    for run in runs:
        text_console().print(f"{run.policy}: {run.tuning}.", style="dim")
    if recorded is not None:
        text_console().print(basis_of(recorded), style="dim", soft_wrap=True)
