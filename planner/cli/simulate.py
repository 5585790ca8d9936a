"""``planner simulate``: one outcome a candidate count."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, parse_counts, seconds, text_console
from planner.words import UNKNOWN, duration, number, percent, queue_nouns, queues

if TYPE_CHECKING:
    from planner.model.snapshot import GroupSnapshot
    from planner.simulation.outcome import CandidateOutcome, Seconds, Transition


def simulate(
    snapshot: Annotated[Path, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)],
    counts: Annotated[
        str | None, typer.Option(help="Counts to try, 1..32 or 3,5,8. Default: the useful ones up to the queue count.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="Allocation strategy to try. Default: the group's own.")] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what would happen with each count of pods: owners, load, moved queues, backlog."""
    from planner.allocation import plugins
    from planner.documents.data import OUTCOMES, SNAPSHOT
    from planner.errors import BadInputError
    from planner.pipeline import simulate_candidates
    from planner.simulation.candidates import candidate_counts, check_comparable, simulable_counts, why_no_more

    plugins.allow(strategy)
    taken = SNAPSHOT.read(snapshot)
    name = strategy or taken.strategy
    if name is None:
        raise BadInputError(
            f"{snapshot}: the group's strategy is unknown ({taken.strategy_source}): name one with --strategy"
        )
    check_comparable(taken)
    largest = max(1, -(-len(taken.data_queues) // (taken.members_per_pod or 1)), taken.count)
    useful = candidate_counts(taken, 1, largest)
    chosen = parse_counts(counts) if counts else simulable_counts(taken, name, useful)
    outcomes = simulate_candidates(taken, [(name, count) for count in sorted(set(chosen))])
    with answering(form, output) as answer:
        if not answer.is_text:
            answer.write(OUTCOMES.kind, OUTCOMES.body(outcomes))
            return
        _print(taken, outcomes)
        if len(useful) > len(chosen) and not counts and (why := why_no_more(taken, name)):
            text_console().print(f"Not simulated: {why}.", style="dim")


def _print(taken: "GroupSnapshot", outcomes: "Sequence[CandidateOutcome]") -> None:
    console = text_console()
    title = f"Group {taken.group}, {queues(len(taken.data_queues), taken.system)}, strategy {outcomes[0].strategy}"
    console.print(_loads(title, outcomes, queue_nouns(taken.system)))
    console.print(_costs(outcomes, queue_nouns(taken.system)))
    alike = _without_counts(unknown for outcome in outcomes for unknown in outcome.unknowns)
    for unknown in alike:
        console.print(f"Unknown: {unknown}.", style="dim")


def _without_counts(unknowns: Iterable[str]) -> list[str]:
    """Return the sentences, of those that differ by their numbers alone only the first."""
    return list({re.sub(r"\d+", "#", unknown): unknown for unknown in reversed(list(unknowns))}.values())[::-1]


def _loads(title: str, outcomes: "Sequence[CandidateOutcome]", nouns: str) -> Table:
    """Return what each count would mean once all has settled."""
    table = _table(
        title, (*_count_headings(outcomes), "busiest", f"most {nouns}", "new message waits", "backlog gone after")
    )
    table.add_column("")
    for outcome in outcomes:
        table.add_row(
            *_count(outcome),
            percent(outcome.utilisation),
            str(outcome.largest_share),
            seconds(outcome.wait_s),
            seconds(outcome.drain_s, "unknown" if outcome.keeps_up is None else "never"),
            _note(outcome),
            style=_style(outcome),
        )
    return table


def _costs(outcomes: "Sequence[CandidateOutcome]", nouns: str) -> Table:
    """Return what going there costs: the usual figure, and the one that 1 trial in 20 exceeds."""
    headings = (
        *_count_headings(outcomes),
        f"{nouns}\nmoved",
        "longest\npause",
        "come\ntwice",
        "burst,\nmessages",
        "settled\nafter",
    )
    table = _table("What the change itself costs: usually, and below it at worst (1 in 20)", headings)
    for outcome in outcomes:
        table.add_row(*_count(outcome), _moves(outcome), *_cost(outcome.transition), style=_style(outcome))
    return table


def _count_headings(outcomes: "Sequence[CandidateOutcome]") -> tuple[str, ...]:
    """Return the headings of what is counted: pods, and their consumers where a pod runs several."""
    return ("consumers",) if outcomes[0].members_per_pod == 1 else ("pods", "consumers")


def _count(outcome: "CandidateOutcome") -> tuple[str, ...]:
    """Return the counts below these headings."""
    return (str(outcome.count),) if outcome.members_per_pod == 1 else (str(outcome.count), str(outcome.members))


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _style(outcome: "CandidateOutcome") -> str | None:
    return "bold" if outcome.is_current else None if outcome.is_useful else "dim"


def _moves(outcome: "CandidateOutcome") -> str:
    if outcome.moved_fewest is None or outcome.moved_most is None:
        return "unknown"
    if outcome.moved_fewest == outcome.moved_most:
        return str(outcome.moved_fewest)
    return f"{outcome.moved_fewest}–{outcome.moved_most}"


def _cost(transition: "Transition | None") -> tuple[str, ...]:
    """Return pause, duplicates, burst and settling of the change."""
    if transition is None:
        return (UNKNOWN,) * 4
    duplicates, burst = transition.duplicates, transition.burst_messages
    return (
        _span(transition.pause_s),
        _pair(number(duplicates.p50), number(duplicates.p95)),
        _pair(number(burst.p50), number(burst.p95)),
        _span(transition.settle_s),
    )


def _span(forecast: "Seconds | None") -> str:
    return UNKNOWN if forecast is None else _pair(duration(forecast.p50), duration(forecast.p95))


def _pair(usual: str, worst: str) -> str:
    return usual if usual == worst else f"{usual}\n{worst}"


def _note(outcome: "CandidateOutcome") -> str:
    if outcome.is_current:
        return "runs now"
    return "" if outcome.is_useful else "relieves nobody"
