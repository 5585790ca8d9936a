"""``planner airflow``: is this machine one that Airflow can run the planner on?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from planner.cli.console import Answer, FormatOption, Output, answering, print_help_alone, text_console
from planner.cli.examples import epilog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.orchestration.checks import CheckResult

app = typer.Typer(
    name="airflow",
    help="Check an Airflow installation for the planner's DAGs.",
    invoke_without_command=True,
)


@app.callback()
def _options(context: typer.Context) -> None:
    print_help_alone(context)


@app.command("check", epilog=epilog("airflow check"))
def check(
    policies: Annotated[
        str, typer.Option(help="Folder of policies.", envvar="CONSUMER_PLANNER_POLICIES")
    ] = "/etc/consumer-planner/policies",
    data: Annotated[
        str, typer.Option(help="Folder of samples, history and plans.", envvar="CONSUMER_PLANNER_DATA")
    ] = "/var/lib/consumer-planner",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="The account that hands plans over; without it that right is not asked for.",
            envvar="CONSUMER_PLANNER_KUBECONFIG",
            show_default=False,
        ),
    ] = None,
    spark_seconds: Annotated[float, typer.Option(min=1, help="How long the Spark job may take.")] = 300.0,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Prove one by one what the DAGs need, where their tasks would run: one sentence each. Changes nothing.

    Airflow, DAGs, packages, Java, Spark (a job of one row), folders (a file is written and removed), policies, brokers
    (each group is read once), Kubernetes rights. Does not stop at the first that is not well.

    Exit code 0 when all is well, 1 when something is not, 2 bad usage.
    """
    from planner.orchestration.checks import CheckSettings, run_checks

    settings = CheckSettings(policies, data, kubeconfig, spark_seconds)
    with answering(form, output) as answer:
        is_good = _show(answer, run_checks(settings))
        if not is_good:
            raise typer.Exit(1)


def _show(answer: Answer, results: "Iterator[CheckResult]") -> bool:
    """Print the results, as text each at once; return whether all are well."""
    if answer.is_text:
        return _print(results)
    listed = list(results)
    is_good = all(result.is_good for result in listed)
    checks = [{"check": result.check, "ok": result.is_good, "sentence": result.sentence} for result in listed]
    answer.write("AirflowCheck", {"ok": is_good, "checks": checks})
    return is_good


def _print(results: "Iterable[CheckResult]") -> bool:
    console, problems = text_console(), 0
    for result in results:
        mark = Text("ok    ", "green") if result.is_good else Text("not ok", "bold red")
        console.print(Text.assemble(mark, "  ", (f"{result.check:<10}", "bold"), "  ", result.sentence), soft_wrap=True)
        problems += not result.is_good
    return problems == 0
