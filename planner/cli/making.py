"""What the commands that make plans share: what they read, the time they are about, and where the plan goes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.console import STANDARD_OUTPUT, Answer, Format, parse_time, print_json
from planner.errors import BadInputError
from planner.text.words import and_list

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot

SnapshotFile = Annotated[Path, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)]
PlanOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write; - or json prints the whole document on standard output instead. Without it nothing is "
        "written, and the answer alone is printed.",
        show_default=False,
    ),
]
Forecasts = Annotated[
    Path | None,
    typer.Option("--data", help="Data folder: calibration/ below it has how the group's earlier forecasts did."),
]
At = Annotated[str, typer.Option(help="Decide as of this time (ISO 8601), now, or snapshot for the snapshot's own.")]


def read_pair(snapshot: Path, policy: Path) -> "tuple[GroupSnapshot, ConsumerScalingPolicy]":
    """Return what the files hold. Raises ``BadInputError`` when one is wrong, or when they are of two groups.

    Two systems, clusters or Deployments are refused, too: no plan for one rests on observations of the other. So are
    pods that were matched with members by another label: the plan would stop others.
    """
    from planner.cli.policy_reading import read_policy, spelt
    from planner.documents.data import SNAPSHOT

    taken, parsed_policy = SNAPSHOT.read(snapshot), read_policy(policy)
    for observed, expected in _subjects(taken, parsed_policy):
        if observed != expected:
            raise BadInputError(
                f"{snapshot} is of {observed}, but policy {spelt(policy)} is for {expected}: use two that belong "
                "together"
            )
    return taken, parsed_policy


def _subjects(taken: "GroupSnapshot", policy: "ConsumerScalingPolicy") -> Iterator[tuple[str, str]]:
    """Yield what the snapshot is of beside what the policy is for; the Deployment only where the snapshot has one."""
    source, deployment = policy.spec.source, taken.deployment
    yield f"group {taken.group}", f"group {source.group}"
    yield f"{taken.system} group {taken.group}", f"{source.system} group {source.group}"
    yield f"group {taken.group} of cluster {taken.cluster}", f"group {source.group} of cluster {source.cluster}"
    if deployment is None:
        return
    kind, names = policy.spec.target_kind, and_list(policy.spec.target_names)
    yield f"{deployment.kind} {deployment.name}", f"{kind} {names}"
    yield f"{deployment.workload}", f"{kind} {policy.metadata.namespace}/{names}"
    if taken.member_label is not None:
        yield _pods_by(taken.member_label), _pods_by(policy.snapshot_settings.member_label)


def _pods_by(label: str | None) -> str:
    """Return how pods are matched with members."""
    return f"pods matched by label {label}" if label else "pods matched without a label"


def made_at(text: str, of_snapshot: datetime) -> datetime:
    """Return the time that ``--at`` names."""
    if text == "now":
        return datetime.now(UTC)
    return of_snapshot if text == "snapshot" else parse_time(text, "--at")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a document goes, and how its summary is printed.

    ``file`` is the file to write. ``document`` is the form of the whole document on standard output, ``None`` where a
    summary is printed there instead, in the form ``summary``.
    """

    file: Path | None
    document: Format | None
    summary: Format = Format.TEXT

    @property
    def answer(self) -> Answer | None:
        """How the summary is printed, ``None`` where the document itself goes to standard output."""
        return Answer(self.summary) if self.document is None else None


def destination_of(output: str | None, form: Format | None, own: Format = Format.YAML) -> Destination:
    """Return what ``--output`` and ``--format`` ask for; ``own`` is the document's form on standard output (``-``).

    ``--format`` is the form of whatever is printed: of the summary where a file is written, else of the document.
    Raises ``BadInputError`` for a folder, and for two forms that contradict each other.
    """
    if output is None:
        return Destination(None, None, form or Format.TEXT)
    if output in (STANDARD_OUTPUT, *Format):
        named = own if output == STANDARD_OUTPUT else Format(output)
        if output != STANDARD_OUTPUT and form not in (None, named):
            raise BadInputError(f"--format {form} and --output {output} contradict each other: leave one out")
        chosen = form or named
        return Destination(None, None) if output == Format.TEXT else Destination(None, _machine(chosen, own))
    if Path(output).is_dir():
        raise BadInputError(f"--output {output} is a folder, expected a file: add a name, like answer.{own}")
    return Destination(Path(output), None, form or Format.TEXT)


def _machine(form: Format, own: Format) -> Format:
    return own if form is Format.TEXT else form


def write_document(document: Mapping[str, Any], content: str | bytes, to: Destination) -> None:
    """Write the document where it goes; nothing where only the summary is asked for.

    ``content`` is what a file holds: YAML as text, or JSON as bytes.
    """
    from planner.documents.yaml import dump_yaml
    from planner.storage.files import write_atomically

    if to.document is Format.JSON:
        print_json(document)
    elif to.document is not None:
        typer.echo(content if isinstance(content, str) else dump_yaml(document), nl=False)
    elif to.file is not None:
        write_atomically(to.file, content)


def snapshot_beside(plan: Path) -> Path:
    """Return the file beside a plan for the snapshot that it rests on, where that is not the one that was read."""
    return plan.with_name(f"{plan.stem}.snapshot.json")


def approval(why_not: Sequence[str]) -> str:
    """Return who approves the plan."""
    return f"For a person to approve: {'; '.join(why_not)}." if why_not else "Approved by the policy's criteria."
