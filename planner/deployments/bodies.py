"""What is sent to the API server for each effect, and what is read back out of its objects. Pure."""

import json
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any, Final

from planner.execution.observation import Claim, Rival
from planner.execution.phases import Phase
from planner.execution.ports import ImpossibleError
from planner.rollout.steps import CreateDeployment, UpdateTemplate
from planner.rollout.template import ContainerChange, TemplateChange

Json = dict[str, Any]

CLAIM: Final = "consumerplanner.dev/rollout"
LIMITS_BEFORE: Final = "consumerplanner.dev/strategy-before"
"""The Deployment's own update strategy, kept while a plan's limits hold: what gives the claim up puts it back."""
OWN_LABEL: Final = "consumerplanner.dev/deployment"
"""Distinguishes the pods of a created Deployment from those of the one that it was copied from."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_HASH: Final = "pod-template-hash"
_MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "consumer-planner"}


def annotations_of(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's annotations."""
    return manifest["metadata"].get("annotations") or {}


def claim_of(deployment: Mapping[str, Any]) -> Claim | None:
    """Return who has claimed a Deployment."""
    text = annotations_of(deployment).get(CLAIM)
    return None if text is None else Claim.parse(text)


def claim_patch(claim: Claim, resource_version: str, **spec: object) -> Json:
    """Return the merge patch that writes a claim and what else is asked for, at exactly this version."""
    meta = {"resourceVersion": resource_version, "annotations": {CLAIM: str(claim)}}
    return {"metadata": meta, **({"spec": spec} if spec else {})}


def unclaim_patch(deployment: Mapping[str, Any], resource_version: str) -> Json:
    """Return the merge patch that takes the claim away and gives the Deployment its own update limits back."""
    patch: Json = {"metadata": {"resourceVersion": resource_version, "annotations": {CLAIM: None}}}
    kept = annotations_of(deployment).get(LIMITS_BEFORE)
    if kept is not None:
        patch["metadata"]["annotations"][LIMITS_BEFORE] = None
        patch["spec"] = {"strategy": {"rollingUpdate": None, **(kept_before(kept, LIMITS_BEFORE) or {})}}
    return patch


def kept_before(text: str, annotation: str) -> Json | None:
    """Return what an annotation of ours keeps of an object, ``None`` where it had none.

    Raises ``ImpossibleError`` where somebody has damaged the annotation.
    """
    try:
        kept = json.loads(text)
    except (ValueError, RecursionError):
        kept = ""
    if not isinstance(kept, dict | None):
        raise ImpossibleError(
            f"annotation {annotation} is no JSON object any more, so what it kept from before the plan is lost: set "
            "the object as it is to be, then remove the annotation"
        )
    return kept


def template_patch(deployment: Mapping[str, Any], step: UpdateTemplate, claim: Claim, resource_version: str) -> Json:
    """Return the strategic merge patch that changes the template as the step says, with the step's limits."""
    patch = claim_patch(claim, resource_version, template=_template_patch(step.change))
    own, limits = deployment["spec"]["strategy"], {"maxSurge": step.max_surge, "maxUnavailable": step.max_unavailable}
    if own != {"type": "RollingUpdate", "rollingUpdate": limits}:
        patch["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": limits}
        if LIMITS_BEFORE not in annotations_of(deployment):
            patch["metadata"]["annotations"][LIMITS_BEFORE] = json.dumps(own, sort_keys=True)
    return patch


def restore_patch(template: Mapping[str, Any], claim: Claim, resource_version: str) -> list[Json]:
    """Return the JSON patch that puts a ReplicaSet's template back; a merge could not take anything out of it."""
    whole = deepcopy(dict(template))
    (whole.get("metadata") or {}).get("labels", {}).pop(_HASH, None)
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
        {"op": "add", "path": f"/metadata/annotations/{CLAIM.replace('/', '~1')}", "value": str(claim)},
        {"op": "replace", "path": "/spec/template", "value": whole},
    ]


def missing_containers(deployment: Mapping[str, Any], change: TemplateChange | None) -> list[str]:
    """Return the containers that a change names and the Deployment does not have: a patch would add them."""
    present = {container["name"] for container in deployment["spec"]["template"]["spec"]["containers"]}
    return [named.container for named in (change.containers if change else ()) if named.container not in present]


