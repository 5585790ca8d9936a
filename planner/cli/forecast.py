"""``planner forecast``: what one change does, for one request document or a list of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from planner.cli.allocate import read_document, write_fixed
from planner.cli.console import FormatOption, Output, answering, errors, text_console
from planner.cli.forecast_subscription import subscription_lines
from planner.errors import BadInputError, PlannerError
from planner.forecast.words import CAUSES, count_between, messages_between, seconds_between
from planner.text.words import queue_nouns

if TYPE_CHECKING:
    from planner.forecast.trials import Document

MOST_ROWS = 40
MOST_CAUSES = 3
MOST_NAMED = 4
PAUSE = "pause_s"
WORST_FIRST = ("p95", "p50", "p05")


def forecast(
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Request as JSON, or a list of them; - is standard input.")
    ],
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what one change does: moved queues, pause, duplicates, burst, and when the group has settled."""
    from planner.documents.forecast import forecast as forecast_of
    from planner.documents.forecast import forecast_all

    with answering(form, output) as answer:
        requests = read_document(source)
        is_list = isinstance(requests, list)
        answers = forecast_all(requests) if is_list else None
        documents = list(answers.documents) if answers else [forecast_of(requests)]
        if answer.is_text:
            _print_forecasts(requests if is_list else [requests], documents)
        else:
            write_fixed(answer, documents, is_list=is_list)
        if answers and answers.refused:
            refused = answers.refused
            text = f"{len(refused)} of {len(documents)} requests are not answered; the first: {refused[0][1]}"
            errors.print(f"planner: {text}", style="red")
            raise typer.Exit(BadInputError.exit_code)


def _print_forecasts(requests: Sequence[Any], documents: Sequence["Document"]) -> None:
    console = text_console()
    for request, document in zip(requests, documents, strict=True):
        if "error" in document:
            console.print(document["error"], style="red", soft_wrap=True)
            continue
        console.print(sentence(document, _noun(request)), soft_wrap=True, style="bold")
        for warning in document["warnings"]:
            console.print(warning[:1].upper() + warning[1:] + ".", style="yellow", soft_wrap=True)
        for line in subscription_lines(document, _noun(request)):
            console.print(line, soft_wrap=True)
        if document["timeline"]:
            console.print(_timeline(document["timeline"]))
        _print_causes(console, request, document)


def _noun(request: object) -> str:
    """Return what the request's system calls a unit of ownership."""
    return queue_nouns(str(request.get("system")) if isinstance(request, Mapping) else "")


def sentence(document: Mapping[str, Any], noun: str = "queues") -> str:
    """Return the result as one sentence; ``noun`` is what the system calls a queue."""
    total, moved = document["total"], len(document["moved"])
    owned = [queue for queues in document["before"].values() for queue in queues]
    # A client with a whole broker has queue -1 of it: how many queues that are, the answer does not contain.
    of_all = "" if any(queue[-1] < 0 for queue in owned) else f"of {len({json.dumps(queue) for queue in owned})} "
    if not moved and not document["queues"]:
        duplicates = [
            *(_duplicates(total) if total["duplicates"] and total["duplicates"]["p95"] else []),
            *_redeliveries(document),
        ]
        return "; ".join(["Nothing moves, nothing pauses", *duplicates]) + "."
    clauses = [f"{_range(total['moved_queues'])} {of_all}{noun} move"]
    lost = sum(queue["from"] is not None and queue["to"] is None for queue in document["queues"])
    if lost:
        clauses.append(f"{lost} {'has' if lost == 1 else 'have'} no consumer afterwards")
    if moved and total["pause_s"]:
        clauses.append(f"the longest pause is {_seconds(document, 'pause_s')}")
    if total["stall_s"] and total["stall_s"]["p95"] > 0:
        clauses.append(f"{noun} that stay stall up to {_seconds(document, 'stall_s')}")
    clauses.extend(_duplicates(total))
    clauses.extend(_redeliveries(document))
    if moved:
        clauses.extend(_due(total, noun))
    if total["settle_s"]:
        clauses.append(f"settled after {_seconds(document, 'settle_s')}")
    if total["drained_s"] and total["drained_s"]["p95"] > 0:
        clauses.append(f"no backlog is left after {seconds(total['drained_s'])}")
    return "; ".join(clauses) + "."


def _seconds(document: Mapping[str, Any], figure: str) -> str:
    """Return a figure's interval; one with a long tail as what usually comes, and the tail with its share and cause."""
    tail = document.get("tails", {}).get(figure)
    if tail is None:
        return seconds(document["total"][figure])
    why = f" ({CAUSES[tail['cause']]})" if tail.get("cause") in CAUSES else ""
    return f"{seconds(tail['usual'])}, in {tail['share']:.0%} of cases {seconds(tail['late'])}{why}"


def _duplicates(total: Mapping[str, Any]) -> Iterator[str]:
    if total["duplicates"]:
        yield f"{counted(total['duplicates'])} come twice"


def _due(total: Mapping[str, Any], noun: str) -> Iterator[str]:
    if total["burst_messages"]:
        yield f"{counted(total['burst_messages'])} are due when the moved {noun} start again"


