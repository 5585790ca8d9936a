"""The answer: a count with reasons."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HoldCause(StrEnum):
    """Why the planner leaves a group as it is."""

    RIGHT_ALREADY = "RightAlready"
    OLD_DATA = "OldData"
    INCOMPLETE_DATA = "IncompleteData"
    NO_CONSUMERS = "NoConsumers"
    UNKNOWN_STRATEGY = "UnknownStrategy"
    UNSUPPORTED_STRATEGY = "UnsupportedStrategy"
    UNKNOWN_CAPACITY = "UnknownCapacity"
    UNKNOWN_RATES = "UnknownRates"
    UNKNOWN_LAG = "UnknownLag"
    UNSETTLED = "Unsettled"
    OTHER_SCALER = "OtherScaler"
    NO_COUNT_MEETS = "NoCountMeetsObjective"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A count that was not chosen, with one sentence for each reason."""

    count: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Scale to ``target`` or hold: which of the two follows from the counts, ``hold_cause`` says why it holds.

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

    def __post_init__(self) -> None:
        if (self.hold_cause is None) == (self.current == self.target):
            raise ValueError(
                f"decision on group {self.group}: {self.current} to {self.target} with hold cause {self.hold_cause}"
            )

    @property
    def is_hold(self) -> bool:
        """True when nothing is to be changed."""
        return self.target == self.current
