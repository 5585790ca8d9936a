"""Command-line arguments that several apps take."""

import argparse
from datetime import UTC, datetime
from functools import partial

from planner.errors import BadInputError
from planner.storage.layout import local_folder

KEEP_DAYS = 30
"""For how many days the lag history is kept where no argument says otherwise."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that every app's arguments are added to."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument(
        "--data", type=partial(local_folder, name="--data"), required=True, help="data folder: samples, history, runs"
    )
    arguments.add_argument("--history", default="", help="URI of the lag history, where it is not <data>/history")
    return arguments


def add_history_arguments(arguments: argparse.ArgumentParser) -> None:
    """Add what the stage *history* must be told beside its folders."""
    arguments.add_argument("--sample-every", type=float, required=True, help="sampling period in seconds")
    arguments.add_argument("--keep-days", type=days, default=KEEP_DAYS, help="older days go (%(default)s)")


def add_policies(arguments: argparse.ArgumentParser) -> None:
    """Add the folder of policies."""
    policies = partial(local_folder, name="--policies")
    arguments.add_argument("--policies", type=policies, required=True, help="folder of ConsumerScalingPolicy files")


def run_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for apps that work on one run of a folder of policies."""
    arguments = parser(description)
    add_policies(arguments)
    arguments.add_argument("--at", type=time, required=True, help="time that the run's snapshots speak of")
    return arguments


def time(text: str) -> datetime:
    """Return an ISO 8601 time with zone, in UTC. Raises ``BadInputError`` for anything else."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadInputError(f"time {text!r}: expected one with zone like 2026-11-21T10:00:00Z")
    return at.astimezone(UTC)


def days(text: str) -> int:
    """Return a number of days, at least 1. Raises ``BadInputError`` for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise BadInputError(f"{text!r} days to keep: expected a whole number of at least 1")
    return int(text)
