"""The targets of a plan: which Deployments it touches, and how many replicas each has after every step."""

from collections.abc import Iterator

from planner.model.deployments import APPS, DEPLOYMENT
from planner.rollout.plan import OtherGroup, RolloutPlan
from planner.rollout.steps import (
    AwaitLag,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    PauseForPerson,
    ResetOffsets,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)

DeploymentStep = (
    StartConsumers | StopConsumers | AwaitReady | MarkVictims | CreateDeployment | UpdateTemplate | DeleteDeployment
)


Basis = RolloutPlan | OtherGroup
"""What a plan rests on and expects for one group: the plan itself for its own."""


def deployment_of(plan: RolloutPlan, step: DeploymentStep) -> str:
    """Return the name of the Deployment that a step is about."""
    return step.deployment or plan.deployment


def kind_of(plan: RolloutPlan, deployment: str) -> str:
    """Return the kind of one of the plan's targets: only its own may be another than a Deployment."""
    return plan.kind_of_target if deployment == plan.deployment else DEPLOYMENT


def api_version_of(plan: RolloutPlan, deployment: str) -> str:
    """Return the API version of the kind of one of the plan's targets."""
    return plan.api_version_of_target if deployment == plan.deployment else APPS


def with_kind(plan: RolloutPlan, deployment: str) -> str:
    """Return one of the plan's targets in words: ``Deployment orders``."""
    return f"{kind_of(plan, deployment)} {deployment}"


def group_of(plan: RolloutPlan, step: AwaitSettled | AwaitLag) -> str:
    """Return the name of the group that a step is about."""
    return step.group or plan.group.group


def basis_of(plan: RolloutPlan, group: str) -> Basis | None:
    """Return what the plan rests on and expects for a group, ``None`` for one that its pods do not serve yet."""
    return next((basis for basis in plan.bases if basis.group.group == group), None)


def has_effect(step: Step) -> bool:
    """True for a step that changes something; the others wait and observe."""
    return not isinstance(step, AwaitReady | AwaitSettled | AwaitLag | PauseForPerson | CheckForecast)


def is_irreversible(plan: RolloutPlan, step: Step) -> bool:
    """True when the old state cannot be reached once the step was done.

    Setting the offsets of a group that is not the plan's own changes nothing of the old state.
    """
    return isinstance(step, DeleteDeployment) or (
        isinstance(step, CloneOffsets | ResetOffsets) and offsets_group(step) == plan.group.group
    )


def offsets_group(step: CloneOffsets | ResetOffsets) -> str:
    """Return the group whose offsets a step sets."""
    return step.to_group if isinstance(step, CloneOffsets) else step.group


def created_deployments(plan: RolloutPlan) -> frozenset[str]:
    """Return the names of the Deployments that the plan creates."""
    return frozenset(step.deployment for step in plan.steps if isinstance(step, CreateDeployment))


def deployments(plan: RolloutPlan) -> tuple[str, ...]:
    """Return the names of all Deployments that the plan touches, its own first."""
    names = [deployment_of(plan, step) for step in plan.steps if isinstance(step, DeploymentStep)]
    return tuple(dict.fromkeys([*plan.replicas_before, *names]))


def groups(plan: RolloutPlan) -> tuple[str, ...]:
    """Return the names of all groups that the plan observes, its own first."""
    named = (basis.group.group for basis in plan.bases)
    return tuple(dict.fromkeys([*named, *_groups_of_steps(plan)]))


def is_left(plan: RolloutPlan) -> bool:
    """True where the plan's own group has no members in the end: they are in another group, or on another cluster."""
    settled = [
        step for step in plan.steps if isinstance(step, AwaitSettled) and group_of(plan, step) == plan.group.group
    ]
    return bool(settled) and settled[-1].members == 0


def replicas_after(plan: RolloutPlan, deployment: str, last: int) -> int | None:
    """Return the replicas that the plan gives a Deployment with the steps up to index ``last`` done, -1 for none.

    ``None`` where it is not there: not yet created, or deleted. A Deployment of which the plan says no count before
    its first step on it has the one that this step starts from.
    """
    count = _count_before(plan, deployment)
    for step in plan.steps[: last + 1]:
        match step:
            case StartConsumers() | StopConsumers() if deployment_of(plan, step) == deployment:
                count = step.to_replicas
            case CreateDeployment() if step.deployment == deployment:
                count = 0
            case DeleteDeployment() if step.deployment == deployment:
                count = None
            case _:
                pass
    return count


def planned_counts(plan: RolloutPlan, deployment: str) -> frozenset[int | None]:
    """Return every count that the plan gives a Deployment at some time."""
    return frozenset(replicas_after(plan, deployment, last) for last in range(-1, len(plan.steps)))


def fewest_ready(plan: RolloutPlan) -> int:
    """Return how many consumers must be ready at every moment: the fewest that the plan has at any time.

    For a plan that starts new before it stops old that is the lesser of the old and the new count.
    """
    names = deployments(plan)
    return min(
        sum(replicas_after(plan, name, last) or 0 for name in names) - _unavailable(plan, last)
        for last in range(-1, len(plan.steps))
    )


def _unavailable(plan: RolloutPlan, last: int) -> int:
    step = plan.steps[last] if last >= 0 else None
    return step.max_unavailable if isinstance(step, UpdateTemplate) else 0


def _count_before(plan: RolloutPlan, deployment: str) -> int | None:
    if deployment in plan.replicas_before:
        return plan.replicas_before[deployment]
    own_steps = (s for s in plan.steps if isinstance(s, DeploymentStep) and deployment_of(plan, s) == deployment)
    first = next((step for step in own_steps if not isinstance(step, MarkVictims)), None)
    match first:
        case StartConsumers() | StopConsumers():
            return first.from_replicas
        case UpdateTemplate() | AwaitReady():
            return first.replicas
        case DeleteDeployment():
            return 0
        case _:
            return None


def _groups_of_steps(plan: RolloutPlan) -> Iterator[str]:
    for step in plan.steps:
        match step:
            case AwaitSettled() | AwaitLag():
                yield group_of(plan, step)
            case CloneOffsets() | ResetOffsets():
                yield offsets_group(step)
            case _:
                pass
