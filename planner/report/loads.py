"""Load per consumer for each candidate count, with the verdict on each."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.report import words
from planner.report.case import Case
from planner.report.consumers import Mark
from planner.report.headline import end_of_backlog
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad

MOST_STRIPS = 20
"""Counts drawn as strips; further ones stand as figures in a folded table."""

MOST_STACKED = 6
"""Lettered discs upon each other at most; counts that would need more are drawn as dots."""

WIDEST = 2.0
"""Utilisation at the right end at most; consumers beyond it are counted at the edge."""

DISC_SHARE = 0.042
DOT_SHARE = 0.011
"""Widths of a disc and of a dot as shares of the strip: nearer ones are stacked."""

MOST_LEVELS = 14


@dataclass(frozen=True, slots=True)
class Dot:
    """One consumer on a strip: ``at`` is its position from 0 to 100, ``level`` how many lie below it."""

    mark: Mark
    at: float
    level: int
    tip: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One candidate count of pods with its ``members``, a consumer each where one pod runs one.

    ``beyond`` are the consumers off the axis, ``unknown`` how many have no known load.
    """

    count: int
    members: int
    tags: tuple[str, ...]
    is_chosen: bool
    is_useful: bool
    is_lettered: bool
    dots: tuple[Dot, ...]
    beyond: tuple[Mark, ...]
    unknown: int
    levels: int
    step: float
    busiest: str
    moves: str
    pause: str
    twice: str
    settled: str
    backlog: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Loads:
    """All counts; ``bound``, ``full`` and ``ticks`` are places from 0 to 100 on every strip's axis."""

    strips: tuple[Strip, ...]
    folded: tuple[Strip, ...]
    others: tuple[tuple[str, tuple[Strip, ...]], ...]
    ticks: tuple[tuple[float, str], ...]
    end: float
    bound: float | None
    full: float
    hot: str | None


def loads(case: Case) -> Loads:
    """Return the strips of the group's own strategy and the figures of the others."""
    widest = axis_end(case.own_outcomes)
    strips = [_strip(case, outcome, widest) for outcome in case.own_outcomes]
    shown = _nearest(strips, case.record.decision.target, case.record.decision.current)
    names = dict.fromkeys(o.strategy for o in case.outcomes if o.strategy != case.own_strategy)
    return Loads(
        strips=tuple(strip for strip in strips if strip.count in shown),
        folded=tuple(strip for strip in strips if strip.count not in shown),
        others=tuple((name, tuple(_strips_of(case, name, widest))) for name in names),
        end=widest,
        ticks=tuple((100.0 * n * 0.25 / widest, f"{25 * n}%") for n in range(int(widest / 0.25) + 1)),
        bound=None if case.max_utilisation is None else 100.0 * case.max_utilisation / widest,
        full=100.0 / widest,
        hot=_hot(case),
    )


def axis_end(outcomes: Sequence[CandidateOutcome]) -> float:
    """Return the utilisation at the strips' right end: a quarter step above the largest, 1.25 to ``WIDEST``."""
    largest = max((load.utilisation or 0.0 for o in outcomes for load in o.loads), default=0.0)
    return min(WIDEST, max(1.25, (int(largest / 0.25) + 1) * 0.25))


def stack_spots(spots: Sequence[float], width: float) -> list[tuple[float, int]]:
    """Return for each spot (0 to 1) itself and a level, so that none within ``width`` share a level.

    0.5, 0.51 and 0.9 with discs of 0.04: levels 0, 1, 0.
    """
    level_ends: list[float] = []
    placed = [(0.0, 0)] * len(spots)
    for index in sorted(range(len(spots)), key=lambda i: spots[i]):
        spot = spots[index]
        level = next((n for n, end in enumerate(level_ends) if spot - end >= width), len(level_ends))
        level_ends[level : level + 1] = [spot]
        placed[index] = (spot, level)
    return placed


