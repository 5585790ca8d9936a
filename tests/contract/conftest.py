"""What contract tests share beyond tests/conftest.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.clusters.kubernetes import ControlPlane
from tests.sharing import SharedClusters

CRDS = Path(__file__).parents[2] / "k8s" / "crds"
API = "/apis/consumerplanner.dev/v1alpha1"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def control_plane(shared_clusters: SharedClusters) -> ControlPlane:
    """A running control plane that files that follow each other share: make a namespace, leave its processes alone."""
    return shared_clusters.get("control_plane", lambda undo: undo.enter_context(ControlPlane.start()))


@pytest.fixture(scope="module")
def control_plane_with_plans(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The same control plane with the planner's definitions in it, for one module."""
    definitions = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    names = control_plane.define(*definitions)
    yield control_plane
    for one in control_plane.rest.get(f"{API}/consumerrolloutplans")["items"]:
        meta = one["metadata"]
        if meta.get("finalizers"):  # of a test that failed half-way
            path = f"{API}/namespaces/{meta['namespace']}/consumerrolloutplans/{meta['name']}"
            control_plane.rest.patch(path, {"metadata": {"finalizers": []}}, MERGE)
    control_plane.kubectl("delete", *names)
