"""The answer: a count with reasons."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from planner.words import pods


class HoldCause(StrEnum):
    """Why the planner leaves a group as it is."""

    RIGHT_ALREADY = "RightAlready"
    OLD_DATA = "OldData"
    INCOMPLETE_DATA = "IncompleteData"
    MEMBERS_UNKNOWN = "MembersUnknown"
    UNKNOWN_PODS = "UnknownPods"
    UNEVEN_PODS = "UnevenPods"
    NO_CONSUMERS = "NoConsumers"
    UNKNOWN_STRATEGY = "UnknownStrategy"
    UNSUPPORTED_STRATEGY = "UnsupportedStrategy"
    UNKNOWN_CAPACITY = "UnknownCapacity"
    BLOCKED_QUEUES = "BlockedQueues"
    SLOW_MEMBERS = "SlowMembers"
    UNKNOWN_RATES = "UnknownRates"
    UNKNOWN_LAG = "UnknownLag"
    UNSETTLED = "Unsettled"
    RECENTLY_CHANGED = "RecentlyChanged"
    UNKNOWN_CHANGES = "UnknownChanges"
    OTHER_SCALER = "OtherScaler"
    NO_COUNT_MEETS = "NoCountMeetsObjective"
    PLAN_REFUSED = "PlanRefused"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A count that was not chosen, with one sentence for each reason."""

    count: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Scale to ``target`` or hold: which of the two follows from the counts, ``hold_cause`` says why it holds.

    Counts are of pods, each of which runs ``members_per_pod`` consumers; of members where that is unknown (1 then).
    ``reason`` is one full sentence for people. ``strategy`` is the one that all outcomes were simulated with.
    """

    group: str
    decided_at: datetime
    strategy: str | None
    current: int
    target: int
    reason: str
    rejected: tuple[Rejection, ...]
    hold_cause: HoldCause | None = None
    members_per_pod: int = 1

    def __post_init__(self) -> None:
        if (self.hold_cause is None) == (self.current == self.target):
            raise ValueError(
                f"decision on group {self.group}: {self.current} to {self.target} with hold cause {self.hold_cause}"
            )

    def held_for(self, sentence: str) -> "Decision":
        """Return the hold that it becomes where no plan can carry it out; ``sentence`` says why, without its stop."""
        present = pods(self.current, self.current * self.members_per_pod)
        reason = f"Hold at {present}: {self.target} would be right, but {sentence}."
        return replace(self, target=self.current, reason=reason, hold_cause=HoldCause.PLAN_REFUSED)

    @property
    def is_hold(self) -> bool:
        """True when nothing is to be changed."""
        return self.target == self.current
