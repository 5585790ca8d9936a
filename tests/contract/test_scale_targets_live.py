"""Each kind of scale target on a real API server: it is planned for and scaled, or refused with one right sentence."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.cli import rollouts
from planner.errors import UnknownNameError
from planner.rollout.steps import AwaitSettled, CheckForecast, MarkVictims, StopConsumers
from planner.sources.kubernetes import KubernetesApi, read_workload
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.pod_groups import PodGroups
from tests.scale_kinds import KINDS, MERGE, controlled, definition, path_of, target
from tests.scale_plans import apply_in_vain, at_rest, carry_out, plan_of, read, steps_to, with_victim

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]


@pytest.fixture(scope="module")
def cluster(control_plane_with_plans: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the kinds' definitions, and groups that are the ready pods."""
    names = control_plane_with_plans.define(*map(definition, KINDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollouts, "live_groups", PodGroups)
        yield control_plane_with_plans
    control_plane_with_plans.kubectl("delete", "--wait=false", *names)


@pytest.mark.parametrize(("kind", "is_chosen"), [("Rollout", True), ("CloneSet", True), ("Fleet", False)], ids=str)
def test_the_count_goes_down_and_up_and_the_pods_that_stop_are_the_plans_where_its_controller_lets_it(
    cluster: ControlPlane, tmp_path: Path, kind: str, is_chosen: bool
) -> None:
    namespace = cluster.namespace("scale")
    cluster.rest.create(path_of(kind, namespace), target(kind, 3))
    with controlled(cluster, kind, namespace):
        found = at_rest(cluster, namespace, kind, 3)
        assert (found.has_known_victims, found.problems) == (is_chosen, ())
        made, steps = steps_to(found, 2)
        marked = {pod for step in steps if isinstance(step, MarkVictims) for pod in step.pods}
        (stop,) = [step for step in steps if isinstance(step, StopConsumers)]
        assert (bool(marked), stop.preferred_victims == ()) == (is_chosen, not is_chosen)
        moved = made.forecast.moved_queues
        assert (moved.fewest == moved.most) == is_chosen
        before = {pod.name for pod in found.pods or ()}
        if is_chosen:  # another pod than the one that would go by name or age: the mark alone decides
            steps = with_victim(steps, sorted(before)[-1])
            marked = {sorted(before)[-1]}
        carry_out(cluster, namespace, tmp_path / "down.yaml", found, steps)
        left = at_rest(cluster, namespace, kind, 2)
        gone = before - {pod.name for pod in left.pods or ()}
        assert gone == (marked or {sorted(before)[0]})
        carry_out(cluster, namespace, tmp_path / "up.yaml", left, steps_to(left, 4)[1])
        at_rest(cluster, namespace, kind, 4)
    after = cluster.rest.get(path_of(kind, namespace, "app"))
    assert after["spec"]["replicas"] == 4
    assert "consumerplanner.dev/rollout" not in (after["metadata"].get("annotations") or {})
    events = cluster.rest.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    assert any(event["involvedObject"]["kind"] == kind and "plan up" in event["message"] for event in events)


def test_what_cannot_be_scaled_is_refused_with_one_sentence(cluster: ControlPlane, tmp_path: Path) -> None:
    """A Rollout in a canary, a kind without ``scale``, an API that is not served, a ReplicaSet of a Deployment."""
    namespace = cluster.namespace("scale")
    cluster.rest.create(path_of("Rollout", namespace), target("Rollout", 2))
    with controlled(cluster, "Rollout", namespace):
        found = at_rest(cluster, namespace, "Rollout", 2)
        steps = (*steps_to(found, 1)[1][:-2], AwaitSettled(1, "AVG", 60), CheckForecast(60))
        cluster.rest.patch(
            f"{path_of('Rollout', namespace, 'app')}/status",
            {"status": {"currentPodHash": "bb", "currentStepIndex": 0}},
            MERGE,
        )
        busy = read(cluster, namespace, "Rollout")
        assert busy.scale is not None
        assert busy.scale.busy == (
            f"Rollout {namespace}/app is in the middle of a rollout, with pods of two templates: promote or abort it"
        )
        printed = apply_in_vain(cluster, namespace, tmp_path / "busy.yaml", plan_of(found, steps))
        assert "promote or abort it" in printed
        assert read(cluster, namespace, "Rollout").replicas == 2
    cluster.rest.create(path_of("Box", namespace), target("Box", 1))
    with pytest.raises(UnknownNameError, match=r"no kind Box of example.com/v1 with a sub-resource scale .*: Fleet\)"):
        read(cluster, namespace, "Box")
    with pytest.raises(UnknownNameError, match=r"serves no nowhere.org/v1: correct the apiVersion"):
        read(cluster, namespace, "Fleet", "nowhere.org/v1")
    with pytest.raises(UnknownNameError, match=r"no Fleet app in namespace .*, and no other: correct"):
        read(cluster, namespace, "Fleet")
    other = cluster.namespace("scale")
    cluster.apply(deployment("app", 1, {"command": ["sleep", "infinity"]}), namespace=other)
    cluster.await_available(other, "app")
    (owned,) = cluster.rest.get(f"/apis/apps/v1/namespaces/{other}/replicasets")["items"]
    with KubernetesApi.connect(cluster.kubeconfig) as api:
        found = read_workload(api, other, owned["metadata"]["name"], datetime.now(UTC), "ReplicaSet")
    assert found.scale is not None
    assert "is controlled by Deployment app, which sets its count" in str(found.scale.busy)
