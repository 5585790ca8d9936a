"""``planner simulate --strategies all``: every strategy side by side on one group."""

from collections.abc import Mapping, Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

from rich.table import Table

from planner.cli.console import Format, answering, text_console

if TYPE_CHECKING:
    from planner.model.snapshot import GroupSnapshot
    from planner.simulation.strategies import Situation, StrategyFigures

KIND = "StrategyComparison"


def compare(snapshot: "GroupSnapshot", form: Format | None, output: str | None) -> None:
    """Print every strategy's figures on the group, and which one they speak for."""
    from planner.documents.data import SNAPSHOT
    from planner.report.strategies import notes, sentence
    from planner.simulation.strategies import advise, compare_strategies, excesses, left_out

    rows = compare_strategies(snapshot, SNAPSHOT.digest(snapshot))
    best, missing = advise(rows), left_out(snapshot, rows)
    with answering(form, output) as answer:
        if not answer.is_text:
            pairs = zip(rows, excesses(rows), strict=True)
            answer.write(KIND, [_document(row, excess, is_advised=row is best) for row, excess in pairs])
            return
        console = text_console()
        console.print(_table(snapshot, rows))
        console.print(sentence(snapshot, rows, best))
        for note in notes(snapshot, rows, missing):
            console.print(note, style="dim")


def _document(row: "StrategyFigures", excess: float, *, is_advised: bool) -> dict[str, Any]:
    return {
        "strategy": row.strategy,
        "options": dict(row.options),
        "is_current": row.is_current,
        "is_advised": is_advised,
        "are_ids_drawn": row.are_ids_drawn,
        "switch_moves": row.switch_moves,
        "worst_excess": None if isinf(excess) else round(excess, 4),
        "now": _figures(row.now),
        "one_more": _figures(row.more),
        "one_less": _figures(row.fewer),
        "one_lost": _figures(row.lost),
        "broker_lost": _figures(row.broken),
    }


def _figures(situation: "Situation | None") -> Mapping[str, Any] | None:
    if situation is None:
        return None
    cost = situation.cost
    return {
        "count": situation.count,
        "utilisation": None if situation.utilisation is None else round(situation.utilisation, 4),
        "largest_share": situation.largest_share,
        "moved_fewest": situation.moved_fewest,
        "moved_most": situation.moved_most,
        "pause_s": None if cost is None or cost.pause_s is None else {"p50": cost.pause_s.p50, "p95": cost.pause_s.p95},
        "duplicates": None if cost is None else {"p50": cost.duplicates.p50, "p95": cost.duplicates.p95},
        **({} if situation.broker is None else {"broker": situation.broker}),
    }


def _table(snapshot: "GroupSnapshot", rows: "Sequence[StrategyFigures]") -> Table:
    from planner.report.strategies import cells, headings, title

    table = Table(title=f"{title(snapshot)}: every strategy, as if it had run all along")
    table.add_column("strategy")
    for heading in headings(rows):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row.label, *cells(row), style="bold" if row.is_current else None)
    table.caption = "busiest consumer's load, most queues of one; queues moved, messages that come twice (usually)"
    return table
