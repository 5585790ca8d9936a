"""What an autoscaler is sent: both bounds at once, an HPA's own behavior kept and given back, nothing that is right."""

import json
from typing import Any

import pytest

from planner.deployments.scalers import BEHAVIOR_BEFORE, scaler_patch
from planner.execution.effects import SetScaler
from planner.execution.observation import Claim
from planner.rollout.steps import AutoscalerKind, AutoscalerState
from planner.sources.kubernetes.objects import KEDA_PAUSED, SET_BY

CLAIM = Claim("plan/uid", 2)
STILL = {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}
OWN = {"scaleUp": {"selectPolicy": "Min", "policies": []}, "scaleDown": {"selectPolicy": "Max", "policies": []}}


def patched(
    kind: AutoscalerKind, spec: dict[str, Any], notes: dict[str, str], state: AutoscalerState
) -> dict[str, Any]:
    found = {"metadata": {"name": "a", "annotations": notes}, "spec": spec}
    patch = scaler_patch(found, SetScaler("a", kind, state, CLAIM, "7"))
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["metadata"]["annotations"][SET_BY] == "plan/uid/2"
    return patch


def hpa(spec: dict[str, Any], notes: dict[str, str], state: AutoscalerState) -> tuple[Any, Any]:
    patch = patched("HorizontalPodAutoscaler", spec, notes, state)
    return patch.get("spec"), patch["metadata"]["annotations"].get(BEHAVIOR_BEFORE, "untouched")


@pytest.mark.parametrize("own", [None, OWN])
def test_an_hpa_keeps_its_own_behavior_while_it_may_not_move_and_gets_it_back(own: dict[str, Any] | None) -> None:
    spec: dict[str, Any] = {"minReplicas": 1, "maxReplicas": 4, "behavior": own}
    told, kept = hpa(spec, {}, AutoscalerState(1, 6, is_paused=True))
    assert told == {"maxReplicas": 6, "behavior": STILL}
    assert json.loads(kept) == own
    paused = {**spec, "maxReplicas": 6, "behavior": STILL}
    # Paused once more, what is kept is its own, not what holds now.
    assert hpa(paused, {BEHAVIOR_BEFORE: kept}, AutoscalerState(1, 7, is_paused=True))[1] == "untouched"
    told, gone = hpa(paused, {BEHAVIOR_BEFORE: kept}, AutoscalerState(6, 6, is_paused=False))
    assert told == {"minReplicas": 6, "behavior": own}
    assert gone is None


def test_an_hpa_that_was_never_paused_keeps_its_behavior() -> None:
    spec = {"maxReplicas": 4, "behavior": OWN}
    assert hpa(spec, {}, AutoscalerState(1, 4, is_paused=False)) == (None, "untouched")


@pytest.mark.parametrize(
    ("state", "spec", "paused"),
    [
        (AutoscalerState(0, 100, is_paused=True), None, "true"),
        (AutoscalerState(0, 100, is_paused=False), None, None),
        (AutoscalerState(3, 3, is_paused=False), {"minReplicaCount": 3, "maxReplicaCount": 3}, None),
    ],
)
def test_a_scaled_object_is_told_what_differs_from_kedas_defaults(
    state: AutoscalerState, spec: dict[str, int] | None, paused: str | None
) -> None:
    patch = patched("ScaledObject", {}, {}, state)
    assert patch.get("spec") == spec
    assert patch["metadata"]["annotations"][KEDA_PAUSED] == paused
