"""What else happens to the Deployments of a plan that is under way, and how many consumers a change would leave."""

from collections.abc import Iterator

from planner.execution.course import created, deployment_of, deployments, planned_counts, replicas_after
from planner.execution.look import DeploymentLook
from planner.execution.moves import Turn
from planner.execution.scalers import is_let_go
from planner.rollout.steps import CreateDeployment, DeleteDeployment, UpdateTemplate


def taken_back(turn: Turn) -> str | None:
    """Return how somebody else has brought a Deployment back to its old state, ``None`` when nobody has.

    A claim that was taken away belongs here too: without it, nobody can tell which effects are in. One that says that
    the plan is being undone is newer than the status that was read.
    """
    for found in _running(turn):
        if found.claim is None:
            return f"somebody took the claim away from Deployment {found.name}"
        if found.claim.plan == turn.key and found.claim.is_undoing:
            return f"the steps of Deployment {found.name} are being undone already"
        is_old = _count(found) == replicas_after(turn.plan, found.name, -1)
        if is_old and _count(found) != _by_claim(turn, found) and not _is_scaled(turn, found):
            return f"somebody set Deployment {found.name} back to {_count(found)} replicas"
    return None


def overruled(turn: Turn) -> str | None:
    """Return what somebody else has made of a Deployment that is neither the plan's doing nor the old state.

    Going on would overrule a person, and so would going back.
    """
    for name in deployments(turn.plan):
        found = turn.look.deployment(name)
        if found is not None and found.facts is None and _should_be(turn, name):
            return f"Deployment {name} is gone"
    for found in _running(turn):
        if found.claim is not None and found.claim.plan != turn.key:
            return f"{found.claim.plan} has claimed Deployment {found.name}"
        allowed = {_by_claim(turn, found), replicas_after(turn.plan, found.name, -1)}
        if found.claim is None:
            allowed = set(planned_counts(turn.plan, found.name))
        if _count(found) not in allowed and not _is_scaled(turn, found):
            return f"somebody set Deployment {found.name} to {_count(found)} replicas, which is left so"
        if (foreign := _foreign_template(turn, found)) is not None:
            return foreign
    return None


def _foreign_template(turn: Turn, found: DeploymentLook) -> str | None:
    """Return how somebody changed the template of a Deployment to which the plan gives templates of its own.

    Every template that comes, and every one that comes back, makes one revision more (Deployment controller,
    Kubernetes 1.36), so what the plan has begun bounds them.
    """
    updates = {
        index: step
        for index, step in enumerate(turn.plan.steps)
        if isinstance(step, UpdateTemplate) and deployment_of(turn.plan, step) == found.name
    }
    if not updates or found.revision is None or found.claim is None:
        return None
    claim = found.claim
    begun = [index for index in updates if index < len(turn.status.steps) or index <= claim.mark]
    undone = [index for index in begun if claim.is_undoing and index >= claim.mark]
    most = next(iter(updates.values())).from_revision + len(begun) + len(undone)
    if found.revision <= most:
        return None
    return (
        f"somebody changed the template of Deployment {found.name}, which is left so: it is at revision "
        f"{found.revision}, the plan itself came to {most}"
    )


def ready_after(turn: Turn, deployment: str, replicas: int) -> int | None:
    """Return how many of the plan's consumers stay ready when a Deployment gets so many replicas, at least.

    A ReplicaSet stops pods that are not ready first (``ActivePodsWithRanks``, Kubernetes 1.36). ``None`` is unknown.
    """
    total = 0
    for name in deployments(turn.plan):
        found = turn.look.deployment(name)
        if found is None or found.ready is None:
            return None
        total += min(found.ready, replicas) if name == deployment else found.ready
    return total


def ready_now(turn: Turn) -> int | None:
    """Return how many of the plan's consumers are ready, ``None`` when that is not known."""
    ready = [found.ready if (found := turn.look.deployment(name)) else None for name in deployments(turn.plan)]
    return None if None in ready else sum(count or 0 for count in ready)


def _running(turn: Turn) -> Iterator[DeploymentLook]:
    """Yield the Deployments that the plan works on now; one that it has yet to create is not among them."""
    for name in deployments(turn.plan):
        found = turn.look.deployment(name)
        if found is not None and found.facts is not None and _should_be(turn, name):
            yield found


def _is_scaled(turn: Turn, found: DeploymentLook) -> bool:
    """True while the plan has let the Deployment's autoscaler go on, which then sets the count."""
    return found.name == turn.plan.deployment and is_let_go(turn)


def _should_be(turn: Turn, name: str) -> bool:
    """True when a Deployment must be there: it was from the start or was created, and its deletion has not begun."""
    begun = {progress.index: progress for progress in turn.status.steps}
    is_there = name not in created(turn.plan)
    for index, step in enumerate(turn.plan.steps):
        progress = begun.get(index)
        if isinstance(step, CreateDeployment) and step.deployment == name:
            is_there = progress is not None and progress.finished_at is not None and progress.undo_since is None
        if isinstance(step, DeleteDeployment) and step.deployment == name and progress is not None:
            is_there = False
    return is_there


def _by_claim(turn: Turn, found: DeploymentLook) -> int | None:
    if found.claim is None:
        return None
    last = found.claim.mark - 1 if found.claim.is_undoing else found.claim.mark
    return replicas_after(turn.plan, found.name, last)


def _count(found: DeploymentLook) -> int:
    assert found.facts is not None
    return found.facts.replicas
