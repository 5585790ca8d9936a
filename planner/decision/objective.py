"""What the policy wants, as plain figures."""

import math
from dataclasses import dataclass

from planner.decision.prices import DEFAULT_PRICES, Prices
from planner.demand.events import Event


@dataclass(frozen=True, slots=True)
class WaitObjective:
    """The objective by the wait, weighed: a message is late after ``late_after_s``, and late minutes have a price.

    A consumer that is started works after ``pod_start_s``; the group is decided on again after ``decided_every_s``.
    """

    late_after_s: float = 60.0
    pod_start_s: float = 30.0
    decided_every_s: float = 600.0
    prices: Prices = DEFAULT_PRICES


@dataclass(frozen=True, slots=True)
class StepLimit:
    """At most ``pods`` more (or fewer) within ``period_s`` seconds; 0 bounds each change by itself."""

    pods: int
    period_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Objective:
    """Bounds of a decision, and what it weighs within them.

    ``lowest`` and ``highest`` bound the count. No consumer may be used above ``max_utilisation`` (share of its
    capacity; infinite where the policy sets no bound). The backlog must be gone within ``backlog_gone_s``; by then,
    too, no new message may wait longer than ``oldest_message_s``. The two times are ``None`` where the policy does not
    ask. Data older than ``max_age_s`` or less complete than ``min_completeness`` (0 to 1) gives no decision.
    ``sets_autoscaler``: a plan may set the autoscaler of the Deployment, so that it undoes nothing. The group must not
    have changed for ``quiet_s``; ``None``
    asks for no such rest. With ``wait`` the count is the one that costs least over possible futures, without it the
    smallest that meets the bounds. After ``idle_s`` seconds without a message the last pod stops, and the first starts
    when one waits; ``None``: one pod always stays. ``lowest`` is then of a group that has any.
    ``events`` are known times with another load. A decision minds those that go on or begin within
    ``answered_after_s``: by then the next decision's pods work. ``step_up`` and ``step_down`` bound how far one
    decision goes, ``None`` where the policy sets no limit.
    """

    lowest: int
    highest: int
    max_utilisation: float
    oldest_message_s: float | None
    backlog_gone_s: float | None
    max_age_s: float
    min_completeness: float
    sets_autoscaler: bool = False
    quiet_s: float | None = None
    wait: WaitObjective | None = None
    idle_s: float | None = None
    events: tuple[Event, ...] = ()
    answered_after_s: float = 630.0
    step_up: StepLimit | None = None
    step_down: StepLimit | None = None

    @property
    def stated_utilisation(self) -> float | None:
        """The bound on the utilisation, ``None`` where the policy sets none."""
        return self.max_utilisation if math.isfinite(self.max_utilisation) else None
