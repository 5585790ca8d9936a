"""``perform``: each effect as the request that makes it so."""

from planner.deployments.api import JSON_PATCH, STRATEGIC, RolloutApi
from planner.deployments.bodies import (
    Json,
    claim_patch,
    copy_deployment,
    deletion_cost_patch,
    missing_containers,
    restore_patch,
    template_patch,
    unclaim_patch,
)
from planner.deployments.scalers import set_scaler
from planner.errors import UnknownNameError
from planner.execution.effects import (
    Create,
    Delete,
    DeploymentEffect,
    DropClaim,
    MarkPods,
    RestoreTemplate,
    SetClaim,
    SetReplicas,
    SetScaler,
    SetTemplate,
)
from planner.execution.ports import ConflictError, DeniedError, ImpossibleError
from planner.model.deployments import APPS, DEPLOYMENT
from planner.rollout.template import TemplateChange
from planner.sources.kubernetes import AnswerError, ForbiddenError, NotLetInError
from planner.sources.kubernetes.objects import replica_sets_of, revision_of, selector_of


def perform(api: RolloutApi, namespace: str, effect: DeploymentEffect) -> None:
    """Make it so, or raise ``ConflictError`` or ``DeniedError`` (nothing done), ``OutOfReachError`` (nobody knows)."""
    try:
        _perform(api, namespace, effect)
    except (AnswerError, ForbiddenError, NotLetInError, UnknownNameError) as error:
        raise DeniedError(str(error)) from error


def _perform(api: RolloutApi, namespace: str, effect: DeploymentEffect) -> None:
    match effect:
        case SetClaim() | DropClaim() | SetReplicas():
            body = _patch(api, namespace, effect)
            api.patch_deployment(namespace, effect.deployment, body, kind=effect.kind, api_version=effect.api_version)
        case SetTemplate():
            _set_template(api, namespace, effect)
        case RestoreTemplate():
            _restore_template(api, namespace, effect)
        case SetScaler():
            set_scaler(api, namespace, effect)
        case MarkPods():
            _mark(api, namespace, effect)
        case Create():
            _create(api, namespace, effect)
        case Delete():
            api.delete_deployment(namespace, effect.deployment, effect.uid, effect.resource_version)


def _patch(api: RolloutApi, namespace: str, effect: SetClaim | DropClaim | SetReplicas) -> Json:
    match effect:
        case SetClaim():
            return claim_patch(effect.claim, effect.resource_version)
        case SetReplicas():
            return claim_patch(effect.claim, effect.resource_version, replicas=effect.replicas)
        case DropClaim():
            deployment = _deployment(api, namespace, effect.deployment, effect.kind, effect.api_version)
            return unclaim_patch(deployment, effect.resource_version)


def _set_template(api: RolloutApi, namespace: str, effect: SetTemplate) -> None:
    deployment = _deployment(api, namespace, effect.deployment)
    _check_containers(deployment, effect.step.change)
    if deployment["spec"].get("revisionHistoryLimit") == 0:
        raise ImpossibleError(f"Deployment {effect.deployment} keeps no old template: raise its revisionHistoryLimit")
    body = template_patch(deployment, effect.step, effect.claim, effect.resource_version)
    api.patch_deployment(namespace, effect.deployment, body, STRATEGIC)


def _restore_template(api: RolloutApi, namespace: str, effect: RestoreTemplate) -> None:
    deployment = _deployment(api, namespace, effect.deployment)
    kept = replica_sets_of(deployment, api.replica_sets(namespace, selector_of(deployment)))
    template = next(
        (replica_set["spec"]["template"] for replica_set in kept if revision_of(replica_set) == effect.revision), None
    )
    if template is None:
        raise ImpossibleError(f"Deployment {effect.deployment} has no template of revision {effect.revision} any more")
    body = restore_patch(template, effect.claim, effect.resource_version)
    api.patch_deployment(namespace, effect.deployment, body, JSON_PATCH)


def _mark(api: RolloutApi, namespace: str, effect: MarkPods) -> None:
    for name, uid, cost in effect.pods:
        try:
            api.patch_pod(namespace, name, deletion_cost_patch(uid, cost))
        except ConflictError:
            continue  # another pod of that name: the next observation shows that the one that was meant is gone


def _create(api: RolloutApi, namespace: str, effect: Create) -> None:
    origin = _deployment(api, namespace, effect.origin)
    _check_containers(origin, effect.step.change)
    api.create_deployment(namespace, copy_deployment(origin, effect.step, effect.claim))


def _deployment(api: RolloutApi, namespace: str, name: str, kind: str = DEPLOYMENT, api_version: str = APPS) -> Json:
    deployment = api.find_deployment(namespace, name, kind, api_version)
    if deployment is None:
        raise ConflictError(f"{kind} {name} is gone")
    return deployment


def _check_containers(deployment: Json, change: TemplateChange | None) -> None:
    if missing := missing_containers(deployment, change):
        name = deployment["metadata"]["name"]
        raise ImpossibleError(f"Deployment {name} has no container {missing[0]}: the plan would add one")
