"""``planner simulate``: one outcome a candidate count."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, parse_counts, seconds, text_console
from planner.text.words import UNKNOWN, duration, number, percent, queue_nouns, queues

if TYPE_CHECKING:
    from planner.model.snapshot import GroupSnapshot
    from planner.simulation.lost_broker import BrokerLoss
    from planner.simulation.outcome import CandidateOutcome, ConsumerLoad, Seconds, Transition


def simulate(
    snapshot: Annotated[Path, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)],
    counts: Annotated[
        str | None, typer.Option(help="Counts to try, 1..32 or 3,5,8. Default: the useful ones up to the queue count.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="Allocation strategy to try. Default: the group's own.")] = None,
    strategies: Annotated[
        Literal["all"] | None,
        typer.Option(help="all: compare every strategy on this group, at its count, with one more and with one less."),
    ] = None,
    without_broker: Annotated[
        str | None,
        typer.Option(
            help="Name of a RocketMQ broker: what each count would mean while it is down, and what its death costs.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what would happen with each count of pods: owners, load, moved queues, backlog."""
    from planner.allocation import plugins
    from planner.cli.strategies import compare
    from planner.documents.data import OUTCOMES, SNAPSHOT
    from planner.errors import BadInputError
    from planner.pipeline import simulate_candidates, with_loss
    from planner.simulation.candidates import (
        candidate_counts,
        check_comparable,
        simulable_counts,
        why_no_more,
    )
    from planner.simulation.lost_broker import lose_broker

    plugins.allow(strategy)
    taken = SNAPSHOT.read(snapshot)
    if strategies is not None:
        if counts or strategy:
            raise BadInputError("--strategies compares at the present count: leave out --counts and --strategy")
        check_comparable(taken)
        compare(taken, form, output)
        return
    name = _strategy_name(strategy, taken, snapshot)
    check_comparable(taken)
    whole = taken
    loss = lose_broker(taken, without_broker) if without_broker else None
    taken = loss.without if loss else taken
    useful = candidate_counts(taken, 1, _largest_count(taken))
    chosen = parse_counts(counts) if counts else simulable_counts(taken, name, useful)
    outcomes = simulate_candidates(taken, [(name, count) for count in sorted(set(chosen))])
    if loss:
        outcomes = with_loss(outcomes, whole, loss)
    with answering(form, output) as answer:
        if not answer.is_text:
            answer.write(OUTCOMES.kind, OUTCOMES.body(outcomes))
            return
        _print(taken, outcomes, loss)
        if len(useful) > len(chosen) and not counts and (why := why_no_more(taken, name)):
            text_console().print(f"Not simulated: {why}.", style="dim")


def _strategy_name(strategy: str | None, taken: "GroupSnapshot", path: Path) -> str:
    """Return the strategy to try, the group's own unless one is named; raises ``BadInputError`` where it has none."""
    from planner.errors import BadInputError

    name = strategy or taken.strategy
    if name is None:
        raise BadInputError(
            f"{path}: the group's strategy is unknown ({taken.strategy_source}): name one with --strategy"
        )
    return name


def _largest_count(taken: "GroupSnapshot") -> int:
    """Return the largest count to try: one more pod would have no queue."""
    from planner.simulation.candidates import shares_messages

    largest = max(1, -(-len(taken.data_queues) // (taken.members_per_pod or 1)), taken.count)
    if shares_messages(taken):  # members, not queues, are what such a group can be divided by
        return max(largest, 2 * taken.count)
    return largest


def _print(taken: "GroupSnapshot", outcomes: "Sequence[CandidateOutcome]", loss: "BrokerLoss | None") -> None:
    console = text_console()
    title = f"Group {taken.group}, {queues(len(taken.data_queues), taken.system)}, strategy {outcomes[0].strategy}"
    if loss:
        title += f", without broker {loss.broker}"
    console.print(_loads(title, outcomes, queue_nouns(taken.system)))
    console.print(_costs(outcomes, queue_nouns(taken.system)))
    if loss:
        console.print(_say_loss(outcomes, loss))
    alike = _without_counts(unknown for outcome in outcomes for unknown in outcome.unknowns)
    for unknown in alike:
        console.print(f"Unknown: {unknown}.", style="dim")
    if loss is None and outcomes[0].strategy == taken.strategy and (lever := _second_lever(taken, outcomes)):
        console.print(f"{lever}.")


def _second_lever(taken: "GroupSnapshot", outcomes: "Sequence[CandidateOutcome]") -> str | None:
    """Return what would do instead of the next count that keeps up, ``None`` where the present one is all there is."""
    from planner.simulation.second_lever import next_useful, second_lever

    current = next((outcome for outcome in outcomes if outcome.is_current), None)
    return second_lever(taken, current, next_useful(outcomes, taken.count))


def _say_loss(outcomes: "Sequence[CandidateOutcome]", loss: "BrokerLoss") -> str:
    """Return whether the present count survives the loss, and what waits until the broker is back."""
    waiting = "an unknown number of messages waits" if loss.waiting is None else f"{number(loss.waiting)} messages wait"
    sentence = f"Until {loss.broker} is back {waiting} there."
    current = next((outcome for outcome in outcomes if outcome.is_current), None)
    if current is None:
        return sentence
    sentence += f" The row of the present count ({current.count}) shows what its death itself costs."
    if current.keeps_up is False and current.utilisation is not None:
        growth = sum(_grows_by(load) for load in current.loads)
        sentence += f" The present count does not carry the rest: the backlog grows by {number(growth)} messages/s."
    if current.transition and (drained := current.transition.drained_s):
        until = f"{duration(drained.p50)}, {duration(drained.p95)} at worst"
        sentence += f" The queues that are left have no backlog after {until}."
    return sentence


def _grows_by(load: "ConsumerLoad") -> float:
    """Return by how many messages a second a consumer's backlog grows."""
    if not load.arrival_rate or not load.utilisation:
        return 0.0
    return max(load.arrival_rate - load.arrival_rate / load.utilisation, 0.0)


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
    table = _table("What the change costs: usually, at worst (1 in 20)", headings)
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
