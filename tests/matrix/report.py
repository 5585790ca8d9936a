"""Kept verdicts as text: one line a cell."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEAD = (
    "| Cell | True capacity | Learned | Right counts | Answer | `advise` | Findings | Right after | Misses |",
    "|---|---:|---|---|---|---|---|---:|---|",
)

PARTS = ("capacity", "decision", "diagnosis", "default_window", "advice")
"""What is judged; the last two are open for verdicts of before they were."""

Kept = Mapping[str, Any]
"""One verdict, as ``judging.document`` gives it."""


def table(verdicts: Iterable[Kept]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [*HEAD, *(row(verdict) for verdict in verdicts)]


def row(verdict: Kept) -> str:
    """Return one cell's line."""
    columns = (
        f"`{verdict['cell']}`",
        f"{verdict['true_capacity']:.1f}",
        _capacity(verdict["last"]),
        _counts(verdict["right_targets"]),
        _decision(verdict["last"]),
        _advised(verdict.get("advised")),
        _findings(verdict["last"]["findings"]),
        _after(verdict),
        ", ".join(misses(verdict)) or "none",
    )
    return f"| {' | '.join(columns)} |"


def misses(verdict: Kept) -> list[str]:
    """Return what was wrong at the end of the watch."""
    return [part for part in PARTS if verdict.get(part) == "wrong"]


def _capacity(answer: Kept) -> str:
    if answer["capacity"] is None:
        return "unknown"
    return f"{'at least ' if answer['is_lower_bound'] else ''}{answer['capacity']:.1f}"


def _counts(targets: Sequence[int] | None) -> str:
    return "not judged" if targets is None else " or ".join(map(str, targets))


def _decision(answer: Kept) -> str:
    return f"{answer['target']} ({answer['hold_cause']})" if answer["hold_cause"] else str(answer["target"])


def _advised(advised: Kept | None) -> str:
    """Return what ``advise`` said and when; verdicts of cells whose samples are not kept may have none."""
    if advised is None:
        return "not judged"
    cause = advised["cause"]
    answer = str(advised["target"]) if cause.startswith("Too") else f"{advised['target']} ({cause})"
    return f"{answer} after {advised['seconds']} s"


def _findings(by_severity: Mapping[str, Sequence[str]]) -> str:
    worst = [f"**{code}**" for code in by_severity["error"]]
    return ", ".join([*worst, *by_severity["warning"]]) or "none"


def _after(verdict: Kept) -> str:
    seconds = [verdict[f"{part}_after_s"] for part in ("capacity", "decision", "diagnosis")]
    return "never" if None in seconds else f"{max(seconds)} s"
