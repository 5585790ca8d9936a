"""What the commands that make plans share: what they read, the time they speak of, and where the plan goes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.console import parse_time, print_json
from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot

SnapshotFile = Annotated[Path, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)]
PlanOutput = Annotated[
    str, typer.Option("--output", "-o", help="File to write, - for YAML or json for JSON on standard output.")
]
Forecasts = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Data folder: tells how the group's earlier forecasts did, from calibration/ below it."
    ),
]
At = Annotated[str, typer.Option(help="Decide as of this time (ISO 8601), now, or snapshot for the snapshot's own.")]


def read_pair(snapshot: Path, policy: Path) -> "tuple[GroupSnapshot, ConsumerScalingPolicy]":
    """Return what the files hold. Raises ``BadInputError`` when one is wrong, or when they speak of two groups."""
    from planner.documents.data import SNAPSHOT
    from planner.documents.policy import read_policy

    taken, wanted = SNAPSHOT.read(snapshot), read_policy(policy)
    if taken.group != wanted.spec.source.group:
        raise BadInputError(
            f"{snapshot} is of group {taken.group}, but policy {policy} is for group {wanted.spec.source.group}: "
            "use two that belong together"
        )
    return taken, wanted


def made_at(text: str, of_snapshot: datetime) -> datetime:
    """Return the time that ``--at`` names."""
    if text == "now":
        return datetime.now(UTC)
    return of_snapshot if text == "snapshot" else parse_time(text, "--at")


def write_plan(document: dict[str, Any], text: str, output: str) -> bool:
    """Write the document where ``--output`` says; return whether that was a file, so that people may be told more."""
    from planner.storage.files import write_atomically

    if output == "json":
        print_json(document)
    elif output == "-":
        typer.echo(text, nl=False)
    else:
        write_atomically(Path(output), text)
    return is_file(output)


def is_file(output: str) -> bool:
    """Return whether ``--output`` names a file; else the plan goes to standard output."""
    return output not in ("json", "-")


def snapshot_beside(plan: Path) -> Path:
    """Return the file beside a plan for the snapshot that it rests on, where that is not the one that was read."""
    return plan.with_name(f"{plan.stem}.snapshot.json")


def approval(why_not: Sequence[str]) -> str:
    """Return who approves the plan."""
    return f"For a person to approve: {'; '.join(why_not)}." if why_not else "Approved by the policy's criteria."
