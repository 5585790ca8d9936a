"""Each kind of scale target on a real API server: it is planned for and scaled, or refused with one right sentence."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner import pipeline
from planner.cli import rollouts
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.errors import UnknownNameError
from planner.model.deployments import Deployment
from planner.model.snapshot import GroupSnapshot, MemberPod
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitSettled, CheckForecast, MarkVictims, Step, StopConsumers
from planner.simulation.candidates import simulate_candidate
from planner.sources.kubernetes import AnswerError, KubernetesApi, read_workload
from tests.builders import queues, snapshot
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.pod_groups import PodGroups, plan_for
from tests.scale_kinds import KINDS, MERGE, controlled, definition, path_of, target
from tests.unit.cli.test_cli import planner
from tests.unit.rollout.test_scale_targets import policy_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]


@pytest.fixture(scope="module")
def cluster(control_plane_with_plans: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the kinds' definitions, and groups that are the ready pods."""
    names = control_plane_with_plans.define(*map(definition, KINDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollouts, "live_groups", PodGroups)
        yield control_plane_with_plans
    control_plane_with_plans.kubectl("delete", "--wait=false", *names)


def read(cluster: ControlPlane, namespace: str, kind: str, api_version: str | None = None) -> Deployment:
    group, version, _ = KINDS.get(kind, ("apps", "v1", ""))
    with KubernetesApi.connect(cluster.kubeconfig) as api:
        return read_workload(api, namespace, "app", datetime.now(UTC), kind, api_version or f"{group}/{version}")


def at_rest(cluster: ControlPlane, namespace: str, kind: str, count: int) -> Deployment:
    """Return the target once so many pods are ready."""

    def probe() -> Deployment | None:
        try:
            found = read(cluster, namespace, kind)
        except AnswerError:  # its controller has not yet written the selector
            return None
        return found if found.ready == found.current == found.replicas == count and found.is_observed else None

    return cluster.wait_until(f"{count} pods of {kind}", probe)


def group_of(found: Deployment) -> GroupSnapshot:
    """Return a settled group of one member a pod."""
    names = tuple(sorted(pod.name for pod in found.pods or () if pod.is_ready and not pod.is_ending))
    taken = snapshot(queues(each=4), names, strategy="AVG", capacity=40.0)
    return replace(taken, pods=tuple(MemberPod(name, name) for name in names), deployment=found)


def steps_to(found: Deployment, count: int) -> tuple[RolloutPlan, tuple[Step, ...]]:
    """Return the planner's own plan from what the server says, and its steps with the strategy of the ready pods."""
    taken = group_of(found)
    policy = policy_for(taken, count)
    outcomes = tuple(simulate_candidate(taken, each, "AVG") for each in (len(taken.clients), count))
    made = pipeline.plan(taken, pipeline.decide(taken, outcomes, policy), policy, outcomes)
    assert made is not None
    return made, made.steps


def carry_out(cluster: ControlPlane, namespace: str, path: Path, found: Deployment, steps: tuple[Step, ...]) -> None:
    """Approve and apply a plan of these steps for the target as it is."""
    kind = {"target_kind": found.kind, "target_api_version": found.api_version}
    plan = replace(plan_for("app", group_of(found).clients, steps), **kind)
    path.write_text(PLAN.text(approved(PLAN.document(plan, path.stem, namespace))), encoding="utf-8")
    done = planner("apply", path, "--kubeconfig", cluster.kubeconfig)
    assert done.returncode == 0, done.stdout + done.stderr


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
            steps = _with_victim(steps, sorted(before)[-1])
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


def _with_victim(steps: tuple[Step, ...], pod: str) -> tuple[Step, ...]:
    """Return the steps with another pod to stop."""

    def changed(step: Step) -> Step:
        if isinstance(step, MarkVictims):
            return replace(step, victims=(replace(step.victims[0], pod=pod, members=(pod,)),))
        return replace(step, preferred_victims=(pod,)) if isinstance(step, StopConsumers) else step

    return tuple(map(changed, steps))


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
        kind = {"target_kind": busy.kind, "target_api_version": busy.api_version}
        plan = replace(plan_for("app", group_of(found).clients, steps), **kind)
        path = tmp_path / "busy.yaml"
        soon = replace(plan, valid_until=plan.made_at + timedelta(seconds=30))
        path.write_text(PLAN.text(approved(PLAN.document(soon, path.stem, namespace))), encoding="utf-8")
        done = planner("apply", path, "--kubeconfig", cluster.kubeconfig)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "promote or abort it" in done.stdout + done.stderr
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
