"""What the commands print and write: every ``--help``, and the path from a recording to its page."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer.main

from planner.cli.main import app, main

ROOT = Path(__file__).parents[2]
WIDTH = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}
OTHERS = ("planner.cli.kubectl", "planner.controller.main")
PATHS = {
    "rocketmq": ("policies/shop-orders.yaml", "captures/two-brokers-day"),
    "kafka": ("kafka/recorded-payments.yaml", "captures/kafka-restart-overload"),
}
STEPS = (
    "snapshot --policy {policy} --capture {capture} -o snap.json",
    "simulate snap.json",
    "simulate snap.json -o json",
    "plan snap.json --policy {policy} --at snapshot -o plan.yaml",
    "explain plan.yaml",
    "explain plan.yaml --verbose",
    "report plan.yaml -o report.html",
    "report snap.json -o snapshot.html",
    "doctor --capture {capture}",
    "doctor --capture {capture} -o json",
)


def words_of_commands() -> Iterator[str]:
    """Yield every command and group of commands, as typed."""
    yield from _below(typer.main.get_command(app), "planner")


def _below(command: Any, words: str) -> Iterator[str]:
    yield words
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from _below(child, f"{words} {name}")


def help_of(words: str) -> str:
    """Return what a command of ``planner`` prints for ``--help``."""
    return run([*words.split()[1:], "--help"])


def help_of_module(module: str) -> str:
    """Return what another console script prints for ``--help``."""
    command = [sys.executable, "-m", module, "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **WIDTH}).stdout


def golden(system: str) -> Iterator[tuple[str, str]]:
    """Yield what each step on the system's recording prints, then what the steps wrote."""
    policy, capture = PATHS[system]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(ROOT / "examples")
        for step in STEPS:
            words = step.format(policy=f"examples/{policy}", capture=f"examples/{capture}")
            yield words, run(shlex.split(words))
        for path in sorted(path for path in Path().iterdir() if path.is_file()):
            yield path.name, path.read_text(encoding="utf-8")


def run(arguments: Sequence[str]) -> str:
    """Return exit code, standard output and errors of one command of ours, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        patch.object(sys, "argv", ["planner", *arguments]),
        patch.dict(os.environ, WIDTH),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return f"exit {code}\n{out.getvalue()}\n{err.getvalue()}"
