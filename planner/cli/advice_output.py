"""What ``planner advise`` leaves: snapshot and page as files, the answer as text or document."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from planner.cli.console import Format, errors, print_json, text_console

if TYPE_CHECKING:
    from planner.advice.answer import Advice
    from planner.cli.concluding import Conclusion


def write_files(
    conclusions: "Sequence[Conclusion]",
    unread: Sequence[tuple[str, str]],
    snapshot: Path | None,
    html: Path | None,
    *,
    is_table: bool,
) -> None:
    """Write the snapshot of the first answer and the page, where they are asked for, and print their names."""
    from planner.documents.data import SNAPSHOT
    from planner.storage.files import write_atomically

    if snapshot is not None:
        write_atomically(snapshot, SNAPSHOT.dump(conclusions[0].snapshot))
        errors.print(f"planner: snapshot written to {snapshot}")
    if html is None:
        return
    from planner.report.advice import write_advice_page

    if is_table:
        write_advice_page(html, [conclusion.advice for conclusion in conclusions], unread)
    else:
        _write_case(html, conclusions[0])
    errors.print(f"planner: page written to {html}")


def _write_case(html: Path, conclusion: "Conclusion") -> None:
    from planner.report.write import write_report

    # The policy in memory needs a name for the Deployment; a page must not show one that nobody stated.
    known = conclusion.advice.deployment is not None
    write_report(
        html,
        conclusion.snapshot,
        conclusion.outcomes,
        conclusion.record if known else replace(conclusion.record, deployment="unknown"),
        conclusion.plan,
        max_utilisation=conclusion.policy.objective.stated_utilisation,
        advice=conclusion.advice,
    )


def print_conclusions(
    conclusions: "Sequence[Conclusion]", unread: Sequence[tuple[str, str]], form: Format, *, is_table: bool
) -> None:
    """Print the answers as text, YAML or JSON; ``is_table`` puts those of all groups, and who was unread, into one."""
    from planner.cli.advise_view import print_advice, print_advices

    advices = [conclusion.advice for conclusion in conclusions]
    if form is not Format.TEXT:
        _print_document(_list_document(advices, unread) if is_table else document(advices[0]), form)
    elif is_table:
        print_advices(text_console(), advices, unread)
    else:
        print_advice(text_console(), advices[0], conclusions[0].policy)


def document(advice: "Advice") -> dict[str, Any]:
    """Return the fixed short form under ``apiVersion`` and ``kind``."""
    from planner.advice.answer import short_form
    from planner.documents.format import API_VERSION

    return {"apiVersion": API_VERSION, "kind": "Advice", **short_form(advice)}


def _list_document(advices: "Sequence[Advice]", unread: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the short forms, each beside the group that it is about, and the groups that could not be read."""
    from planner.advice.answer import short_form
    from planner.documents.format import API_VERSION

    items = [
        {"group": advice.group, "system": advice.system, "cluster": advice.cluster, **short_form(advice)}
        for advice in advices
    ]
    failures = [{"group": group, "reason": reason} for group, reason in unread]
    return {"apiVersion": API_VERSION, "kind": "AdviceList", "items": items, "unread": failures}


def _print_document(value: dict[str, Any], form: Format) -> None:
    if form is Format.JSON:
        print_json(value)
        return
    from planner.documents.yaml import dump_yaml

    typer.echo(dump_yaml(value), nl=False)
