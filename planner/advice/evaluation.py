"""One evaluation of a watch: the decision on the data so far, and the counts that its uncertainty allows."""

from dataclasses import dataclass, replace
from math import sqrt
from statistics import mean, stdev

from planner.decision.choose import decide
from planner.decision.decision import Decision
from planner.decision.objective import Objective
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import can_simulate, candidate_counts, simulable_counts, simulate_candidate
from planner.simulation.outcome import CandidateOutcome

FEWEST_POINTS = 4
"""With fewer intervals of the window their spread says nothing about how sure the mean rate is."""

UNKNOWN_MARGIN = 0.5
"""The share by which the rate may be off where too few intervals say how sure it is."""

Z_975 = 1.96


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The decision after ``watched_s`` seconds.

    ``fewest`` and ``most`` are the counts decided on at both bounds of rate and capacity (95 %); both are ``None``
    where the data carry no comparison. ``is_open_above`` says that one consumer may be able to do any amount more:
    none was busy. ``between_commits`` are members with messages waiting that were not seen to commit three times, while
    others were.
    """

    watched_s: float
    decision: Decision
    fewest: int | None = None
    most: int | None = None
    is_open_above: bool = False
    between_commits: tuple[str, ...] = ()


def own_outcomes(snapshot: GroupSnapshot, lowest: int, highest: int) -> tuple[CandidateOutcome, ...]:
    """Return one outcome for each useful count from ``lowest`` to ``highest`` under the group's own strategy.

    What the changes cost is not among them. Empty where nothing can be simulated.
    """
    if not can_simulate(snapshot) or snapshot.strategy is None:
        return ()
    counts = simulable_counts(snapshot, snapshot.strategy, candidate_counts(snapshot, lowest, highest))
    return tuple(simulate_candidate(snapshot, count, snapshot.strategy) for count in counts)


def evaluate(snapshot: GroupSnapshot, objective: Objective, watched_s: float) -> Evaluation:
    """Return the decision on the snapshot and the counts that its bounds would decide on."""
    decision = _decide(snapshot, objective)
    capacity = snapshot.capacity
    if not decision.rejected or capacity is None:
        return Evaluation(watched_s, decision)
    margin = rate_margin(snapshot)
    high = capacity.high or capacity.sure_messages_per_s
    able = replace(capacity, messages_per_s=high, low=high, is_lower_bound=False)
    targets = [
        decision.target,
        _decide(_at_rates(snapshot, 1 + margin), objective).target,
        _decide(replace(_at_rates(snapshot, 1 - margin), capacity=able), objective).target,
    ]
    return Evaluation(watched_s, decision, min(targets), max(targets), capacity.is_lower_bound)


def rate_margin(snapshot: GroupSnapshot) -> float:
    """Return the half width of the arrival rate's 95 % interval as a share of the rate (0 to ``UNKNOWN_MARGIN``).

    By the spread of the window's intervals, so that a bursty load asks for a longer watch than a steady one.
    """
    since = snapshot.at.timestamp() - snapshot.window_s
    rates = [
        point.arrival_rate
        for point in snapshot.recent
        if point.arrival_rate is not None and point.at.timestamp() > since
    ]
    if len(rates) < FEWEST_POINTS:
        return UNKNOWN_MARGIN
    middle = mean(rates)
    return min(UNKNOWN_MARGIN, Z_975 * stdev(rates) / sqrt(len(rates)) / middle) if middle > 0 else 0.0


def _decide(snapshot: GroupSnapshot, objective: Objective) -> Decision:
    return decide(snapshot, own_outcomes(snapshot, objective.lowest, objective.highest), objective, snapshot.at)


def _at_rates(snapshot: GroupSnapshot, factor: float) -> GroupSnapshot:
    states = (
        replace(
            state, upper_arrival_rate=None if state.upper_arrival_rate is None else state.upper_arrival_rate * factor
        )
        for state in snapshot.queues
    )
    return replace(snapshot, queues=tuple(states))
