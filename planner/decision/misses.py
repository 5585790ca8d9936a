"""Where an outcome misses the objective: for good, or only until the backlog is worked off, and then by how much."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.decision.objective import Objective
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad
from planner.text.words import duration, scaled

RECOVERY_S = 600.0
"""How long a wait above the objective may last where the policy does not say when a backlog must be gone."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A bound of the objective that is met later than the policy allows: ``late_s`` seconds later; one sentence."""

    late_s: float
    sentence: str


def lasting_misses(outcome: CandidateOutcome, objective: Objective) -> Iterator[str]:
    """Yield one sentence for each bound that the outcome misses for good, or cannot be shown to meet."""
    if not objective.lowest <= outcome.count <= objective.highest:
        yield f"the policy allows {objective.lowest} to {objective.highest} {scaled(outcome.members_per_pod)}s"
    if outcome.utilisation is None:
        yield "the busiest consumer's utilisation is unknown"
    elif outcome.utilisation > objective.max_utilisation:
        yield (
            f"the busiest consumer would be used at {outcome.utilisation:.0%}, "
            f"above the bound of {objective.max_utilisation:.0%}{_hot_note(outcome, objective)}"
        )
    if outcome.lag is None:
        return  # how far behind it is nobody knows: utilisation alone decides
    if objective.oldest_message_s is not None and len(_recoveries(outcome, objective)) < len(outcome.loads):
        yield f"a new message would wait longer than {duration(objective.oldest_message_s)} for good"
    if objective.backlog_gone_s is not None and outcome.drain_s is None:
        yield f"the backlog would never be gone, the objective is {duration(objective.backlog_gone_s)}"


def delays(outcome: CandidateOutcome, objective: Objective) -> tuple[Delay, ...]:
    """Return the bounds that the outcome meets too late: no count makes a backlog vanish at once."""
    return tuple(_delays(outcome, objective))


def _delays(outcome: CandidateOutcome, objective: Objective) -> Iterator[Delay]:
    in_time_s = objective.backlog_gone_s or RECOVERY_S
    wait_s = recovery_s(outcome, objective)
    if wait_s is not None and wait_s > in_time_s:
        yield Delay(
            wait_s - in_time_s,
            f"a new message would wait longer than {duration(objective.oldest_message_s)} for another "
            f"{duration(wait_s)}, the objective allows {duration(in_time_s)}",
        )
    allowed_s = objective.backlog_gone_s
    if allowed_s is not None and outcome.drain_s is not None and outcome.drain_s > allowed_s:
        late_s = outcome.drain_s - allowed_s
        yield Delay(
            late_s,
            f"the backlog would be gone after {duration(outcome.drain_s)}, {duration(late_s)} later than the objective "
            f"of {duration(allowed_s)}",
        )


def recovery_s(outcome: CandidateOutcome, objective: Objective) -> float | None:
    """Return for how many more seconds a new message waits longer than the objective.

    ``None`` where the policy has no bound on a wait or no consumer is known to come back under it.
    """
    return max(_recoveries(outcome, objective), default=None)


def _recoveries(outcome: CandidateOutcome, objective: Objective) -> list[float]:
    if objective.oldest_message_s is None:
        return []
    known = [_recovery_s(load, objective.oldest_message_s) for load in outcome.loads]
    return [recovery for recovery in known if recovery is not None]


def _recovery_s(load: ConsumerLoad, allowed_s: float) -> float | None:
    """The backlog falls evenly to 0 over ``drain_s``, and with it the wait; ``None``: for ever, or unknown."""
    if load.drain_s is None or load.wait_s is None:
        return None
    return 0.0 if load.wait_s <= allowed_s else load.drain_s * (1.0 - allowed_s / load.wait_s)


def _hot_note(outcome: CandidateOutcome, objective: Objective) -> str:
    hot, share = outcome.hot_queue, outcome.hot_utilisation
    if hot is None or share is None or share <= objective.max_utilisation:
        return ""
    return f"; {hot.noun} {hot} alone takes {share:.0%}, which no count changes"
