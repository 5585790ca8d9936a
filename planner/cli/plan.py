"""``planner plan``: decide, and write the plan."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.console import PolicyFile, parse_time, print_json, text_console


def plan(
    snapshot: Annotated[Path, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)],
    policy: PolicyFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File to write, - for YAML or json for JSON on standard output.")
    ],
    at: Annotated[
        str, typer.Option(help="Decide as of this time (ISO 8601), now, or snapshot for the snapshot's own time.")
    ] = "now",
) -> None:
    """Decide on the group's consumer count; write a rollout plan, or the decision when the answer is hold.

    A hold is an answer: exit code 0. Old snapshots hold, so --at snapshot replays a past decision.
    """
    from planner import pipeline
    from planner.documents.data import SNAPSHOT
    from planner.documents.plan import DECISION, PLAN, document_name
    from planner.documents.policy import read_policy
    from planner.storage.files import write_atomically

    taken = SNAPSHOT.read(snapshot)
    wanted = read_policy(policy)
    _check_same_group(taken.group, wanted.spec.source.group, snapshot, policy)
    decided_at = _time(at, taken.at)
    outcomes = pipeline.simulate(taken, wanted)
    record = pipeline.decide(taken, outcomes, wanted, decided_at)
    made = pipeline.plan(taken, record, wanted, outcomes)
    document = (
        pipeline.plan_document(made, record, wanted) if made else DECISION.document(record, document_name(record))
    )
    if output == "json":
        print_json(document)
        return
    text = PLAN.text(document) if made else DECISION.text(document)
    if output == "-":
        typer.echo(text, nl=False)
        return
    write_atomically(Path(output), text)
    console = text_console()
    console.print(record.decision.reason, style="bold", markup=False)
    console.print(f"{'Plan' if made else 'Decision'} written to {output}", markup=False, soft_wrap=True)
    if made:
        console.print(_approval(pipeline.why_no_approval(made, wanted)), markup=False, soft_wrap=True)


def _approval(why_not: Sequence[str]) -> str:
    return f"For a person to approve: {'; '.join(why_not)}." if why_not else "Approved by the policy's criteria."


def _time(text: str, of_snapshot: datetime) -> datetime:
    if text == "now":
        return datetime.now(UTC)
    return of_snapshot if text == "snapshot" else parse_time(text, "--at")


def _check_same_group(found: str, wanted: str, snapshot: Path, policy: Path) -> None:
    from planner.errors import BadInputError

    if found != wanted:
        raise BadInputError(
            f"{snapshot} is of group {found}, but policy {policy} is for group {wanted}: use two that belong together"
        )
