"""The answer: a count with reasons."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from planner.model.times import check_time
from planner.text.words import pods


class HoldCause(StrEnum):
    """Why the planner leaves a group as it is."""

    RIGHT_ALREADY = "RightAlready"
    OLD_DATA = "OldData"
    INCOMPLETE_DATA = "IncompleteData"
    MEMBERS_UNKNOWN = "MembersUnknown"
    SEVERAL_DEPLOYMENTS = "SeveralDeployments"
    UNKNOWN_PODS = "UnknownPods"
    UNEVEN_PODS = "UnevenPods"
    NO_CONSUMERS = "NoConsumers"
    UNKNOWN_STRATEGY = "UnknownStrategy"
    UNSUPPORTED_STRATEGY = "UnsupportedStrategy"
    OTHER_LEVER = "OtherLever"
    UNKNOWN_CAPACITY = "UnknownCapacity"
    REFUTED_CAPACITY = "RefutedCapacity"
    BLOCKED_QUEUES = "BlockedQueues"
    COMMITS_WENT_BACK = "CommitsWentBack"
    SLOW_MEMBERS = "SlowMembers"
    UNKNOWN_RATES = "UnknownRates"
    UNKNOWN_LAG = "UnknownLag"
    UNSETTLED = "Unsettled"
    RECENTLY_CHANGED = "RecentlyChanged"
    UNKNOWN_CHANGES = "UnknownChanges"
    STEP_LIMIT = "StepLimit"
    OTHER_SCALER = "OtherScaler"
    GROWTH_DID_NOT_HELP = "GrowthDidNotHelp"
    NO_COUNT_MEETS = "NoCountMeetsObjective"
    PLAN_REFUSED = "PlanRefused"
    SHARED_TARGET = "SharedTarget"


EVENTS_LEAD = "; known beforehand: "
"""What stands before the events in a bill's ``source``."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A count that was not chosen, with one sentence for each reason."""

    count: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """What a first action is expected to cost over the horizon, in hours of one consumer; the sum is ``total_hours``.

    ``consumer_hours`` are paid for consumers, ``change_hours`` is the price of the change to ``count`` now,
    ``later_change_hours`` of all later ones, ``late_hours`` the price of ``late_minutes`` expected minutes in which
    some message waits too long. ``bound_hours`` is for a time bound of the policy that is met too late.
    ``is_change_known`` is ``False`` where the price lacks pauses and duplicates, or stands for all queues.
    """

    count: int
    consumer_hours: float
    change_hours: float
    later_change_hours: float
    late_minutes: float
    late_hours: float
    bound_hours: float
    total_hours: float
    is_change_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionBill:
    """The bill that a count was chosen by: staying, the chosen count, and those next to it, by count.

    ``horizon_seconds`` is how far it looks ahead, ``first_change_seconds`` how long a count stays at least before the
    best later changes, ``futures`` how many possible loads it is the mean of, ``source``
    where these come from, as half a sentence. ``level`` is the load now, in consumers. Counts and hours are of pods,
    each of which runs ``members_per_pod`` consumers. ``consumer_hour`` is the policy's price of a consumer for an hour,
    in money, ``None`` where it states none.
    """

    horizon_seconds: float
    first_change_seconds: float
    futures: int
    source: str
    level: float
    lines: tuple[BillLine, ...]
    members_per_pod: int = 1
    consumer_hour: float | None = None

    @property
    def has_events(self) -> bool:
        """Whether known events are in the possible loads: ``source`` names them then."""
        return EVENTS_LEAD in self.source

    def line(self, count: int) -> BillLine | None:
        """Return the line of a count, ``None`` where it has none."""
        return next((line for line in self.lines if line.count == count), None)


@dataclass(frozen=True, slots=True)
class Decision:
    """Scale to ``target`` or hold: which of the two follows from the counts, ``hold_cause`` says why it holds.

    Counts are of pods, each of which runs ``members_per_pod`` consumers; of members where that is unknown (1 then).
    ``reason`` is one full sentence for people. ``strategy`` is the one that all outcomes were simulated with. ``bill``
    is what a decision by the horizon was weighed by; ``None`` for one by the smallest count, and where nothing was
    weighed.
    """

    group: str
    decided_at: datetime
    strategy: str | None
    current: int
    target: int
    reason: str
    rejected: tuple[Rejection, ...]
    hold_cause: HoldCause | None = None
    bill: DecisionBill | None = None
    members_per_pod: int = 1

    def __post_init__(self) -> None:
        check_time(f"decision on group {self.group}", self.decided_at)
        if (self.hold_cause is None) == (self.current == self.target):
            raise ValueError(
                f"decision on group {self.group}: {self.current} to {self.target} with hold cause {self.hold_cause}"
            )

    def as_hold(self, sentence: str) -> "Decision":
        """Return the hold that it becomes where no plan can carry it out; ``sentence`` says why, without its stop."""
        present = pods(self.current, self.current * self.members_per_pod)
        reason = f"Hold at {present}: {self.target} would be right, but {sentence}."
        return replace(self, target=self.current, reason=reason, hold_cause=HoldCause.PLAN_REFUSED)

    @property
    def is_hold(self) -> bool:
        """True when nothing is to be changed."""
        return self.target == self.current
