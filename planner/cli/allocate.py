"""``planner allocate``: the owner of each queue, for one request document or a list of them."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from planner.cli.console import Answer, Format, FormatOption, Output, answering, errors, text_console
from planner.errors import BadInputError
from planner.text.printable import json_text

if TYPE_CHECKING:
    from planner.simulation.changes import Changes

STANDARD_INPUT = "-"
MOST_TABLES = 20
MOST_ROWS = 200
MOST_NAMED = 12
BAR_WIDTH = 20

Document = dict[str, Any]


def allocate(
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Request as JSON, or a list of them; - is standard input.")
    ],
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff", metavar="OTHER", help="Request (or answer) to compare with: shows what moves to get there."
        ),
    ] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say who owns which queue, exactly as the clients would compute it."""
    from planner.documents.allocation import answer as allocation_of
    from planner.documents.allocation import answer_all

    with answering(form, output) as answer:
        requests = read_document(source)
        if isinstance(requests, list):
            answers = answer_all(requests)
            documents: list[Document] = list(answers.documents)
            refused = answers.refused
        else:
            documents, refused = [allocation_of(requests)], []
        if diff is not None:
            documents = _with_changes(documents, _other_side(diff, len(documents)))
        if answer.is_text:
            _print_answers(requests if isinstance(requests, list) else [requests], documents)
        else:
            write_fixed(answer, documents, is_list=isinstance(requests, list))
        _report_problems(documents)
        if refused:
            _say(f"{len(refused)} of {len(documents)} requests are not answered; the first: {refused[0][1]}")
            raise typer.Exit(BadInputError.exit_code)


