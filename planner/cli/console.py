"""What all commands share: output forms, writing, tables, times and ranges on the command line."""

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from planner.errors import BadInputError

errors = Console(stderr=True, soft_wrap=True)
"""Progress and errors go here, so that standard output stays clean for pipes."""


class OutputForm(StrEnum):
    """How a command prints its answer."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[
    OutputForm, typer.Option("--output", "-o", help="text for people, json for machines.", show_default=True)
]
PolicyFile = Annotated[
    Path, typer.Option("--policy", "-p", help="ConsumerScalingPolicy YAML of the group.", show_default=False)
]


def print_json(value: object) -> None:
    """Print ``value`` as indented JSON on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def text_console() -> Console:
    """Return the console for people's text; it has colours only on a terminal."""
    return Console(highlight=False)


def tell(lines: Iterable[str]) -> None:
    """Print an explanation: the second of its lines is the reason."""
    console = text_console()
    for number, line in enumerate(lines):
        console.print(line, style="bold" if number == 1 else None, markup=False)


def parse_time(text: str, option: str) -> datetime:
    """Return an ISO 8601 time with zone. Raises ``BadInputError`` for anything else."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInputError(f"option {option}: found {text!r}, expected a time like 2026-11-21T10:00:00Z") from None
    if at.tzinfo is None:
        raise BadInputError(f"option {option}: {text!r} has no zone: add Z for UTC or an offset like +01:00")
    return at.astimezone(UTC)


def parse_counts(text: str) -> tuple[int, ...]:
    """Return the counts of ``1..32`` or ``3,5,8`` in ascending order. Raises ``BadInputError``."""
    try:
        if ".." in text:
            first, last = (int(part) for part in text.split(".."))
            counts = tuple(range(first, last + 1))
        else:
            counts = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        counts = ()
    if not counts or counts[0] < 1 or counts[-1] > 10_000:
        raise BadInputError(f"option --counts: found {text!r}, expected 1..32 or 3,5,8, from 1 to 10000")
    return counts


def percent(share: float | None) -> str:
    """Return a share of 1 as a percentage, ``unknown`` for ``None``."""
    return "unknown" if share is None else f"{share:.0%}"


def seconds(value: float | None, without: str = "unknown") -> str:
    """Return seconds for people."""
    return without if value is None else f"{value:.0f} s"
