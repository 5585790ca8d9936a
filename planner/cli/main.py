"""The command line's entry point: commands, and errors as one sentence with an exit code."""

import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer

from planner import __version__
from planner.cli import (
    abort,
    advise,
    airflow,
    allocate,
    apply,
    approve,
    backtest,
    demand,
    doctor,
    explain,
    forecast,
    history,
    init,
    migrate,
    plan,
    refresh,
    report,
    run,
    sample,
    simulate,
    snapshot,
    status,
    verify,
)
from planner.cli.console import errors, print_help_alone
from planner.cli.examples import epilog
from planner.errors import BadInputError, PlannerError, StorageError

app = typer.Typer(
    name="planner",
    help="Predict what a change in the number of consumers does, and plan the change that costs least.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("advise")(advise.advise)
app.command("allocate", epilog=epilog("allocate"))(allocate.allocate)
app.command("forecast", epilog=epilog("forecast"))(forecast.forecast)
app.command("init")(init.init)
app.command("snapshot", epilog=epilog("snapshot"))(snapshot.snapshot)
app.command("simulate", epilog=epilog("simulate"))(simulate.simulate)
app.command("demand", epilog=epilog("demand"))(demand.demand)
app.command("plan", epilog=epilog("plan"))(plan.plan)
app.add_typer(migrate.app)
app.command("refresh", epilog=epilog("refresh"))(refresh.refresh)
app.command("explain", epilog=epilog("explain"))(explain.explain)
app.command("approve", epilog=epilog("approve"))(approve.approve)
app.command("apply", epilog=epilog("apply"))(apply.apply)
app.command("status", epilog=epilog("status"))(status.status)
app.command("abort", epilog=epilog("abort"))(abort.abort)
app.command("verify", epilog=epilog("verify"))(verify.verify)
app.command("run", epilog=epilog("run"))(run.run)
app.command("sample", epilog=epilog("sample"))(sample.sample)
app.command("backtest", epilog=epilog("backtest"))(backtest.backtest)
app.command("report", epilog=epilog("report"))(report.report)
app.command("doctor", epilog=epilog("doctor"))(doctor.doctor)
app.command("history", epilog=epilog("history"))(history.history)
app.add_typer(airflow.app)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"planner {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Predict what a change in the number of consumers does, and plan the change that costs least.

    Exit codes: 0 done, 1 the answer is negative, 2 bad usage or input, 3 a needed system is out of reach.
    """
    print_help_alone(context)


def main() -> None:
    """Run the command line; a ``PlannerError`` ends as one sentence on stderr and its own exit code."""
    end_with_exit_code(lambda: app(apply.with_dry_run_mode(sys.argv[1:])))


def end_with_exit_code(command: Callable[[], object]) -> None:
    """Run a command of ours, and end the process as docs/commands.md says: one sentence and an exit code."""
    try:
        _run(command)
    except PlannerError as error:
        errors.print(f"planner: {error}", style="red")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe went away (planner … | head): nothing is wrong with the answer.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _end_without_an_answer(error)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Without a file's name only standard output fails so: ``write_atomically`` has errors of its own."""


_STORE: Final = re.compile(r"(s3[an]?|gc?s|abfss?|wasbs?|adl|(web)?hdfs|viewfs|oss|cosn?|s?ftp|file):/", re.IGNORECASE)
"""How the URI of a store begins, also with one slash. Servers of metrics have URLs of their own, which options take."""


def refuse_stores(words: Sequence[str]) -> None:
    """Raise ``BadInputError`` for the URI of a store where a file or folder is named: none is read or written yet."""
    for number, word in enumerate(words):
        option, sign, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if _STORE.match(value):
            before = words[number - 1] if number else ""
            name = option if sign else before if before.startswith("-") else "the argument"
            raise BadInputError(
                f"{name} is {value}: only files and folders of this machine can be read and written here: mount the "
                "store and give its path"
            )


def _run(command: Callable[[], object]) -> None:
    refuse_stores(sys.argv[1:])
    try:
        command()
    finally:
        sys.stdout.flush()


def _end_without_an_answer(error: OSError) -> None:
    """Say that standard output takes nothing; Python would try it again, and complain, at its own end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    errors.print(f"planner: standard output cannot be written ({error.strerror}): free some space, then run again")
    sys.exit(StorageError.exit_code)


if __name__ == "__main__":
    main()
