"""What an autoscaler is sent, so that it is in the state that a plan wants. Pure, but for the request itself."""

import json
from collections.abc import Mapping
from typing import Any, Final

from planner.deployments.api import RolloutApi
from planner.deployments.bodies import kept_before
from planner.execution.effects import SetScaler
from planner.execution.ports import ConflictError
from planner.rollout.steps import AutoscalerKind
from planner.sources.kubernetes.api import Resource
from planner.sources.kubernetes.objects import KEDA_PAUSED, SET_BY

Json = dict[str, Any]

RESOURCES: Final[dict[AutoscalerKind, Resource]] = {
    "HorizontalPodAutoscaler": ("autoscaling", "v2", "horizontalpodautoscalers"),
    "ScaledObject": ("keda.sh", "v1alpha1", "scaledobjects"),
}
BEHAVIOR_BEFORE: Final = "consumerplanner.dev/behavior-before"
"""An HPA's own behavior, kept while a plan lets it move in neither direction."""
_STILL: Final = {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}


def set_scaler(api: RolloutApi, namespace: str, effect: SetScaler) -> None:
    """Bring the autoscaler into the effect's state, or raise ``ConflictError`` where it has changed since."""
    resource = RESOURCES[effect.scaler_kind]
    manifest = api.find_object(resource, namespace, effect.scaler)
    if manifest is None:
        raise ConflictError(f"{effect.scaler_kind} {effect.scaler} is gone")
    api.patch_object(resource, namespace, effect.scaler, scaler_patch(manifest, effect))


def scaler_patch(manifest: Mapping[str, Any], effect: SetScaler) -> Json:
    """Return the merge patch that brings an autoscaler into the effect's state, at exactly the observed version.

    Bounds that are right are left as they are, written or not.
    """
    notes: Json = {SET_BY: str(effect.claim)}
    meta = {"resourceVersion": effect.resource_version, "annotations": notes}
    if effect.scaler_kind == "ScaledObject":
        # Any value but a false one pauses; a false one would leave something to tidy up.
        notes[KEDA_PAUSED] = "true" if effect.state.is_paused else None
        spec = _bounds(manifest, effect, ("minReplicaCount", 0), ("maxReplicaCount", 100))
    else:
        spec = _bounds(manifest, effect, ("minReplicas", 1), ("maxReplicas", None))
        spec |= _behavior(manifest, notes, is_paused=effect.state.is_paused)
    return {"metadata": meta, **({"spec": spec} if spec else {})}


def _bounds(
    manifest: Mapping[str, Any], effect: SetScaler, lowest: tuple[str, int | None], highest: tuple[str, int | None]
) -> Json:
    """Both bounds in one request, so that they are valid at every moment."""
    bounds = {lowest: effect.state.minimum, highest: effect.state.maximum}
    return {name: count for (name, default), count in bounds.items() if manifest["spec"].get(name, default) != count}


def _behavior(manifest: Mapping[str, Any], notes: Json, *, is_paused: bool) -> Json:
    """Return an HPA's behavior while it may not move, or its own again; its own is kept in an annotation meanwhile."""
    kept = (manifest["metadata"].get("annotations") or {}).get(BEHAVIOR_BEFORE)
    if is_paused:
        if kept is None:
            notes[BEHAVIOR_BEFORE] = json.dumps(manifest["spec"].get("behavior"), sort_keys=True)
        return {"behavior": _STILL}
    if kept is None:
        return {}
    notes[BEHAVIOR_BEFORE] = None
    return {"behavior": kept_before(kept, BEHAVIOR_BEFORE)}
