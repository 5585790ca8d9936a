"""Counts that nearly met the objective: by how much each misses it."""

from collections.abc import Iterator, Sequence

from planner.decision.objective import Objective
from planner.simulation.outcome import CandidateOutcome
from planner.text import words

NEAR = 1.5
"""A bound that is missed by half of itself or less is missed nearly."""

MOST_SHOWN = 3


def near_misses(outcomes: Sequence[CandidateOutcome], chosen: int, objective: Objective) -> tuple[str, ...]:
    """Return one sentence for each useful count below ``chosen`` that misses the objective by little, nearest first.

    At most three, with the difference in figures, so that a reader can weigh it.
    """
    below = [
        outcome
        for outcome in outcomes
        if outcome.is_useful and objective.lowest <= outcome.count < min(chosen, objective.highest + 1)
    ]
    nearest = sorted(below, key=lambda outcome: -outcome.count)
    sentences = (_sentence(outcome, objective) for outcome in nearest)
    return tuple(sentence for sentence in sentences if sentence is not None)[:MOST_SHOWN]


def _sentence(outcome: CandidateOutcome, objective: Objective) -> str | None:
    misses = list(_misses(outcome, objective))
    if not misses or any(miss is None for miss in misses):
        return None
    return f"{words.pods(outcome.count, outcome.members)} would nearly do: {'; '.join(m for m in misses if m)}"


def _misses(outcome: CandidateOutcome, objective: Objective) -> Iterator[str | None]:
    """Yield by how much each broken bound is broken, ``None`` where that is not little or not known."""
    used, bound = outcome.utilisation, objective.max_utilisation
    if used is None or used > min(1.0, NEAR * bound):
        yield None
    elif used > bound:
        yield f"the busiest is used at {words.percent(used)}, the bound is {words.percent(bound)}"
    gone_s, objective_s = outcome.drain_s, objective.backlog_gone_s
    if objective_s is not None and (gone_s is None or gone_s > NEAR * objective_s):
        yield None
    elif objective_s is not None and gone_s is not None and gone_s > objective_s:
        yield f"the backlog is gone after {words.duration(gone_s)}, the objective is {words.duration(objective_s)}"
