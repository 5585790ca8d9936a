"""Argo Rollouts' and OpenKruise's own controllers on a real API server: scaled by plans, refused in mid-update."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from planner.cli import rollouts
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.workloads import argo_rollouts, open_kruise
from tests.clusters.processes import ManagedProcess
from tests.pod_groups import PodGroups
from tests.scale_kinds import MERGE, path_of, target
from tests.scale_plans import apply_in_vain, at_rest, carry_out, plan_of, read, steps_to, with_victim

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(5_400)]

Controllers = Callable[[ControlPlane, Path], AbstractContextManager[ManagedProcess]]
CONTROLLERS: dict[str, Controllers] = {"Rollout": argo_rollouts, "CloneSet": open_kruise}
ANOTHER_TEMPLATE = {"spec": {"template": {"metadata": {"annotations": {"release": "next"}}}}}
STRATEGIES: dict[str, dict[str, Any]] = {
    "Rollout": {"strategy": {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}},
    "CloneSet": {"updateStrategy": {"partition": "50%"}},
}
"""Each stops half-way, with pods of two templates."""
SENTENCES = {"Rollout": " is in the middle of a rollout", "CloneSet": " of 4 pods of its newest template: "}


@pytest.fixture(scope="module")
def cluster(control_plane_with_plans: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with plans, and groups that are the ready pods."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollouts, "live_groups", PodGroups)
        yield control_plane_with_plans


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_the_real_controller_stops_the_chosen_pods_and_is_left_alone_in_the_middle_of_an_update(
    cluster: ControlPlane, tmp_path: Path, kind: str
) -> None:
    """Each of four pods is the victim in its turn: no other rule of the controller picks all of them."""
    namespace = cluster.namespace("scale")
    document = target(kind, 4)
    document["spec"] |= STRATEGIES[kind]
    with CONTROLLERS[kind](cluster, tmp_path) as controller:
        controller.wait_until(
            f"a {kind} that is taken", lambda: cluster.rest.create(path_of(kind, namespace), document), 1
        )
        for turn in range(4):
            found = at_rest(cluster, namespace, kind, 4)
            assert (found.has_known_victims, found.problems) == (True, ())
            before = sorted(pod.name for pod in found.pods or ())
            steps = with_victim(steps_to(found, 3)[1], before[turn])
            carry_out(cluster, namespace, tmp_path / f"down-{turn}.yaml", found, steps)
            left = at_rest(cluster, namespace, kind, 3)
            assert set(before) - {pod.name for pod in left.pods or ()} == {before[turn]}
            carry_out(cluster, namespace, tmp_path / f"up-{turn}.yaml", left, steps_to(left, 4)[1])
        found = at_rest(cluster, namespace, kind, 4)
        steps = steps_to(found, 3)[1]
        cluster.rest.patch(path_of(kind, namespace, "app"), ANOTHER_TEMPLATE, MERGE)

        def sentence() -> str | None:
            scale = read(cluster, namespace, kind).scale
            return scale.busy if scale is not None else None

        busy = controller.wait_until("what keeps the count from being changed", sentence, 600.0)
        assert SENTENCES[kind] in busy
        printed = apply_in_vain(cluster, namespace, tmp_path / "busy.yaml", plan_of(found, steps))
        assert "Refused" in printed, "for what it is busy with, or as other pods are its members by now"
        assert read(cluster, namespace, kind).replicas == 4