def copy_deployment(origin: Mapping[str, Any], step: CreateDeployment, claim: Claim) -> Json:
    """Return a Deployment like ``origin`` with the step's change, a selector of its own and no replicas.

    Of its labels and annotations none is taken over: what Helm or Argo CD know the other one by would be theirs, too.
    """
    spec = deepcopy(dict(origin["spec"]))
    own = {OWN_LABEL: step.deployment}
    spec["replicas"] = 0
    spec["selector"]["matchLabels"] = {**(spec["selector"].get("matchLabels") or {}), **own}
    template = spec["template"]
    template["metadata"] = {**(template.get("metadata") or {})}
    template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), **own}
    if step.change is not None:
        _change(template, step.change)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": step.deployment, "labels": dict(_MANAGED_BY), "annotations": {CLAIM: str(claim)}},
        "spec": spec,
    }


def deletion_cost_patch(uid: str, cost: int) -> Json:
    """Return the merge patch that gives exactly this pod a deletion cost; 0 is what a pod without one has."""
    return {"metadata": {"uid": uid, "annotations": {DELETION_COST: str(cost) if cost else None}}}


def rival_of(manifest: Mapping[str, Any]) -> Rival | None:
    """Return another plan as far as it matters to this one, ``None`` when it is at its end and not stuck.

    Raises ``ValueError`` or ``KeyError`` for one that says of itself what we do not know.
    """
    meta = manifest["metadata"]
    phase = Phase((manifest.get("status") or {}).get("phase", Phase.PENDING))
    if phase.is_final and phase is not Phase.STUCK:
        return None
    group, named = subjects_of(manifest)
    return Rival(
        plan=f"{meta['name']}/{meta['uid']}",
        name=meta["name"],
        phase=phase,
        group=group,
        deployments=named,
    )


def subjects_of(manifest: Mapping[str, Any]) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    """Return the group (system, cluster, name) and the Deployments that a plan object names. Raises ``KeyError``."""
    spec = manifest["spec"]
    group = spec["group"]
    named = [spec["deployment"], *(step["deployment"] for step in spec["steps"] if step.get("deployment"))]
    return (group["system"], group["cluster"], group["group"]), tuple(dict.fromkeys(named))


def micro_time(at: datetime) -> str:
    """Return a time as Kubernetes writes ``MicroTime``."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _template_patch(change: TemplateChange) -> Json:
    patch: Json = {}
    if change.annotations:
        patch["metadata"] = {"annotations": {setting.name: setting.value for setting in change.annotations}}
    if change.containers or change.node_labels:
        patch["spec"] = {}
    if change.containers:
        patch["spec"]["containers"] = [_container_patch(container) for container in change.containers]
    if change.node_labels:
        patch["spec"]["nodeSelector"] = {setting.name: setting.value for setting in change.node_labels}
    return patch


def _container_patch(change: ContainerChange) -> Json:
    patch: Json = {"name": change.container}
    if change.image is not None:
        patch["image"] = change.image
    if change.arguments is not None:
        patch["args"] = list(change.arguments)
    if change.env or change.removed_env:
        # A variable that came from elsewhere may have no value beside that.
        patch["env"] = [{"name": variable.name, "value": variable.value, "valueFrom": None} for variable in change.env]
        patch["env"] += [{"name": name, "$patch": "delete"} for name in change.removed_env]
    return patch


def _change(template: Json, change: TemplateChange) -> None:
    """Change a whole template in place, as the patch of it does on the server."""
    if change.annotations:
        before = template["metadata"].get("annotations") or {}
        template["metadata"]["annotations"] = {
            **before,
            **{setting.name: setting.value for setting in change.annotations},
        }
    if change.node_labels:
        before = template["spec"].get("nodeSelector") or {}
        template["spec"]["nodeSelector"] = {**before, **{setting.name: setting.value for setting in change.node_labels}}
    by_name = {container["name"]: container for container in template["spec"]["containers"]}
    for container_change in change.containers:
        _change_container(by_name[container_change.container], container_change)


def _change_container(container: Json, change: ContainerChange) -> None:
    if change.image is not None:
        container["image"] = change.image
    if change.arguments is not None:
        container["args"] = list(change.arguments)
    values = {variable.name: variable.value for variable in change.env}
    kept = [variable for variable in container.get("env") or [] if variable["name"] not in change.removed_env]
    known = {variable["name"] for variable in kept}
    env = [
        {"name": variable["name"], "value": values[variable["name"]]} if variable["name"] in values else variable
        for variable in kept
    ]
    container["env"] = env + [{"name": name, "value": value} for name, value in values.items() if name not in known]
