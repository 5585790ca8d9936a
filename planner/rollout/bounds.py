"""What a policy lets any plan do, whatever its author or approver: a plan is free text until compared with this."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from planner.rollout.autoscalers import Handling, expected_settings
from planner.rollout.plan import GroupRef, RolloutPlan
from planner.rollout.steps import (
    AutoscalerState,
    AwaitReady,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far the clock of a host that makes plans may be ahead of the API server's."""

_Touches = StartConsumers | StopConsumers | AwaitReady | MarkVictims | UpdateTemplate | DeleteDeployment


@dataclass(frozen=True, slots=True)
class PolicyBounds:
    """The policy's Deployment and group, its ``lowest`` and ``highest`` count, and how long a plan may be valid."""

    policy: str
    deployment: str
    group: GroupRef
    lowest: int
    highest: int
    valid_for_s: int
    autoscaler: Handling


def outside_policy(plan: RolloutPlan, bounds: PolicyBounds) -> tuple[str, ...]:
    """Return in sentences all by which the plan leaves its policy; none when it lies inside."""
    return (*_names(plan, bounds), *_counts(plan, bounds), *_autoscaler(plan, bounds), *_validity(plan, bounds))


def from_the_future(plan: RolloutPlan, now: datetime) -> tuple[str, ...]:
    """Return in sentences which of the plan's times have not come yet: they would make it valid for longer."""
    times = {"the plan was made": plan.made_at, "the snapshot that it rests on was taken": plan.snapshot.at}
    return tuple(
        f"{what} at {at:%Y-%m-%d %H:%M:%S %Z}, which is later than now ({now:%Y-%m-%d %H:%M:%S %Z})"
        for what, at in times.items()
        if at > now + CLOCK_SKEW
    )


def _names(plan: RolloutPlan, bounds: PolicyBounds) -> Iterator[str]:
    if plan.policy != bounds.policy:
        yield f"the plan is for policy {plan.policy}, not {bounds.policy}"
    if plan.deployment != bounds.deployment:
        yield f"the plan changes Deployment {plan.deployment}, policy {bounds.policy} names {bounds.deployment}"
    if plan.group != bounds.group:
        yield f"the plan is for {_group(plan.group)}, policy {bounds.policy} for {_group(bounds.group)}"
    allowed = {bounds.deployment}
    for number, step in enumerate(plan.steps, start=1):
        if isinstance(step, CreateDeployment):
            allowed.add(step.deployment)
            if step.origin not in (None, bounds.deployment):
                yield f"step {number} copies Deployment {step.origin}, which is not the policy's"
        elif isinstance(step, _Touches) and (step.deployment or plan.deployment) not in {*allowed, plan.deployment}:
            yield f"step {number} changes Deployment {step.deployment}, which is neither the policy's nor made before"


def _group(group: GroupRef) -> str:
    return f"{group.system} group {group.group} on {group.cluster}"


def _counts(plan: RolloutPlan, bounds: PolicyBounds) -> Iterator[str]:
    """Yield each count outside ``minReplicas`` and ``maxReplicas``; where a group is outside, plans bring it nearer.

    A migration empties one Deployment for another, so its total counts in the end only; none may outgrow the policy.
    """
    start = plan.preconditions.replicas
    lowest, highest = min(bounds.lowest, start), max(bounds.highest, start)
    counts = {plan.deployment: start}
    for number, step in enumerate(plan.steps, start=1):
        if not isinstance(step, StartConsumers | StopConsumers):
            continue
        name = step.deployment or plan.deployment
        before = counts.get(name, 0)
        if step.from_replicas != before:
            yield f"step {number} starts from {step.from_replicas} replicas, the steps before it leave {before}"
        if step.to_replicas > highest:
            yield f"step {number} goes to {step.to_replicas} replicas, {_at_most(bounds)}"
        if not plan.migration and step.to_replicas < lowest:
            yield f"step {number} goes to {step.to_replicas} replicas, {_at_least(bounds)}"
        counts[name] = step.to_replicas
    yield from _last_count(plan, bounds, start, sum(counts.values()))


def _last_count(plan: RolloutPlan, bounds: PolicyBounds, start: int, last: int) -> Iterator[str]:
    if last != start and last > bounds.highest:
        yield f"the plan ends with {last} replicas, {_at_most(bounds)}"
    if last != start and last < bounds.lowest:
        yield f"the plan ends with {last} replicas, {_at_least(bounds)}"
    if plan.target_replicas is not None and plan.target_replicas != last:
        yield f"the plan states {plan.target_replicas} target replicas, its steps end with {last}"


def _at_most(bounds: PolicyBounds) -> str:
    return f"policy {bounds.policy} allows {bounds.highest} at most"


def _at_least(bounds: PolicyBounds) -> str:
    return f"policy {bounds.policy} asks for {bounds.lowest} at least"


def _autoscaler(plan: RolloutPlan, bounds: PolicyBounds) -> Iterator[str]:
    """Yield why the autoscaler's steps are not the ones that the planner makes for the policy's handling."""
    steps = [step for step in plan.steps if isinstance(step, SetAutoscaler)]
    if not steps:
        return
    if not bounds.autoscaler.is_allowed:
        yield f"the plan sets {steps[0].named}, policy {bounds.policy} lets no plan set an autoscaler"
        return
    if any(step.named != steps[0].named for step in steps):
        yield f"the plan sets more than one autoscaler: {', '.join(sorted({step.named for step in steps}))}"
    states = [(step.before, step.after) for step in steps]
    expected = expected_settings(steps[0], _counts_of(plan), bounds.autoscaler)
    if states != expected:
        yield (
            f"the plan sets {steps[0].named} {_describe(states)}, spec.autoscaler of policy {bounds.policy} asks for "
            f"{_describe(expected)}"
        )
    if not _encloses(plan.steps):
        yield f"the plan changes replicas while {steps[0].named} is not paused"


def _describe(states: Sequence[tuple[AutoscalerState, AutoscalerState]]) -> str:
    return ", then ".join(f"from {before} to {after}" for before, after in states)


def _counts_of(plan: RolloutPlan) -> list[int]:
    scales = [step for step in plan.steps if isinstance(step, StartConsumers | StopConsumers) and not step.deployment]
    return [plan.preconditions.replicas, *(step.to_replicas for step in scales)]


def _encloses(steps: Sequence[Step]) -> bool:
    """True when the autoscaler's first step comes before all others that change something, and its second after."""
    kinds = [type(step) for step in steps if isinstance(step, _CHANGES)]
    inner = kinds[1:-1] if kinds.count(SetAutoscaler) > 1 else kinds[1:]
    return kinds[0] is SetAutoscaler and SetAutoscaler not in inner


_CHANGES = (
    SetAutoscaler,
    StartConsumers,
    StopConsumers,
    MarkVictims,
    CreateDeployment,
    UpdateTemplate,
    DeleteDeployment,
)


def _validity(plan: RolloutPlan, bounds: PolicyBounds) -> Iterator[str]:
    valid_for = plan.valid_until - plan.made_at
    if valid_for > timedelta(seconds=bounds.valid_for_s):
        yield (
            f"the plan is valid for {valid_for.total_seconds():.0f} s, policy {bounds.policy} allows "
            f"{bounds.valid_for_s} s"
        )
