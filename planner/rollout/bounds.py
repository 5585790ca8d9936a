"""What a policy lets any plan do, whatever its author or approver: a plan is free text until compared with this."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from planner.model.deployments import APPS, DEPLOYMENT
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
from planner.rollout.targets import Target
from planner.text.words import and_list, duration

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far the clock of a host that makes plans may be ahead of the API server's."""

_Touches = StartConsumers | StopConsumers | AwaitReady | MarkVictims | UpdateTemplate | DeleteDeployment


@dataclass(frozen=True, slots=True)
class PolicyBounds:
    """The policy's target (``kind``, ``deployment``) and group, its counts, how long a plan may be valid.

    ``shared_with`` are the policies of the other groups that the target's pods serve. ``targets`` are the Deployments
    that the pods are split over, none where ``deployment`` is the only one: counts are then of all together.
    """

    policy: str
    deployment: str
    group: GroupRef
    lowest: int
    highest: int
    valid_for_s: int
    autoscaler: Handling
    kind: str = DEPLOYMENT
    api_version: str = APPS
    shared_with: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all targets, the first one first."""
        return tuple(target.name for target in self.targets) or (self.deployment,)

    @property
    def target(self) -> str:
        """The targets with their kind."""
        return f"{self.kind}{'s' if self.targets else ''} {and_list(self.names)}"


def outside_policy(plan: RolloutPlan, bounds: PolicyBounds) -> tuple[str, ...]:
    """Return in sentences all by which the plan leaves its policy; none when it lies inside."""
    return (
        *_names(plan, bounds),
        *_others(plan, bounds),
        *_counts(plan, bounds),
        *_autoscaler(plan, bounds),
        *_validity(plan, bounds),
    )


def _others(plan: RolloutPlan, bounds: PolicyBounds) -> Iterator[str]:
    """Yield why the plan leaves out a group that the target's pods serve, or takes in another."""
    planned, expected = sorted(other.policy for other in plan.others or ()), sorted(bounds.shared_with)
    if planned == expected:
        return
    if plan.migration:
        yield f"{bounds.target} also serves the groups of policy {', '.join(expected)}: a migration is of one group"
    else:
        yield (
            f"the plan counts on the groups of policy {', '.join(planned) or 'none'} in the same pods, "
            f"policy {bounds.policy} names {', '.join(expected) or 'none'} in sharedWith"
        )


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
    if plan.api_version_of_target != bounds.api_version:
        yield (
            f"the plan changes a kind of {plan.api_version_of_target}, policy {bounds.policy} names one of "
            f"{bounds.api_version}"
        )
    if plan.kind_of_target != bounds.kind or tuple(plan.replicas_before) != bounds.names:
        named = and_list(bounds.names) if plan.kind_of_target == bounds.kind else bounds.target
        yield f"the plan changes {plan.target}, policy {bounds.policy} names {named}"
    if plan.group != bounds.group:
        yield f"the plan is for {_group(plan.group)}, policy {bounds.policy} for {_group(bounds.group)}"
    yield from _foreign_deployments(plan, bounds)