def _strips_of(case: Case, strategy: str, widest: float) -> list[Strip]:
    outcomes = sorted((o for o in case.outcomes if o.strategy == strategy), key=lambda o: o.count)
    return [_strip(case, outcome, widest) for outcome in outcomes]


def _strip(case: Case, outcome: CandidateOutcome, widest: float) -> Strip:
    is_own, cost = outcome.strategy == case.own_strategy, outcome.transition
    shares = [(load, load.utilisation) for load in outcome.loads if load.utilisation is not None] if is_own else []
    inside = [(load, share / widest) for load, share in shares if share <= widest]
    spots = [spot for _, spot in inside]
    placed = stack_spots(spots, DISC_SHARE)
    is_lettered = _levels(placed) <= MOST_STACKED
    if not is_lettered:
        placed = stack_spots(spots, DOT_SHARE)
    levels = _levels(placed)
    return Strip(
        count=outcome.count,
        members=outcome.members,
        tags=tuple(_tags(case, outcome)) if is_own else (),
        is_chosen=is_own and outcome.count == case.record.decision.target,
        is_useful=outcome.is_useful,
        is_lettered=is_lettered,
        dots=tuple(_dot(case, load, *spot) for (load, _), spot in zip(inside, placed, strict=True)),
        beyond=tuple(case.marks[load.client] for load, share in shares if share > widest),
        unknown=sum(load.utilisation is None for load in outcome.loads),
        levels=min(levels, MOST_LEVELS),
        step=min(1.0, MOST_LEVELS / levels),
        busiest=words.percent(outcome.utilisation),
        moves=words.span(outcome.moved_fewest, outcome.moved_most),
        pause=words.between(cost.pause_s) if cost else words.UNKNOWN,
        twice=words.counted(cost.duplicates) if cost else words.UNKNOWN,
        settled=words.between(cost.settle_s) if cost else words.UNKNOWN,
        backlog=end_of_backlog(outcome, outcome.lag),
        verdict=_verdict(case, outcome) if is_own else "",
    )


def _levels(placed: Sequence[tuple[float, int]]) -> int:
    return 1 + max((level for _, level in placed), default=0)


def _dot(case: Case, load: ConsumerLoad, spot: float, level: int) -> Dot:
    tip = f"{load.client}: {words.percent(load.utilisation)}, {words.queues(load.queues, case.snapshot.system)}"
    return Dot(case.marks[load.client], round(100 * spot, 2), level, tip)


def _tags(case: Case, outcome: CandidateOutcome) -> list[str]:
    decision = case.record.decision
    tags = []
    if outcome.count == decision.current:
        tags.append("now")
    if outcome.count == decision.target:
        tags.append("stays" if decision.is_hold else "chosen")
    if not outcome.is_useful:
        tags.append("not useful")
    return tags


def _verdict(case: Case, outcome: CandidateOutcome) -> str:
    decision = case.record.decision
    reasons = [reason for r in decision.rejected if r.count == outcome.count for reason in r.reasons]
    if reasons:
        return sentence("; ".join(reasons))
    if outcome.count != decision.target:
        return "Not compared: the decision rests on other grounds."
    if decision.is_hold:
        return "Nothing is to be changed."
    return "Costs least." if decision.bill else "The smallest useful count that meets the objective."


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _nearest(strips: Sequence[Strip], target: int, current: int) -> set[int]:
    ordered = sorted(strips, key=lambda s: (s.count not in (target, current), abs(s.count - target)))
    return {strip.count for strip in ordered[:MOST_STRIPS]}


def _hot(case: Case) -> str | None:
    outcome = case.chosen
    if outcome is None or outcome.hot_queue is None or outcome.hot_utilisation is None:
        return None
    return (
        f"The hottest {outcome.hot_queue.noun}, {outcome.hot_queue}, alone takes "
        f"{words.percent(outcome.hot_utilisation)} of the consumer that owns it: no count gets below that."
    )
