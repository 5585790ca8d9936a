"""Whether a plan can bring a group to a count, and what must be done first where none can."""

from collections.abc import Mapping, Sequence

from planner.errors import RefusedError
from planner.model.deployments import Deployment
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.rollout.autoscalers import Handling, why_not_handled
from planner.rollout.queue_ranges import compact_queues
from planner.rollout.refusals import Refusal, refused
from planner.rollout.targets import Target, split_over_targets
from planner.rollout.victims import pods_of_members
from planner.simulation.group_model import group_model
from planner.text.words import counted


def why_no_plan(
    snapshot: GroupSnapshot, target: int, autoscaler: Handling, targets: Sequence[Target] = ()
) -> RefusedError | None:
    """Return why no plan can bring the group to ``target`` pods, ``None`` where one can.

    Without Kubernetes in the snapshot nobody says which pods stop, and the plan names a range. ``targets`` are the
    Deployments that the pods are split over, none where one runs all.
    """
    current = snapshot.count
    if (unready := _why_no_split(snapshot, targets, target) or _why_not_ready(snapshot, target)) is not None:
        return unready
    if target == current or snapshot.deployment is None:
        return None
    if (
        (why := why_not_handled(snapshot.deployment, autoscaler, (current, target))) is not None
        or target > current
        or not target
        or not snapshot.deployment.has_known_victims
    ):
        return why
    try:
        pods = pods_of_members(snapshot)
    except RefusedError as refusal:
        return refusal
    other = next((pod for pod in pods if len(pod.members) != snapshot.members_per_pod), None)
    if other is None:
        return None
    sentence = (
        f"pod {other.pod} runs {counted(len(other.members), 'member')}, the snapshot counts {snapshot.members_per_pod} "
        "a pod: take a new snapshot"
    )
    return refused(Refusal.VICTIMS_CANNOT_BE_CHOSEN, sentence)


def _why_no_split(snapshot: GroupSnapshot, targets: Sequence[Target], total: int) -> RefusedError | None:
    if total == snapshot.count:
        return None
    try:
        split_over_targets(snapshot, targets, total)
    except RefusedError as refusal:
        return refusal
    return None


def _why_not_ready(snapshot: GroupSnapshot, target: int) -> RefusedError | None:
    """Return what must be done before the count changes: lists to be written, an update to be finished."""
    lists = group_model(snapshot).lists_to_write(snapshot.members_at(target)) if target else None
    if lists:
        return refused(Refusal.LISTS_COME_FIRST, _lists_first(lists))
    if target == snapshot.count or snapshot.deployment is None:
        return None
    if snapshot.deployment.scale is not None and snapshot.deployment.scale.busy is not None:
        return refused(Refusal.NOT_AT_REST, f"{snapshot.deployment.scale.busy}, then plan again")
    partial = _why_half_updated(snapshot.deployment)
    return None if partial is None else refused(Refusal.NOT_AT_REST, partial)


def _lists_first(lists: Mapping[str, Sequence[Queue]]) -> str:
    """Return in a sentence which lists of ``CONFIG`` must be written before the count changes."""
    written = "; ".join(f"{client}: {', '.join(compact_queues(queues)) or 'none'}" for client, queues in lists.items())
    return (
        "CONFIG gives queues by lists, and these leave some to nobody then: give the application and "
        f"spec.strategyOptions.config these lists first, and plan again ({written})"
    )


def _why_half_updated(deployment: Deployment) -> str | None:
    """Return why a StatefulSet's new pods may be of another template than the present ones; ``None`` if they are not.

    New pods get the newest template from number ``partition`` on (``newVersionedStatefulSetPod``, Kubernetes 1.36), and
    nothing says what that one does to the group.
    """
    if deployment.ordinals is None or deployment.updated == deployment.current:
        return None
    partition = deployment.ordinals.partition
    pinned = f", held at number {partition} by updateStrategy.rollingUpdate.partition" if partition else ""
    return (
        f"{deployment.updated} of {deployment.current} pods of {deployment.workload} have its newest template{pinned}: "
        "new pods would differ from those that were observed; finish the update first"
    )
