"""Questions on a terminal: an answer that is refused is explained in one sentence, and the question comes again."""

import contextlib
import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from planner.cli.console import errors
from planner.errors import BadInputError, MissingExtraError, OutOfReachError, PlannerError
from planner.text.printable import one_line

_T = TypeVar("_T")


def can_ask() -> bool:
    """Return whether a person sees the questions, which go to standard error, and can answer them."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, check: Callable[[str], _T], *, option: str, default: str | None = None) -> _T:
    """Return what ``check`` makes of the first answer that it does not refuse; an empty answer is the default.

    ``option`` is what says the same on the command line. Raises ``BadInputError`` where the person ends the input
    (Ctrl-C or Ctrl-D), and the refusals that no other answer mends (``is_mendable``).
    """
    while True:
        answer = _answer(question, option, default)
        try:
            return check(answer)
        except PlannerError as error:
            if not is_mendable(error):
                raise
            show_refusal(error)


def is_mendable(error: PlannerError) -> bool:
    """Return whether another answer may do: the input was wrong, or nobody was reached at the address."""
    return isinstance(error, BadInputError | OutOfReachError) and not isinstance(error, MissingExtraError)


def show_refusal(error: PlannerError) -> None:
    """Print why an answer is refused."""
    errors.print(f"planner: {error}", style="red")


def _answer(question: str, option: str, default: str | None) -> str:
    # Prompts write some of their text to standard output, where the policy may go.
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return str(typer.prompt(one_line(question), default=default, show_default=bool(default), err=True)).strip()
    except typer.Abort:
        errors.print()
        raise BadInputError(f"no answer to the question {question!r}: give it as {option}") from None
