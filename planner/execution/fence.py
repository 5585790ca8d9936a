"""What else happens to the Deployments of a plan that is in progress, and how many consumers a change would leave."""

from collections.abc import Iterator

from planner.execution.moves import Reconcile
from planner.execution.observation import DeploymentObservation
from planner.execution.plan_targets import (
    created_deployments,
    deployment_of,
    deployments,
    planned_counts,
    replicas_after,
    with_kind,
)
from planner.execution.scalers import lets_autoscaler_scale
from planner.rollout.steps import CreateDeployment, DeleteDeployment, UpdateTemplate


def foreign_undo(reconcile: Reconcile) -> str | None:
    """Return how somebody else has brought a Deployment back to its old state, ``None`` when nobody has.

    A claim that was taken away belongs here too: without it, it is unknown which effects are in. One that says that
    the plan is being undone is newer than the status that was read.
    """
    for deployment in _present_deployments(reconcile):
        if deployment.claim is None:
            return f"somebody took the claim away from {deployment.title}"
        if deployment.claim.plan == reconcile.key and deployment.claim.is_undoing:
            return f"the steps of {deployment.title} are being undone already"
        is_old = _count(deployment) == replicas_after(reconcile.plan, deployment.name, -1)
        if is_old and _count(deployment) != _by_claim(reconcile, deployment) and not _is_scaled(reconcile, deployment):
            return f"somebody set {deployment.title} back to {_count(deployment)} replicas"
    return None


def foreign_change(reconcile: Reconcile) -> str | None:
    """Return what somebody else has made of a Deployment that is neither the plan's doing nor the old state.

    Going on would overrule a person, and so would going back.
    """
    for name in deployments(reconcile.plan):
        deployment = reconcile.observation.deployment(name)
        if deployment is not None and deployment.facts is None and _should_be(reconcile, name):
            return f"{with_kind(reconcile.plan, name)} is gone"
    for deployment in _present_deployments(reconcile):
        if deployment.claim is not None and deployment.claim.plan != reconcile.key:
            return f"{deployment.claim.plan} has claimed {deployment.title}"
        allowed = {_by_claim(reconcile, deployment), replicas_after(reconcile.plan, deployment.name, -1)}
        if deployment.claim is None:
            allowed = set(planned_counts(reconcile.plan, deployment.name))
        if _count(deployment) not in allowed and not _is_scaled(reconcile, deployment):
            return f"somebody set {deployment.title} to {_count(deployment)} replicas, which is left so"
        if (foreign := _foreign_template(reconcile, deployment)) is not None:
            return foreign
    return None


def _foreign_template(reconcile: Reconcile, deployment: DeploymentObservation) -> str | None:
    """Return how somebody changed the template of a Deployment to which the plan gives templates of its own.

    Every template that comes, and every one that comes back, makes one revision more (Deployment controller,
    Kubernetes 1.36), so what the plan has begun bounds them.
    """
    updates = {
        index: step
        for index, step in enumerate(reconcile.plan.steps)
        if isinstance(step, UpdateTemplate) and deployment_of(reconcile.plan, step) == deployment.name
    }
    if not updates or deployment.revision is None or deployment.claim is None:
        return None
    claim = deployment.claim
    begun = [index for index in updates if index < len(reconcile.status.steps) or index <= claim.mark]
    undone = [index for index in begun if claim.is_undoing and index >= claim.mark]
    most = next(iter(updates.values())).from_revision + len(begun) + len(undone)
    if deployment.revision <= most:
        return None
    return (
        f"somebody changed the template of {deployment.title}, which is left so: it is at revision "
        f"{deployment.revision}, the plan itself came to {most}"
    )


def ready_after(reconcile: Reconcile, deployment: str, replicas: int) -> int | None:
    """Return how many of the plan's consumers stay ready when a Deployment gets so many replicas, at least.

    A ReplicaSet stops pods that are not ready first (``ActivePodsWithRanks``, Kubernetes 1.36), a StatefulSet those of
    the highest numbers, ready or not; a controller that is not known may stop ready ones alone. ``None`` is unknown.
    """
    total = 0
    for name in deployments(reconcile.plan):
        each = reconcile.observation.deployment(name)
        if each is None or each.ready is None:
            return None
        total += _ready_after(each, replicas) if name == deployment else each.ready
    return total


def _ready_after(deployment: DeploymentObservation, replicas: int) -> int:
    facts = deployment.facts
    if facts is not None and not facts.has_known_victims:
        stopped = max(len(deployment.live_pods or ()) - replicas, 0)
        return max((deployment.ready or 0) - stopped, 0)
    if facts is None or facts.ordinals is None:
        return min(deployment.ready or 0, replicas)
    return sum(pod.is_ready for pod in deployment.live_pods or () if facts.stays(pod.name, replicas))


def ready_now(reconcile: Reconcile) -> int | None:
    """Return how many of the plan's consumers are ready, ``None`` when that is not known."""
    ready = [
        deployment.ready if (deployment := reconcile.observation.deployment(name)) else None
        for name in deployments(reconcile.plan)
    ]
    return None if None in ready else sum(count or 0 for count in ready)


def _present_deployments(reconcile: Reconcile) -> Iterator[DeploymentObservation]:
    """Yield the Deployments that the plan works on now; one that it has yet to create is not among them."""
    for name in deployments(reconcile.plan):
        deployment = reconcile.observation.deployment(name)
        if deployment is not None and deployment.facts is not None and _should_be(reconcile, name):
            yield deployment


def _is_scaled(reconcile: Reconcile, deployment: DeploymentObservation) -> bool:
    """True while the plan has let the Deployment's autoscaler go on, which then sets the count."""
    return deployment.name == reconcile.plan.deployment and lets_autoscaler_scale(reconcile)


def _should_be(reconcile: Reconcile, name: str) -> bool:
    """True when a Deployment must be there: it was from the start or was created, and its deletion has not begun."""
    begun = {progress.index: progress for progress in reconcile.status.steps}
    is_present = name not in created_deployments(reconcile.plan)
    for index, step in enumerate(reconcile.plan.steps):
        progress = begun.get(index)
        if isinstance(step, CreateDeployment) and step.deployment == name:
            is_present = progress is not None and progress.finished_at is not None and progress.undo_since is None
        if isinstance(step, DeleteDeployment) and step.deployment == name and progress is not None:
            is_present = False
    return is_present


def _by_claim(reconcile: Reconcile, deployment: DeploymentObservation) -> int | None:
    if deployment.claim is None:
        return None
    last = deployment.claim.mark - 1 if deployment.claim.is_undoing else deployment.claim.mark
    return replicas_after(reconcile.plan, deployment.name, last)


def _count(deployment: DeploymentObservation) -> int:
    assert deployment.facts is not None
    return deployment.facts.replicas
