"""The command line's entry point: commands, and errors as one sentence with an exit code."""

import sys
from typing import Annotated

import typer

from planner import __version__
from planner.cli import (
    abort,
    absent,
    advise,
    allocate,
    apply,
    approve,
    doctor,
    explain,
    forecast,
    history,
    init,
    migrate,
    plan,
    report,
    simulate,
    snapshot,
    status,
    verify,
)
from planner.cli.console import errors
from planner.errors import PlannerError

app = typer.Typer(
    name="planner",
    help="Predict what a change in the number of consumers does, and plan the change that costs least.",
    epilog=absent.epilog(),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("advise")(advise.advise)
app.command("allocate")(allocate.allocate)
app.command("forecast")(forecast.forecast)
app.command("init")(init.init)
app.command("snapshot")(snapshot.snapshot)
app.command("simulate")(simulate.simulate)
app.command("plan")(plan.plan)
app.add_typer(migrate.app)
app.command("explain")(explain.explain)
app.command("approve")(approve.approve)
app.command("apply")(apply.apply)
app.command("status")(status.status)
app.command("abort")(abort.abort)
app.command("verify")(verify.verify)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)
app.command("history")(history.history)
absent.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planner {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Exit codes: 0 done, 1 the answer is negative, 2 bad usage or input, 3 a needed system is out of reach."""


def main() -> None:
    """Run the command line; a ``PlannerError`` ends as one sentence on stderr and its own exit code."""
    try:
        app(apply.with_dry_run_mode(sys.argv[1:]))
    except PlannerError as error:
        errors.print(f"planner: {error}", style="red", markup=False, highlight=False)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe went away (planner … | head): nothing is wrong with the answer.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
