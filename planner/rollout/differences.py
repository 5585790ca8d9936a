"""What is different between two plans of one request: what a person who knows the first has to read of the second."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.decision.decision import Decision
from planner.rollout.explain import tell_moves, tell_step
from planner.rollout.plan import RolloutPlan
from planner.simulation.outcome import Seconds
from planner.text.words import counted, usual_count, usually

UNKNOWN = "unknown"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is different, in words: what it was before and what it is after."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what}: {self.before} -> {self.after}"


def plan_differences(before: RolloutPlan, after: RolloutPlan | Decision) -> tuple[Difference, ...]:
    """Return what is different in the plan that was made anew, or in the hold that came instead.

    Times and digests are always different, so they are left out.
    """
    pairs = _of_hold(before, after) if isinstance(after, Decision) else _of_plans(before, after)
    return tuple(pair for pair in pairs if pair.before != pair.after)


def _of_hold(before: RolloutPlan, after: Decision) -> Iterator[Difference]:
    yield Difference("count", _count(before), f"{after.current} (hold)")
    yield Difference("reason", before.reason, after.reason)


def _of_plans(before: RolloutPlan, after: RolloutPlan) -> Iterator[Difference]:
    yield Difference("count", _count(before), _count(after))
    system = after.group.system
    yield Difference("moved queues", *(tell_moves(plan.forecast.moved_queues, system) for plan in (before, after)))
    yield Difference("longest pause", *(_pause(plan) for plan in (before, after)))
    yield Difference("messages that come twice", *(_duplicates(plan) for plan in (before, after)))
    yield from _steps(before, after)
    yield Difference("members", *(_members(plan) for plan in (before, after)))
    yield Difference("strategy", before.preconditions.strategy, after.preconditions.strategy)
    yield Difference("queues", str(before.preconditions.queues), str(after.preconditions.queues))
    yield Difference("digest of the policy", *(plan.policy_digest or UNKNOWN for plan in (before, after)))
    yield Difference("reason", before.reason, after.reason)


def _count(plan: RolloutPlan) -> str:
    return f"{plan.preconditions.replicas} to {plan.final_replicas}"


def _members(plan: RolloutPlan) -> str:
    names = plan.preconditions.members
    return f"{counted(len(names), 'member')} ({', '.join(names)})"


def _pause(plan: RolloutPlan) -> str:
    cost = plan.forecast.cost
    return _seconds(cost.pause_seconds) if cost else UNKNOWN


def _seconds(seconds: Seconds | None) -> str:
    return UNKNOWN if seconds is None else usually(seconds.p50, seconds.p95)


def _duplicates(plan: RolloutPlan) -> str:
    cost = plan.forecast.cost
    return usual_count(cost.duplicates.p50, cost.duplicates.p95) if cost else UNKNOWN


def _steps(before: RolloutPlan, after: RolloutPlan) -> Iterator[Difference]:
    """Yield each step that is another one; where one plan has fewer, the other's last ones stand alone."""
    old, new = ([tell_step(step, plan.group.system) for step in plan.steps] for plan in (before, after))
    for number in range(max(len(old), len(new))):
        pair = [steps[number] if number < len(steps) else NONE for steps in (old, new)]
        yield Difference(f"step {number + 1}", *pair)
