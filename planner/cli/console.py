"""What all commands share: output forms, writing, tables, times and ranges on the command line."""

import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.screen import Screen
from planner.errors import BadInputError
from planner.text import words
from planner.text.printable import json_text
from planner.text.words import did_you_mean

errors = Screen(stderr=True, soft_wrap=True)
"""Progress and errors go here, so that standard output stays clean for pipes."""


class Format(StrEnum):
    """How a command prints its answer."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help="text for people, json or yaml for machines. [default: text]", show_default=False),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write instead of standard output; -o json is short for --format json.",
        show_default=False,
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Every count with its own figures, not only a screen.")]
SUFFIXES = {".json": Format.JSON, ".yaml": Format.YAML, ".yml": Format.YAML}
STANDARD_OUTPUT = "-"
PolicyFile = Annotated[
    Path,
    typer.Option(
        "--policy",
        "-p",
        help="ConsumerScalingPolicy of the group: a file, or k8s://NAMESPACE/NAME.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """The form of a command's answer; ``is_bare`` after ``-o json``, which prints lists without a header, as ever."""

    format: Format
    is_bare: bool = False

    @property
    def is_text(self) -> bool:
        """Return whether people read the answer."""
        return self.format is Format.TEXT

    def write(self, kind: str, body: Mapping[str, Any] | Sequence[Any]) -> None:
        """Print the body under ``apiVersion`` and ``kind``, a list as ``items``; a bare answer has the list alone."""
        from planner.documents.format import API_VERSION

        if isinstance(body, Mapping):
            self.write_plain({"apiVersion": API_VERSION, "kind": kind, **body})
        else:
            self.write_plain(body if self.is_bare else {"apiVersion": API_VERSION, "kind": kind, "items": body})

    def write_plain(self, value: object) -> None:
        """Print ``value`` as it is, as JSON or YAML."""
        if self.format is Format.YAML:
            from planner.documents.yaml import dump_yaml

            sys.stdout.write(dump_yaml(value))
        else:
            print_json(value)


@contextmanager
def answering(chosen: Format | None, output: str | None) -> Iterator[Answer]:
    """Give the form that ``--format`` and ``--output`` ask for; what is printed meanwhile goes into the file, if any.

    A negative answer (``typer.Exit``) is written, too; after an error there is no file. Raises ``BadInputError`` for a
    folder or a word that is neither a form nor the name of a file.
    """
    path = check_output(chosen, output)
    if path is None:
        short = None if output in (None, STANDARD_OUTPUT) else Format(output)
        yield Answer(short or chosen or Format.TEXT, is_bare=short is not None)
    else:
        buffer = io.StringIO()
        try:
            with redirect_stdout(buffer):
                yield Answer(chosen or SUFFIXES.get(path.suffix, Format.TEXT))
        except typer.Exit:
            _write(path, buffer.getvalue())
            raise
        _write(path, buffer.getvalue())


def check_output(chosen: Format | None, output: str | None) -> Path | None:
    """Return the file that ``--output`` names, ``None`` for standard output: at once, before anybody waits for a watch.

    Raises ``BadInputError`` for a folder, for what is neither a form nor the name of a file, and for two forms.
    """
    if output is None or output == STANDARD_OUTPUT:
        return None
    if output not in tuple(Format):
        return output_file(output)
    if chosen not in (None, output):
        raise BadInputError(f"--format {chosen} and --output {output} contradict each other: leave one out")
    return None


def output_file(name: str) -> Path:
    """Return the file that ``--output`` names. Raises ``BadInputError`` for a folder, or what looks like no file."""
    path = Path(name)
    if path.is_dir():
        raise BadInputError(f"--output {name} is a folder, expected a file: write {path / 'answer.json'}, for example")
    if not path.suffix and path.name == name:
        close = did_you_mean(name, tuple(Format))
        raise BadInputError(f"--output {name}: expected text, json, yaml, or a file name with its ending{close}")
    return path


def _write(path: Path, text: str) -> None:
    from planner.storage.files import write_atomically

    write_atomically(path, text)
    errors.print(f"planner: written to {path}")


def print_json(value: object) -> None:
    """Print ``value`` as indented JSON on standard output."""
    sys.stdout.write(json_text(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def text_console(width: int | None = None) -> Screen:
    """Return the console for people's text, as wide as asked for or as the terminal; it has colours only there."""
    return Screen(width=width)


def print_explanation(lines: Iterable[str], style: str = "green") -> None:
    """Print an explanation whose first line is the decision, in colour on a terminal; what is unknown is dim."""
    console = text_console()
    for number, line in enumerate(lines):
        emphasis = f"bold {style}" if number == 0 else "dim" if line.startswith("Unknown: ") else None
        console.print(line, style=emphasis)


def print_next(command: str | None) -> None:
    """Print the reader's next command as the last line, whole, so that it can be copied; nothing for ``None``."""
    if command is not None:
        text_console().print(f"Next: {command}", style="bold", soft_wrap=True)


def print_help_alone(context: typer.Context) -> None:
    """Print the help of a command that has sub-commands when none is named: that is no error."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


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
            first, last = (int(number) for number in text.split(".."))
            counts = tuple(range(first, last + 1))
        else:
            counts = tuple(sorted({int(number) for number in text.split(",")}))
    except ValueError:
        counts = ()
    if not counts or counts[0] < 1 or counts[-1] > 10_000:
        raise BadInputError(f"option --counts: found {text!r}, expected 1..32 or 3,5,8, from 1 to 10000")
    return counts


def seconds(value: float | None, without: str = words.UNKNOWN) -> str:
    """Return a span of seconds for people, ``without`` for ``None``."""
    return without if value is None else words.duration(value)
