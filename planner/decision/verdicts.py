"""What speaks against each count: bounds that it misses for good, and those that it meets too late."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.decision.expected_events import event_rise, raise_load
from planner.decision.misses import Delay, delays, lasting_misses
from planner.decision.objective import Objective
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """The arguments against one outcome: ``lasting`` sentences, ``delays`` while a backlog is worked off."""

    outcome: CandidateOutcome
    lasting: tuple[str, ...]
    delays: tuple[Delay, ...]

    @property
    def late_s(self) -> float:
        """By how many seconds the latest of its bounds is met too late; 0 where none is."""
        return max((delay.late_s for delay in self.delays), default=0.0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All arguments, lasting ones first."""
        return (*self.lasting, *(delay.sentence for delay in self.delays))


def verdicts_of(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], objective: Objective
) -> dict[int, Verdict]:
    """Return the arguments against each outcome of the group's own strategy, counts ascending."""
    rise = event_rise(snapshot, objective)
    raised = [raise_load(outcome, rise) for outcome in outcomes if outcome.strategy == snapshot.strategy]
    return {
        outcome.count: Verdict(outcome, tuple(lasting_misses(outcome, objective)), delays(outcome, objective))
        for outcome in sorted(raised, key=lambda outcome: outcome.count)
    }


def is_able(verdict: Verdict, objective: Objective) -> bool:
    """Return whether the count meets all lasting bounds and may be chosen."""
    is_allowed = objective.lowest <= verdict.outcome.count <= objective.highest
    return is_allowed and not verdict.lasting and can_be_chosen(verdict.outcome, objective)


def can_be_chosen(outcome: CandidateOutcome, objective: Objective) -> bool:
    """Return whether the count does more than one fewer would.

    A count below which the policy forbids to go needs no smaller one to compare with.
    """
    return outcome.is_useful or outcome.count == objective.lowest