def read_document(source: str) -> Any:
    """Return the JSON of a file or of standard input; raise ``BadInputError`` with the position of a fault."""
    name = "standard input" if source == STANDARD_INPUT else source
    try:
        content = sys.stdin.buffer.read() if source == STANDARD_INPUT else Path(source).read_bytes()
        return json.loads(content)
    except OSError as error:
        raise BadInputError(f"{name}: cannot be read ({error.strerror}); name a file with a request, or -") from error
    except json.JSONDecodeError as error:
        raise BadInputError(
            f"{name}: line {error.lineno}, column {error.colno}: {error.msg}; expected a request as JSON"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{name}: byte {error.start} is not UTF-8; expected a request as JSON") from error
    except RecursionError as error:
        raise BadInputError(f"{name}: nested too deeply; expected a request as JSON") from error
    except ValueError as error:  # Python reads no integer of more than 4300 digits
        raise BadInputError(f"{name}: a number is too long to be read; expected a request as JSON") from error


def _other_side(source: str, count: int) -> list[Document]:
    """Return the answers to compare with: given as such, or computed from requests."""
    from planner.documents.allocation import answer_all

    document = read_document(source)
    others = document if isinstance(document, list) else [document]
    if len(others) != count:
        raise BadInputError(f"--diff {source}: found {len(others)} requests, expected {count} as in the first document")
    computed = answer_all([{} if _is_answer(other) else other for other in others])
    for index, error in computed.refused:
        if not _is_answer(others[index]):
            raise BadInputError(f"--diff {source}: {error}")
    return [
        other if _is_answer(other) else document for other, document in zip(others, computed.documents, strict=True)
    ]


def _is_answer(document: object) -> bool:
    return isinstance(document, dict) and "assignments" in document


def _with_changes(documents: Sequence[Document], others: Sequence[Document]) -> list[Document]:
    """Return the answers with ``diff`` beside ``assignments``."""
    return [
        document if "error" in document else {**document, "diff": _changes_document(document, other)}
        for document, other in zip(documents, others, strict=True)
    ]


def _changes_document(document: Document, other: Document) -> Document:
    from planner.simulation.changes import changes, net_counts

    difference: Changes[tuple[Any, ...]] = changes(_hashable(document["assignments"]), _hashable(other["assignments"]))
    return {
        "moved": [list(move.queue) for move in difference.moved],
        "changes": [
            {"queue": list(move.queue), "from": list(move.before), "to": list(move.after)} for move in difference.all
        ],
        "kept": difference.kept,
        "clients": {
            client: {"loses": lost, "gains": gained} for client, (lost, gained) in net_counts(difference.all).items()
        },
    }


def _hashable(assignments: object) -> dict[str, list[tuple[Any, ...]]]:
    if not isinstance(assignments, dict):
        raise BadInputError("--diff: found no object under assignments, expected an answer of planner allocate")
    return {client: [tuple(queue) for queue in queues] for client, queues in assignments.items()}


def write_fixed(answer: Answer, documents: Sequence[Document], *, is_list: bool) -> None:
    """Write the answer as the contract has it, without a header; a list has one answer a line of JSON.

    The JSON is ASCII, so that any name survives.
    """
    if answer.format is Format.YAML:
        answer.write_plain(list(documents) if is_list else documents[0])
        return
    lines = [json_text(json.dumps(document, allow_nan=False)) for document in documents]
    sys.stdout.write("[" + ",\n ".join(lines) + "]\n" if is_list else lines[0] + "\n")


def _report_problems(documents: Sequence[Document]) -> None:
    """Say on standard error what a user's own strategy did wrong."""
    for document in documents:
        for problem in document.get("problems", ()):
            _say(problem)


def _say(sentence: str) -> None:
    errors.print(f"planner: {sentence}", style="red")


def _print_answers(requests: Sequence[Any], documents: Sequence[Document]) -> None:
    console = text_console()
    if len(documents) > MOST_TABLES:
        console.print(_summary(requests, documents))
        return
    for index, (request, document) in enumerate(zip(requests, documents, strict=True)):
        if "error" in document:
            console.print(document["error"], style="red", soft_wrap=True)
            continue
        title = _title(request)
        console.print(_table(f"Request {index}: {title}" if len(documents) > 1 else title, document))
        _print_remarks(console, request, document)


def _title(request: Mapping[str, Any]) -> str:
    group = request.get("group")
    return f"{f'Group {group}, ' if group else ''}strategy {request['strategy']}"


def _table(title: str, document: Document) -> Table:
    """Return the consumers with their queues by topic and a bar of their share."""
    assignments: dict[str, list[list[Any]]] = document["assignments"]
    topics = list(dict.fromkeys(queue[0] for queues in assignments.values() for queue in queues))
    most = max((len(queues) for queues in assignments.values()), default=0)
    table = Table(title=title, title_justify="left")
    table.add_column("consumer", overflow="fold")
    table.add_column("queues", justify="right")
    table.add_column("by topic", overflow="fold")
    table.add_column("load", min_width=BAR_WIDTH, no_wrap=True)
    for client, queues in list(assignments.items())[:MOST_ROWS]:
        table.add_row(
            client,
            str(len(queues)) if queues else "idle",
            _tally(queues, topics),
            _bar(len(queues), most),
            style=None if queues else "yellow",
        )
    if len(assignments) > MOST_ROWS:
        table.add_row(f"… and {len(assignments) - MOST_ROWS} more", "", "", "")
    return table


def _tally(queues: Sequence[Sequence[Any]], topics: Sequence[str]) -> str:
    """Return ``T 3, U 1``."""
    counts = {topic: sum(1 for queue in queues if queue[0] == topic) for topic in topics[:MOST_NAMED]}
    text = ", ".join(f"{topic} {count}" for topic, count in counts.items() if count)
    return f"{text}, …" if len(topics) > MOST_NAMED else text


def _bar(count: int, most: int) -> str:
    return "█" * round(BAR_WIDTH * count / most) if most else ""


def _print_remarks(console: Console, request: Mapping[str, Any], document: Document) -> None:
    if unowned := document.get("unowned"):
        text = f"Nobody consumes {_queues(len(unowned))}: {_name_queues(unowned)}"
        console.print(text, style="red", soft_wrap=True)
    for client in _find_repeated(request.get("clients", ())):
        console.print(
            f"Client id {client} is there more than once: each of these processes consumes the same queues, twice.",
            style="red",
            soft_wrap=True,
        )
    if document.get("deterministic") is False:
        console.print("One valid answer of several: the real assignor's hash order decides among them.", style="dim")
    for warning in document.get("warnings", ()):
        console.print(warning, style="yellow", soft_wrap=True)
    if "diff" in document:
        _print_changes(console, document["diff"])


def _find_repeated(clients: Sequence[str]) -> list[str]:
    return [client for client, count in Counter(clients).items() if count > 1]


def _name_queues(queues: Sequence[Sequence[Any]]) -> str:
    text = ", ".join("/".join(map(str, queue)) for queue in queues[:MOST_NAMED])
    return f"{text} and {len(queues) - MOST_NAMED} more" if len(queues) > MOST_NAMED else text


def _queues(count: int) -> str:
    return "1 queue" if count == 1 else f"{count} queues"


def _print_changes(console: Console, diff: Document) -> None:
    changed = len(diff["changes"])
    console.print(f"{_queues(changed)} change{'s' if changed == 1 else ''} owner, {diff['kept']} stay.")
    if not diff["changes"]:
        return
    table = Table()
    for heading in ("queue", "from", "to"):
        table.add_column(heading, overflow="fold")
    for change in diff["changes"][:MOST_ROWS]:
        sides = (" and ".join(change[side]) or "nobody" for side in ("from", "to"))
        table.add_row("/".join(map(str, change["queue"])), *sides)
    if len(diff["changes"]) > MOST_ROWS:
        table.add_row(f"… and {len(diff['changes']) - MOST_ROWS} more", "", "")
    console.print(table)


def _summary(requests: Sequence[Any], documents: Sequence[Document]) -> Table:
    """Return one row a request, when there are too many for a table each."""
    table = Table(title=f"{len(documents)} requests")
    for heading in ("request", "group", "strategy", "consumers", "fewest", "most", "idle", "unowned"):
        table.add_column(heading, overflow="fold")
    for index, (request, document) in enumerate(zip(requests, documents, strict=True)):
        if "error" in document:
            table.add_row(str(index), document["error"], style="red")
            continue
        sizes = [len(queues) for queues in document["assignments"].values()]
        table.add_row(
            str(index),
            str(request.get("group", "")),
            str(request["strategy"]),
            str(len(sizes)),
            str(min(sizes, default=0)),
            str(max(sizes, default=0)),
            str(sizes.count(0)),
            str(len(document.get("unowned", ()))),
        )
    return table
