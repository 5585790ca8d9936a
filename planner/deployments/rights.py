"""What an executor may do, asked for before the first step: a right that is missing is named at once."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from planner.deployments.api import RolloutApi
from planner.deployments.scalers import RESOURCES
from planner.documents.crd import plan_resource, policy_resource
from planner.documents.format import API_GROUP
from planner.model.deployments import APPS, BUILT_IN, DEPLOYMENT, STATEFUL_SET
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import CreateDeployment, DeleteDeployment, MarkVictims, SetAutoscaler, UpdateTemplate
from planner.sources.kubernetes import ForbiddenError
from planner.sources.kubernetes.api import Resource

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
"""What carrying out any plan takes. Events are of use, too (``create`` and ``patch``), but no plan waits for them."""
_STATEFUL: Final[tuple[Right, ...]] = (("apps", "statefulsets", "get"), ("apps", "statefulsets", "patch"))
_MARK: Final[Right] = ("", "pods", "patch")
_TEMPLATE: Final[Right] = ("apps", "deployments", "updatetemplate")
_UPDATE: Final[Right] = ("apps", "deployments", "update")
CONTROL_PLANE: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Namespaces whose plans the controller leaves alone; k8s/admission/executor.yaml refuses every write there."""

READING: Final[tuple[Right, ...]] = (
    ("apps", "deployments", "get"),
    ("apps", "statefulsets", "get"),
    ("apps", "replicasets", "list"),
    ("", "pods", "list"),
    ("autoscaling", "horizontalpodautoscalers", "list"),
    ("keda.sh", "scaledobjects", "list"),
)
"""What reading a group's Deployment or StatefulSet takes: k8s/rbac/reader-role.yaml."""


def reading(kinds: Collection[tuple[str, str]]) -> tuple[Right, ...]:
    """Return what reading targets of these (API version, kind) takes: nobody needs a right on a kind he does not have.

    Of other kinds than Deployment and StatefulSet it takes what ``reading_scale`` returns, too.
    """
    others = {"deployments": DEPLOYMENT, "statefulsets": STATEFUL_SET}
    own = {kind for version, kind in kinds if version == APPS}
    return tuple(right for right in READING if others.get(right[1]) in (None, *own))


def reading_scale(kinds: Iterable[tuple[str, str]], api: RolloutApi) -> tuple[Right, ...]:
    """Return what reading targets of other kinds takes besides. Raises as ``RolloutApi.scaled_resource`` does."""
    resources = [api.scaled_resource(kind, version) for version, kind in kinds if (version, kind) not in BUILT_IN]
    return tuple(right for resource in resources for right in scale_rights(resource) if right[2] == "get")


def scale_rights(resource: Resource) -> tuple[Right, ...]:
    """Return what a target of another kind takes: to read it and its sub-resource ``scale``, and to set its count."""
    group, _, plural = resource
    return (group, plural, "get"), (group, f"{plural}/scale", "get"), (group, plural, "patch")


HANDING_OVER: Final[tuple[Right, ...]] = (
    (API_GROUP, _PLANS, "get"),
    (API_GROUP, _PLANS, "create"),
    (API_GROUP, _PLANS, "patch"),
    ("coordination.k8s.io", "leases", "get"),
)
"""What the apply DAG takes, which hands plans over and follows them."""


DECIDING: Final[tuple[Right, ...]] = (
    (API_GROUP, policy_resource().plural, "list"),
    (API_GROUP, policy_resource().plural, "get"),
    (API_GROUP, f"{policy_resource().plural}/status", "patch"),
    (API_GROUP, _PLANS, "list"),
    (API_GROUP, _PLANS, "create"),
)
"""What a run on the policies of a namespace takes: k8s/rbac/scheduler.yaml."""


def needed(plan: RolloutPlan, resource: Resource | None = None) -> Iterator[Right]:
    """Yield the rights that carrying out a plan and undoing it takes.

    ``resource`` is that of a target which is neither Deployment nor StatefulSet, ``None`` for these.
    ``updatetemplate`` is no verb of the server's own: k8s/admission/executor.yaml asks for it.
    """
    yield from ALWAYS
    if resource is not None:
        yield from scale_rights(resource)
    elif plan.kind_of_target == STATEFUL_SET:
        yield from _STATEFUL
    kinds = {type(step) for step in plan.steps}
    for group, _, plural in {RESOURCES[step.autoscaler_kind] for step in plan.steps if isinstance(step, SetAutoscaler)}:
        yield group, plural, "get"
        yield group, plural, "patch"
    if MarkVictims in kinds:
        yield _MARK
    if CreateDeployment in kinds:
        yield "apps", "deployments", "create"
    if {CreateDeployment, DeleteDeployment} & kinds:
        yield "apps", "deployments", "delete"
    if UpdateTemplate in kinds:
        yield _TEMPLATE


def check_rights(api: RolloutApi, namespace: str, plan: RolloutPlan) -> None:
    """Raise ``ForbiddenError``, which names every missing right, unless we may carry out the plan.

    Whoever may update Deployments by other roles is not asked for ``updatetemplate``: the admission policy leaves him
    alone.
    """
    missing = missing_rights(api, namespace, plan)
    if _TEMPLATE in missing and api.may(_attributes(namespace, _UPDATE)):
        missing = tuple(right for right in missing if right != _TEMPLATE)
    if missing:
        raise ForbiddenError(
            f"{api.server} does not allow us to carry out the plan in namespace {namespace}: missing "
            f"{describe_rights(missing)}: grant the rights that docs/apply.md lists"
        )


def missing_rights(api: RolloutApi, namespace: str, plan: RolloutPlan) -> tuple[Right, ...]:
    """Return the rights for the plan that we do not have. Raises as ``scaled_resource`` does."""
    kind, version = plan.kind_of_target, plan.api_version_of_target
    is_built_in = (version, kind) in BUILT_IN
    return lacking(api, namespace, needed(plan, None if is_built_in else api.scaled_resource(kind, version)))


def lacking(api: RolloutApi, namespace: str, rights: Iterable[Right]) -> tuple[Right, ...]:
    """Return those of the rights that we do not have in the namespace."""
    return tuple(right for right in rights if not api.may(_attributes(namespace, right)))


def describe_rights(rights: Iterable[Right]) -> str:
    """Return the rights in words: ``patch deployments (apps), list pods``."""
    return ", ".join(f"{verb} {resource}{f' ({group})' if group else ''}" for group, resource, verb in rights)


def manifests_for(rights: Iterable[Right]) -> tuple[str, ...]:
    """Return which of the manifests in k8s/rbac grant these to the controller's account."""
    return tuple(sorted({f"k8s/rbac/{_role(right)}.yaml" for right in rights}))


def _role(right: Right) -> str:
    if right in (*ALWAYS, *_STATEFUL, _MARK):
        return "executor"
    if right[0] not in ("apps", "autoscaling", "keda.sh"):
        return "executor-scale"
    return "executor-migrations" if right[1] == "deployments" else "executor-autoscalers"


def _attributes(namespace: str, right: Right) -> dict[str, str]:
    group, resource, verb = right
    kind, _, sub = resource.partition("/")
    return {"namespace": namespace, "group": group, "resource": kind, "subresource": sub, "verb": verb}
