"""What a real API server adds to the doctor's picture: who else scales the Deployment, pods that crash."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.deployments import Deployment
from planner.sources.kubernetes import KubernetesApi, read_workload
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.contract.test_kubernetes_reads_live import HPAS, hpa
from tests.unit.diagnosis.patients import codes, finding, healthy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]


def picture(found: Deployment) -> GroupEvidence:
    """Return a healthy group of two members, looked at now, that this Deployment serves."""
    well = healthy(orderly=True)
    delay = datetime.now(UTC) - well.newest.at
    moved = tuple(replace(one, at=one.at + delay, deployment=found) for one in well.samples)
    return replace(well, samples=moved)


def test_two_autoscalers_and_pods_that_crash(control_plane: ControlPlane) -> None:
    namespace = control_plane.namespace()
    document = deployment("app", 2, {"command": ["sh", "-c", "exit 1"]})
    prefix = "simulation.consumerplanner.dev/"
    notes = {f"{prefix}restart-backoff-seconds": "0.1", f"{prefix}never-ready": "true"}
    document["spec"]["template"]["metadata"]["annotations"] = notes
    control_plane.apply(document, namespace=namespace)
    for name, most in (("one", 8), ("two", 6)):
        scaler = hpa(1, most)
        scaler["metadata"]["name"] = name
        control_plane.rest.create(f"{HPAS}/{namespace}/horizontalpodautoscalers", scaler)
    with KubernetesApi.connect(control_plane.kubeconfig) as api:

        def crashed() -> Deployment | None:
            found = read_workload(api, namespace, "app", datetime.now(UTC))
            return found if sum(pod.restarts for pod in found.pods or ()) >= 2 else None

        found = control_plane.wait_until("two restarts", crashed)
    control_plane.kubectl("delete", "deployment", "app", "-n", namespace)
    sick = codes(picture(found))
    assert {"other-scaler", "crash-prone"} <= set(sick)
    assert {"HorizontalPodAutoscaler one", "HorizontalPodAutoscaler two"} <= {
        line.partition(" wants")[0] for line in finding(picture(found), "other-scaler").evidence
    }
    assert "40 to 61 s" in finding(picture(found), "crash-prone").consequence
