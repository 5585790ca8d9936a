"""Every strategy side by side in words: the cells of a table, and a sentence that says which one they speak for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isinf

from planner.model.snapshot import GroupSnapshot
from planner.report.case import Case
from planner.simulation.candidates import can_simulate, shares_messages
from planner.simulation.strategies import (
    Situation,
    StrategyFigures,
    advise,
    compare_strategies,
    excesses,
    left_out,
)
from planner.text.words import counted, number, percent, queue_noun, queues


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy's name and ``cells``."""

    label: str
    cells: tuple[str, ...]
    is_current: bool
    is_advised: bool


@dataclass(frozen=True, slots=True)
class StrategySection:
    """The table of strategies, what it comes to, and what it rests on."""

    headings: tuple[str, ...]
    rows: tuple[StrategyRow, ...]
    sentence: str
    notes: tuple[str, ...]


MOST_QUEUES = 32
"""A page compares the strategies of a group of so many queues, which takes seconds; of a thousand it takes minutes."""


def strategies(case: Case) -> StrategySection | None:
    """Return the section, which names the command for a large group; ``None`` where there is nothing to compare."""
    snapshot = case.snapshot
    if not can_simulate(snapshot) or shares_messages(snapshot):
        return None
    if len(snapshot.data_queues) > MOST_QUEUES:
        many = queues(len(snapshot.data_queues), snapshot.system)
        return StrategySection(
            (), (), f"Of {many} planner simulate SNAPSHOT --strategies all compares them: that takes its time.", ()
        )
    rows = compare_strategies(snapshot)
    best = advise(rows)
    if len(rows) < 2:
        return None
    return StrategySection(
        headings(rows),
        tuple(StrategyRow(row.label, cells(row), row.is_current, row is best) for row in rows),
        sentence(snapshot, rows, best),
        tuple(notes(snapshot, rows, left_out(snapshot, rows))),
    )


def title(snapshot: GroupSnapshot) -> str:
    """Return the group with its queues and consumers."""
    counts = queues(len(snapshot.data_queues), snapshot.system), counted(len(snapshot.clients), "consumer")
    return f"Group {snapshot.group}, {', '.join(counts)}"


def headings(rows: Sequence[StrategyFigures]) -> tuple[str, ...]:
    """Return the headings of ``cells``, without the strategy's."""
    more, fewer, lost = (_count(rows, name) for name in ("more", "fewer", "lost"))
    return ("now", f"next up{more}", f"next down{fewer}", f"one crashes{lost}", "worst broker lost", "switch moves")


def _count(rows: Sequence[StrategyFigures], name: str) -> str:
    counts = [situation.count for row in rows if (situation := getattr(row, name)) is not None]
    return f" ({counts[0]})" if counts else ""


def cells(row: StrategyFigures) -> tuple[str, ...]:
    """Return the row's figures below ``headings``."""
    return (
        _settled(row.now),
        *(_changed(situation) for situation in (row.more, row.fewer, row.lost)),
        f"{row.broken.broker}: {_changed(row.broken)}" if row.broken is not None else "–",
        "runs now" if row.is_current else str(row.switch_moves),
    )


def _settled(situation: Situation) -> str:
    return f"{percent(situation.utilisation)}, {situation.largest_share}"


def _changed(situation: Situation | None) -> str:
    if situation is None:
        return "–"
    changed = f"{_settled(situation)}; {_moved(situation)}"
    if situation.cost is None:
        return f"{changed}, unknown" if situation.why else changed
    return f"{changed}, {number(situation.cost.duplicates.p50)}"


def _moved(situation: Situation) -> str:
    least, most = situation.moved_fewest, situation.moved_most
    if least is None or most is None:
        return "unknown"
    return str(least) if least == most else f"{least}–{most}"


def sentence(snapshot: GroupSnapshot, rows: Sequence[StrategyFigures], best: StrategyFigures | None) -> str:
    """Return in a sentence which strategy the figures speak for, and what the switch to it would cost."""
    if best is None:
        return (
            "No strategy is advised: the group's own cannot be simulated in each of these situations, so that nobody "
            "knows whether another one is better."
        )
    noun = queue_noun(snapshot.system)
    own = next((row for row in rows if row.is_current), None)
    if best is own:
        moves = f"of the strategies as even as it none moves clearly fewer: {_moves(best, noun)}"
        return f"Keep {best.label}: {_even(best, rows)}; {moves}."
    present = "" if own is None else f" {own.label}, which runs now: {_even(own, rows)}, and {_moves(own, noun)}."
    switch = f"The switch itself moves {best.switch_moves} of {counted(len(snapshot.data_queues), noun)} once"
    best_is = f"{best.label} suits this group best: {_even(best, rows)}, and {_moves(best, noun)}"
    return f"{best_is}.{present} {switch}: see planner migrate."


def _even(row: StrategyFigures, rows: Sequence[StrategyFigures]) -> str:
    excess = next(of_row for each, of_row in zip(rows, excesses(rows), strict=True) if each is row) - 1
    if excess < 0.005:
        return "in none of these situations does its busiest consumer carry more than under another strategy"
    if isinf(excess):
        return "what it gives to whom is not known in each of these situations"
    return f"its busiest consumer carries at the worst {percent(excess)} more than under the most even strategy"


def _moves(row: StrategyFigures, noun: str) -> str:
    changes = [(row.more, "at the next useful count"), (row.lost, "when one crashes")]
    moved = [f"{_of(situation, noun)} {when}" for situation, when in changes if situation is not None]
    return f"it moves {' and '.join(moved)}" if moved else "there is no other count"


def _of(situation: Situation, noun: str) -> str:
    if _moved(situation) == "unknown":
        return f"an unknown number of {noun}s"
    return f"{_moved(situation)} {noun}{'' if situation.moved_most == 1 else 's'}"


def notes(snapshot: GroupSnapshot, rows: Sequence[StrategyFigures], missing: Sequence[str]) -> Iterator[str]:
    """Yield in sentences what the figures rest on, and what is not compared."""
    if drawn := [row.label for row in rows if row.are_ids_drawn]:
        verb = "go" if len(drawn) > 1 else "goes"
        yield (
            f"{'; '.join(drawn)} {verb} by client ids, which each rollout makes anew: loads are those that "
            f"{snapshot.new_pods.ids_percentile:g} of 100 possible sets of ids do not exceed, moves those of 90 of 100."
        )
    unknown = dict.fromkeys(why for row in rows for why in (*row.unknown, *_why(row)))
    yield from (f"Unknown: {why}." for why in unknown)
    if missing:
        yield f"Not compared: {', '.join(missing)}, as their parameters are not in spec.strategyOptions."


def _why(row: StrategyFigures) -> Iterator[str]:
    return (situation.why for situation in row.situations if situation is not None and situation.why)
