"""Events of the policy in a decision: the load that they bring before another decision could answer it."""

from dataclasses import replace

from planner.decision.objective import Objective
from planner.demand.events import describe_events, largest_rise
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome


def event_rise(snapshot: GroupSnapshot, objective: Objective) -> float:
    """Return the factor, 1 at least, by which events raise the load before the next decision's pods work."""
    rates = [state.upper_arrival_rate for state in snapshot.data_queues]
    known = [rate for rate in rates if rate is not None]
    rate = sum(known) if len(known) == len(rates) else None
    return largest_rise(objective.events, snapshot.at, objective.answered_after_s, rate)


def raise_load(outcome: CandidateOutcome, rise: float) -> CandidateOutcome:
    """Return the outcome with every utilisation so many times as high; what a backlog does is left as it is now."""
    if rise == 1.0:
        return outcome

    def times(utilisation: float | None) -> float | None:
        return None if utilisation is None else utilisation * rise

    return replace(
        outcome,
        utilisation=times(outcome.utilisation),
        hot_utilisation=times(outcome.hot_utilisation),
        loads=tuple(replace(load, utilisation=times(load.utilisation)) for load in outcome.loads),
    )


def name_events(snapshot: GroupSnapshot, objective: Objective, ahead_s: float) -> str:
    """Return what a reason says of the events within the time ahead, with its semicolon; empty where there is none."""
    events = describe_events(objective.events, snapshot.at, ahead_s)
    return f"; {events}" if events else ""
