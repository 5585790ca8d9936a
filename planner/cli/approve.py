"""``planner approve``: allow exactly one plan, by its digest."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.console import Output, OutputForm, print_json, text_console


def approve(
    plan: Annotated[Path, typer.Argument(help="Plan file of planner plan; the approval is written into it.")],
    digest: Annotated[
        str | None, typer.Option(help="Approve only if the plan still has this digest.", show_default=False)
    ] = None,
    confirm: Annotated[
        list[str] | None,
        typer.Option(help="The phrase of a step that writes offsets, word by word; once for each.", show_default=False),
    ] = None,
    output: Output = OutputForm.TEXT,
) -> None:
    """Approve a plan: write the digest of what is approved into its file.

    Any later change of the plan ends the approval. Exit code 1 when the plan holds no longer.
    """
    from planner.documents.approve import approval_of, approved, check_approvable, digest_in
    from planner.documents.plan import PLAN, read_document
    from planner.storage.files import write_atomically

    document = read_document(plan)
    made = PLAN.parse(document, str(plan))
    found = digest_in(document)
    phrases = tuple(confirm or ())
    check_approvable(made, found, digest, phrases, datetime.now(UTC))
    is_new = approval_of(document) != found or bool(phrases)
    if is_new:
        write_atomically(plan, PLAN.text(approved(document, phrases)))
    if output is OutputForm.JSON:
        print_json({"file": str(plan), "digest": found, "was_approved": not is_new})
        return
    console = text_console()
    console.print(made.reason, style="bold", markup=False)
    said = "Approved" if is_new else "Approved already"
    console.print(f"{said}: {plan} with digest {found}", markup=False, soft_wrap=True)
    console.print(f"It holds until {made.valid_until:%Y-%m-%d %H:%M:%S %Z}.", markup=False)
