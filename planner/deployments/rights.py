"""What an executor may do, asked for before the first step: a right that is missing is named at once."""

from collections.abc import Iterator
from typing import Final

from planner.deployments.api import RolloutApi
from planner.documents.crd import plan_resource, policy_resource
from planner.documents.format import API_GROUP
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import CreateDeployment, DeleteDeployment, MarkVictims
from planner.sources.kubernetes import ForbiddenError

Right = tuple[str, str, str]
"""(API group, resource, verb); a sub-resource stands after a slash."""

_PLANS: Final = plan_resource().plural
ALWAYS: Final[tuple[Right, ...]] = (
    (API_GROUP, _PLANS, "get"),
    (API_GROUP, _PLANS, "list"),
    (API_GROUP, _PLANS, "patch"),
    (API_GROUP, f"{_PLANS}/status", "update"),
    (API_GROUP, policy_resource().plural, "get"),
    ("apps", "deployments", "get"),
    ("apps", "deployments", "patch"),
    ("apps", "replicasets", "list"),
    ("", "pods", "list"),
    ("autoscaling", "horizontalpodautoscalers", "list"),
    ("keda.sh", "scaledobjects", "list"),
    ("coordination.k8s.io", "leases", "get"),
    ("coordination.k8s.io", "leases", "create"),
    ("coordination.k8s.io", "leases", "update"),
)
"""What carrying out any plan takes. To tell events is of use too (``events``, ``create``), but no plan waits for it."""


def needed(plan: RolloutPlan) -> Iterator[Right]:
    """Yield the rights that carrying out a plan and undoing it takes."""
    yield from ALWAYS
    kinds = {type(step) for step in plan.steps}
    if MarkVictims in kinds:
        yield "", "pods", "patch"
    if CreateDeployment in kinds:
        yield "apps", "deployments", "create"
    if {CreateDeployment, DeleteDeployment} & kinds:
        yield "apps", "deployments", "delete"


def check_rights(api: RolloutApi, namespace: str, plan: RolloutPlan) -> None:
    """Raise ``ForbiddenError``, which names every missing right, unless we may carry out the plan."""
    missing = [right for right in needed(plan) if not api.may(_attributes(namespace, right))]
    if missing:
        told = ", ".join(f"{verb} {resource}{f' ({group})' if group else ''}" for group, resource, verb in missing)
        raise ForbiddenError(
            f"{api.server} does not allow us to carry out the plan in namespace {namespace}: missing {told}: grant the "
            "rights that docs/apply.md lists"
        )


def _attributes(namespace: str, right: Right) -> dict[str, str]:
    group, resource, verb = right
    kind, _, sub = resource.partition("/")
    return {"namespace": namespace, "group": group, "resource": kind, "subresource": sub, "verb": verb}
