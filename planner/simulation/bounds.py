"""The ends of what a snapshot knows as an interval only, and figures that both systems have."""

from collections.abc import Sequence

from planner.errors import BadInputError
from planner.model.snapshot import Capacity, GroupSnapshot, QueueState
from planner.simulation.outcome import CandidateOutcome

LOWER, UPPER = 0, 1
ENDS = (LOWER, UPPER)


def at(end: int, values: Sequence[float]) -> float:
    """Return one end of the values."""
    return min(values) if end == LOWER else max(values)


def rate_and_lag(state: QueueState, end: int) -> tuple[float, float]:
    """Return the rate at one end of mean and upper rate, and the lag; raise ``BadInputError`` where one is unknown."""
    rates = [rate for rate in (state.arrival_rate, state.upper_arrival_rate) if rate is not None]
    if not rates:
        raise BadInputError(f"the arrival rate of queue {state.queue} is unknown")
    if state.lag is None:
        raise BadInputError(f"the lag of queue {state.queue} is unknown")
    return float(at(end, rates)), float(max(state.lag, 0))


def fastest_and_slowest(capacity: Capacity) -> tuple[float, float]:
    """Return the most and the least messages a second that one consumer may do.

    Raises ``BadInputError`` where it may do none, so that no message has a longest time.
    """
    slowest = capacity.sure_messages_per_s
    if slowest <= 0:
        raise BadInputError("how long one message takes is unknown: what was measured allows for none in a second")
    return capacity.high or capacity.messages_per_s, slowest


def leaving(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> list[str]:
    """Return the clients that the outcome shows no more."""
    staying = {load.client for load in outcome.loads}
    return [client for client in snapshot.clients if client not in staying]


def refuse_two_changes(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> None:
    """Raise ``BadInputError`` where strategy and count change together."""
    if outcome.strategy != snapshot.strategy and outcome.members != len(snapshot.clients):
        raise BadInputError("strategy and count change together: switch the strategy first, then scale")
