"""Approval by rule: a plan's forecast and the time against what the policy allows without a person."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from planner.rollout.plan import Cost, RolloutPlan
from planner.rollout.steps import PauseForPerson
from planner.rollout.windows import ChangeWindow, why_closed
from planner.text.words import counted, duration, number, queue_noun, queue_nouns, queues


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """What a plan may cost at most so that no person need look at it; ``None`` bounds nothing, one bound must be there.

    ``longest_pause_s`` goes for queues that move and for those that stay. ``windows`` are those in which it may be
    approved; none means at any time. Without ``may_repeat``, as the consumers are not idempotent, no plan is approved
    after which a message may come twice.
    """

    most_moved_queues: int | None = None
    most_duplicates: int | None = None
    longest_pause_s: float | None = None
    windows: tuple[ChangeWindow, ...] = ()
    may_repeat: bool = True

    def __post_init__(self) -> None:
        if self.most_moved_queues is self.most_duplicates is self.longest_pause_s is None:
            raise ValueError("an approval by rule to name a bound: moved queues, duplicates or pause")


def why_not(plan: RolloutPlan, rule: ApprovalRule, at: datetime) -> tuple[str, ...]:
    """Return every reason why the rule does not approve the plan at time ``at``; none means that it does.

    Forecasts count by their upper ends, the 95th of 100 trials; what is not known is within no bound.
    """
    return tuple(_reasons(plan, rule, at))


def _reasons(plan: RolloutPlan, rule: ApprovalRule, at: datetime) -> Iterator[str]:
    if at >= plan.valid_until:
        yield f"the plan held until {plan.valid_until:%Y-%m-%d %H:%M:%S %Z} only"
    if plan.migration:
        yield f"it is a migration ({plan.migration}): those are for a person"
    if any(isinstance(step, PauseForPerson) for step in plan.steps):
        yield "it asks a person a question on its way"
    if plan.others:
        yield f"it changes the groups of {len(plan.others) + 1} policies: that is for a person"
    yield from _too_many_moves(plan, rule)
    yield from _too_much_cost(plan.forecast.cost, rule, queue_noun(plan.group.system))
    if not rule.may_repeat:
        yield from _repeats(plan.forecast.cost)
    if rule.windows and (shut := why_closed(rule.windows, at)):
        yield shut


def repeated(cost: Cost) -> str:
    """Return in half a sentence how many messages come twice, by the forecast's upper end."""
    return f"up to {counted(cost.duplicates.p95, 'message')} come twice (1 in 20)"


def _repeats(cost: Cost | None) -> Iterator[str]:
    if cost is None:
        yield "how many messages come twice is not known beforehand, and spec.idempotent of the policy is false"
    elif cost.duplicates.p95:
        yield f"{repeated(cost)}, and spec.idempotent of the policy is false"


def _too_many_moves(plan: RolloutPlan, rule: ApprovalRule) -> Iterator[str]:
    most = plan.forecast.moved_queues.most
    if rule.most_moved_queues is None:
        return
    if most is None:
        yield f"how many {queue_nouns(plan.group.system)} move is not known beforehand"
    elif most > rule.most_moved_queues:
        yield f"up to {queues(most, plan.group.system)} move, {number(rule.most_moved_queues)} may"


def _too_much_cost(cost: Cost | None, rule: ApprovalRule, noun: str) -> Iterator[str]:
    allowed = rule.most_duplicates
    if allowed is not None and cost is None:
        yield "how many messages come twice is not known beforehand"
    elif allowed is not None and cost is not None and cost.duplicates.p95 > allowed:
        yield f"{repeated(cost)}, {number(allowed)} may"
    if rule.longest_pause_s is not None:
        yield from _too_long_pause(cost, rule.longest_pause_s, noun)


def _too_long_pause(cost: Cost | None, allowed_s: float, noun: str) -> Iterator[str]:
    pauses = {
        f"a {noun} that moves": cost.pause_seconds if cost else None,
        f"a {noun} that stays": cost.stall_seconds if cost else None,
    }
    for subject, pause in pauses.items():
        if pause is None:
            yield f"how long {subject} pauses is not known beforehand"
        elif pause.p95 > allowed_s:
            yield f"{subject} pauses up to {duration(pause.p95)} (1 in 20), {duration(allowed_s)} may be"
