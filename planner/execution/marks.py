"""Deletion costs between mark and stop: others may write them, too, and the ReplicaSet goes by who wrote last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.execution.effects import MarkPods
from planner.execution.moves import Reconcile
from planner.execution.plan_targets import deployment_of
from planner.model.pods import Pod
from planner.rollout.steps import MarkVictims, StopConsumers


@dataclass(frozen=True, slots=True)
class LostMarks:
    """Pods that the plan marked and that no longer have its deletion cost: who changed it, and how it is set again."""

    changes: str
    effect: MarkPods


def lost_marks(reconcile: Reconcile, step: StopConsumers) -> LostMarks | None:
    """Return which pods to mark again before the stop, ``None`` where each has the cost that the plan gave it."""
    costs = _marked(reconcile, step)
    lost = [pod for pod in _live_pods(reconcile, step) if pod.name in costs and pod.deletion_cost != costs[pod.name]]
    if not lost:
        return None
    changes = "; ".join(f"{_writer(pod)} gave pod {pod.name} deletion cost {pod.deletion_cost}" for pod in lost)
    effect = MarkPods(deployment_of(reconcile.plan, step), tuple((pod.name, pod.uid, costs[pod.name]) for pod in lost))
    return LostMarks(f"{changes}, after the plan had marked it to stop first", effect)


def others_marked(reconcile: Reconcile, step: StopConsumers) -> Sequence[str]:
    """Return which pods would stop as soon as those of the plan, as another writer gave them as low a cost."""
    costs = _marked(reconcile, step)
    lowest = max(costs.values(), default=None)
    return [
        f"{_writer(pod)} gave pod {pod.name} deletion cost {pod.deletion_cost}, so that it may stop instead of "
        f"{', '.join(sorted(costs))}: remove its annotation"
        for pod in _live_pods(reconcile, step)
        if lowest is not None and pod.name not in costs and pod.deletion_cost <= lowest
    ]


def _marked(reconcile: Reconcile, step: StopConsumers) -> Mapping[str, int]:
    """Return pod -> deletion cost of those that were marked for this very stop."""
    name = deployment_of(reconcile.plan, step)
    costs: dict[str, int] = {}
    for before in reversed(reconcile.plan.steps[: reconcile.status.step]):
        if isinstance(before, StopConsumers) and deployment_of(reconcile.plan, before) == name:
            break  # what was marked before that has stopped
        if isinstance(before, MarkVictims) and deployment_of(reconcile.plan, before) == name:
            costs |= dict.fromkeys(before.pods, before.deletion_cost)
    return costs


def _live_pods(reconcile: Reconcile, step: StopConsumers) -> Sequence[Pod]:
    deployment = reconcile.observation.deployment(deployment_of(reconcile.plan, step))
    return (deployment.live_pods if deployment else None) or ()


def _writer(pod: Pod) -> str:
    return pod.deletion_cost_by or "somebody"