def _foreign_deployments(plan: RolloutPlan, bounds: PolicyBounds) -> Iterator[str]:
    if plan.migration and bounds.targets:
        yield f"the group is split over {bounds.target}: a migration changes one Deployment that runs all members"
    allowed = set(bounds.names)
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

    A migration may empty one Deployment for another: of its Deployments together no fewer stay than ``minReplicas``, or
    none, for which a person types a phrase (``RolloutPlan.stands_still``). None may outgrow the policy.
    """
    start, counts = plan.preconditions.replicas, plan.replicas_before
    for number, step in enumerate(plan.steps, start=1):
        if isinstance(step, UpdateTemplate):
            yield from _rolled(plan, bounds, number, sum(counts.values()) - step.max_unavailable)
        elif isinstance(step, StartConsumers | StopConsumers):
            name = step.deployment or plan.deployment
            if step.from_replicas != (before := counts.get(name, 0)):
                yield f"step {number} starts from {step.from_replicas} replicas, the steps before it leave {before}"
            counts[name] = step.to_replicas
            yield from _scaled(plan, bounds, number, step)
            yield from _together(plan, bounds, number, step, sum(counts.values()))
    yield from _last_count(plan, bounds, start, sum(counts.values()))


def _rolled(plan: RolloutPlan, bounds: PolicyBounds, number: int, left: int) -> Iterator[str]:
    """Yield why a roll of a template leaves too few of all pods."""
    if left < min(bounds.lowest, plan.preconditions.replicas):
        yield f"step {number} may leave {left} pods, {_at_least(bounds, _whole(bounds))}"


def _scaled(
    plan: RolloutPlan, bounds: PolicyBounds, number: int, step: StartConsumers | StopConsumers
) -> Iterator[str]:
    """Yield why a step leaves the bounds of its own Deployment."""
    name = step.deployment or plan.deployment
    bound, own = _bound_of(bounds, name), plan.replicas_before.get(name, plan.preconditions.replicas)
    if step.to_replicas > max(bound.highest, own):
        yield f"step {number} goes to {step.to_replicas} replicas, {_at_most(bounds, bound)}"
    if not plan.migration and step.to_replicas < min(bound.lowest, own):
        yield f"step {number} goes to {step.to_replicas} replicas, {_at_least(bounds, bound)}"


def _together(
    plan: RolloutPlan, bounds: PolicyBounds, number: int, step: StartConsumers | StopConsumers, left: int
) -> Iterator[str]:
    """Yield why all Deployments have too few or too many pods after a step."""
    start = plan.preconditions.replicas
    if plan.migration and isinstance(step, StopConsumers) and 0 < left < min(bounds.lowest, start):
        yield f"step {number} leaves {left} replicas in all, {_at_least(bounds, _whole(bounds))}"
    if plan.targets and not min(bounds.lowest, start) <= left <= max(bounds.highest, start):
        yield f"step {number} leaves {left} replicas together, {_between(bounds)}"


@dataclass(frozen=True, slots=True)
class _Bound:
    """The fewest and the most replicas of one Deployment; ``of`` names it where it is one of several."""

    lowest: int
    highest: int
    of: str = ""


def _whole(bounds: PolicyBounds) -> _Bound:
    return _Bound(bounds.lowest, bounds.highest)


def _bound_of(bounds: PolicyBounds, name: str) -> _Bound:
    own = next((target for target in bounds.targets if target.name == name), None)
    if own is None:
        return _whole(bounds)
    highest = bounds.highest if own.highest is None else min(own.highest, bounds.highest)
    return _Bound(own.lowest, highest, f" of Deployment {name}")


def _last_count(plan: RolloutPlan, bounds: PolicyBounds, start: int, last: int) -> Iterator[str]:
    whole = _whole(bounds)
    if last != start and last > bounds.highest:
        yield f"the plan ends with {last} replicas, {_at_most(bounds, whole)}"
    if last != start and last < bounds.lowest:
        yield f"the plan ends with {last} replicas, {_at_least(bounds, whole)}"
    if plan.target_replicas is not None and plan.target_replicas != last:
        yield f"the plan states {plan.target_replicas} target replicas, its steps end with {last}"


def _at_most(bounds: PolicyBounds, bound: _Bound) -> str:
    return f"policy {bounds.policy} allows {bound.highest}{bound.of} at most"


def _at_least(bounds: PolicyBounds, bound: _Bound) -> str:
    return f"policy {bounds.policy} asks for {bound.lowest}{bound.of} at least"


def _between(bounds: PolicyBounds) -> str:
    return f"policy {bounds.policy} allows {bounds.lowest} to {bounds.highest}"


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
            f"the plan is valid for {duration(valid_for.total_seconds())}, policy {bounds.policy} allows "
            f"{duration(bounds.valid_for_s)}"
        )
