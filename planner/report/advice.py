"""The page of ``planner advise --all``: every group of an installation in one table, what is to be gained first."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner import __version__
from planner.advice.answer import Advice, Price, fewer_note
from planner.report.beside import Beside, beside
from planner.report.doctor import check_page
from planner.report.page import template
from planner.storage.files import write_atomically
from planner.text import words

TEMPLATE = "advice.html.j2"
FILTERS = ("number", "rate", "duration")


@dataclass(frozen=True, slots=True)
class Row:
    """One group's line: its advice, the decision and the moved queues in words, and the anchor of its details.

    ``beside`` is what stands in these.
    """

    advice: Advice
    decision: str
    moved: str
    anchor: str
    beside: Beside


def write_advice_page(path: Path, advices: Sequence[Advice], unread: Sequence[tuple[str, str]]) -> Path:
    """Write the groups as one self-contained HTML page and return its path; raises as ``check_page`` does."""
    check_page(path)
    return write_atomically(path, render_advices(advices, unread))


def render_advices(advices: Sequence[Advice], unread: Sequence[tuple[str, str]]) -> str:
    """Return the page's HTML; equal answers give equal pages. ``unread`` are groups, each with the reason."""
    rows = [_row(number, advice) for number, advice in enumerate(advices)]
    html: str = template(TEMPLATE, FILTERS).render(
        head=_head(advices),
        facts=_facts(advices),
        rows=rows,
        scaled=[row for row in rows if not row.advice.decision.is_hold],
        held=[row for row in rows if row.advice.decision.is_hold],
        unread=unread,
        version=__version__,
    )
    return html


def _row(number: int, advice: Advice) -> Row:
    decision = advice.decision
    words_of = f"hold at {decision.current}" if decision.is_hold else f"{decision.current} → {decision.target}"
    return Row(advice, words_of, _describe_moves(advice.price), f"g{number}", beside(advice))


def _describe_moves(price: Price) -> str:
    if price.fewest is None or price.most is None:
        return "unknown"
    amount = str(price.fewest) if price.fewest == price.most else f"{price.fewest}–{price.most}"
    return f"{amount} of {price.queues}"


def _head(advices: Sequence[Advice]) -> str:
    scaled = sum(not advice.decision.is_hold for advice in advices)
    if not scaled:
        return f"{words.counted(len(advices), 'group')}: none is to be changed"
    return f"{scaled} of {words.counted(len(advices), 'group')} to scale"


def _facts(advices: Sequence[Advice]) -> tuple[tuple[str, str, str], ...]:
    more = sum(max(0, advice.price.pods) for advice in advices)
    fewer = -sum(min(0, advice.price.pods) for advice in advices)
    doubts = sum(not advice.is_clear for advice in advices)
    return (
        ("To add", words.number(more), "consumers, where groups have too few."),
        ("To spare", words.number(fewer), f"consumers, where groups have too many. {fewer_note(advices)}".rstrip()),
        ("Not clear yet", words.number(doubts), "groups, whose answers rest on too short a watch."),
    )