def _redeliveries(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a POP group's broker redelivers: it has fields of its own."""
    if (document.get("late_messages") or {}).get("p95"):
        yield f"{counted(document['late_messages'])} come late"
    if document.get("redelivered_s"):
        yield f"the last of them after {seconds(document['redelivered_s'])}"


def seconds(interval: Mapping[str, float] | None) -> str:
    """Return ``0.3–0.6 s``, the bounds of the 90 % interval."""
    return "unknown" if interval is None else seconds_between(interval["p05"], interval["p95"])


def counted(interval: Mapping[str, int]) -> str:
    """Return ``12–25 messages``."""
    return messages_between(interval["p05"], interval["p95"])


def _range(interval: Mapping[str, int]) -> str:
    return count_between(interval["p05"], interval["p95"])


def _timeline(events: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="What is noticed, and when", title_justify="left")
    table.add_column("after", justify="right", no_wrap=True)
    table.add_column("what happens", overflow="fold")
    for event in events[:MOST_ROWS]:
        table.add_row(seconds(event["at_s"]), _happening(event))
    if len(events) > MOST_ROWS:
        table.add_row("", f"… and {len(events) - MOST_ROWS} more; -o json has them")
    return table


HAPPENINGS = {
    "starts": "starts",
    "registers": "registers at {broker}",
    "ends": "gets its signal or dies",
    "stops": "delivers its last message",
    "removed": "is removed from {broker}'s member list",
    "drops": "drops {queues}",
    "takes": "takes {queues}",
    "delivers": "delivers {queues}",
    "joins": "asks to join",
    "sleeps": "stands still",
    "wakes": "goes on",
    "loses": "is cut off",
    "returns": "is connected again",
    "leaves": "is out of the group",
    "assigns": "has everybody back and assigns",
}
"""Events of the timeline in words."""


def _happening(event: Mapping[str, Any]) -> str:
    queues = ["/".join(map(str, queue)) for queue in event.get("queues", ())]
    named = ", ".join(queues[:MOST_NAMED]) + (
        f" and {len(queues) - MOST_NAMED} more" if len(queues) > MOST_NAMED else ""
    )
    words = HAPPENINGS.get(event["event"], event["event"])
    return f"{event['client']} {words.format(broker=event.get('broker', ''), queues=named)}"


def _print_causes(console: Console, request: Mapping[str, Any], document: "Document") -> None:
    for cause in document["causes"][:MOST_CAUSES]:
        of_what = " of a pause" if cause["effect"] == PAUSE else " duplicates"
        console.print(
            f"• {_amount(cause)}{of_what} ({cause['share']:.0%}): {CAUSES.get(cause['cause'], cause['cause'])}.",
        )
        for line in _remedy(request, document, cause):
            console.print(f"  {line}", style="green", soft_wrap=True)


def _amount(cause: Mapping[str, Any], amount: float | None = None) -> str:
    """Return a cause's mean, or another amount of its effect: ``0.75 s``, ``32.6``."""
    shown = cause["mean"] if amount is None else amount
    return f"{shown:.2g} s" if cause["effect"] == PAUSE else f"{shown:.3g}"


def _remedy(request: Mapping[str, Any], document: "Document", cause: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the same change would do with the cause's settings changed; nothing where that gains nothing."""
    from planner.documents.forecast import forecast as answer

    if not cause.get("lever"):
        return
    try:
        better = answer({**request, "settings": {**(request.get("settings") or {}), **cause["lever"]}})
    except PlannerError:
        return  # a setting that this version does not have is no remedy
    named = ", ".join(f"{name}={json.dumps(value)}" for name, value in cause["lever"].items())
    yield from (f"with {named}: {gain}" for gain in _gain(document, better, cause))


def _gain(document: "Document", better: "Document", cause: Mapping[str, Any]) -> Iterator[str]:
    """Yield what gets better by a remedy: the whole effect, or the cause's own mean where the whole reads alike."""
    effect = cause["effect"]
    show = seconds if effect == PAUSE else counted
    old, new = document["total"][effect], better["total"][effect]
    if old and new and show(old) != show(new):
        if [new[level] for level in WORST_FIRST] < [old[level] for level in WORST_FIRST]:
            yield f"{show(new)} instead of {show(old)}"
        return
    left, is_reported = _rest_of_cause(better, cause)
    if left is not None and left < cause["mean"] and _amount(cause, left) != _amount(cause):
        bound = "" if is_reported else "under "
        yield f"{bound}{_amount(cause, left)} of it instead of {_amount(cause)}, on the average"


def _rest_of_cause(better: "Document", cause: Mapping[str, Any]) -> tuple[float | None, bool]:
    """Return what is left of a cause and whether its share is reported; if not, the most that may be left of it."""
    from planner.forecast.trials import LEAST_REPORTED

    alike = [other for other in better["causes"] if other["effect"] == cause["effect"]]
    same = next((other for other in alike if other["cause"] == cause["cause"]), None)
    if same is not None:
        return same["mean"], True
    return (LEAST_REPORTED * alike[0]["mean"] / alike[0]["share"] if alike else None), False
