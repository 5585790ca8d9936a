"""Each effect on a real API server: it is in, or somebody was faster and nothing is done."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from planner.deployments.api import RolloutApi
from planner.deployments.clock import ServerClock
from planner.deployments.effects import perform
from planner.deployments.leases import ClusterLeases
from planner.deployments.plans import FINALIZER, ClusterPlans
from planner.documents.plan import PLAN
from planner.errors import OutOfReachError
from planner.execution.effects import (
    Create,
    Delete,
    DeploymentEffect,
    DropClaim,
    MarkPods,
    RestoreTemplate,
    SetClaim,
    SetReplicas,
    SetTemplate,
)
from planner.execution.observation import Claim
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, ImpossibleError
from planner.rollout.steps import LOWEST_DELETION_COST, CreateDeployment, MovedQueues, StartConsumers, UpdateTemplate
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from planner.sources.kubernetes.objects import pod_of
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import ApiError, Json
from tests.pod_groups import plan_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APP = "app"
CLAIM = Claim("plan-1/uid-1", 0)
CHANGE = TemplateChange(
    (ContainerChange("main", image="app:2", env=(Setting("MODE", "fast"),), removed_env=("OLD",)),),
    annotations=(Setting("note", "new"),),
    node_labels=(Setting("kubernetes.io/os", "linux"),),
)
UPDATE = UpdateTemplate(
    CHANGE, 1, max_surge=1, max_unavailable=0, from_revision=1, time_limit_seconds=60, forecast=MovedQueues()
)
ENV = [
    {"name": "MODE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "OLD", "value": "1"},
    {"name": "KEPT", "value": "1"},
]


class Place:
    """A namespace with one Deployment of one pod."""

    def __init__(self, cluster: ControlPlane, api: RolloutApi) -> None:
        self.cluster, self.api, self.namespace = cluster, api, cluster.namespace("effects")
        made = deployment(APP, 1, {"command": ["sleep", "infinity"], "env": ENV})
        cluster.apply(made, namespace=self.namespace)
        cluster.await_available(self.namespace, APP)

    def get(self, name: str = APP) -> Json:
        return self.cluster.rest.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}")

    @property
    def version(self) -> str:
        """The Deployment's, once its controller has nothing more to write."""
        return str(self.cluster.await_available(self.namespace, APP)["metadata"]["resourceVersion"])

    def pods(self) -> list[Json]:
        return list(self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"])

    def perform(self, effect: DeploymentEffect) -> None:
        perform(self.api, self.namespace, effect)

    def insist(self, make: Callable[[str], DeploymentEffect], name: str = APP) -> None:
        """Have the effect at the present version; the Deployment's controller may be faster a few times."""

        def done() -> bool:
            try:
                self.perform(make(self.get(name)["metadata"]["resourceVersion"]))
            except ConflictError as error:
                assert "modified" in str(error)
                return False
            return True

        self.cluster.wait_until("the effect", done)


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[RolloutApi]:
    with RolloutApi.connect(control_plane.kubeconfig) as opened:
        yield opened


@pytest.fixture
def place(control_plane: ControlPlane, api: RolloutApi) -> Iterator[Place]:
    made = Place(control_plane, api)
    yield made
    control_plane.kubectl("delete", "deployment", "--all", "-n", made.namespace)


def claim_in(found: Json) -> str | None:
    return (found["metadata"].get("annotations") or {}).get("consumerplanner.dev/rollout")


def test_claim_and_count_are_written_together_and_the_claim_is_given_up(place: Place) -> None:
    place.insist(lambda version: SetReplicas(APP, 2, CLAIM, version))
    assert (place.get()["spec"]["replicas"], claim_in(place.get())) == (2, str(CLAIM))
    place.insist(lambda version: DropClaim(APP, version))
    assert claim_in(place.get()) is None
    assert place.get()["spec"]["replicas"] == 2


def test_whoever_was_slower_changes_nothing(place: Place) -> None:
    old = place.version
    place.cluster.kubectl("annotate", "deployment", APP, "-n", place.namespace, "somebody=else")
    slow: list[DeploymentEffect] = [
        SetClaim(APP, CLAIM, old),
        SetReplicas(APP, 5, CLAIM, old),
        SetTemplate(APP, UPDATE, CLAIM, old),
        RestoreTemplate(APP, 1, CLAIM, old),
        DropClaim(APP, old),
        Delete(APP, place.get()["metadata"]["uid"], old),
        Delete(APP, "another", place.version),
        Create(APP, CreateDeployment(APP, 60), APP, CLAIM),
        SetReplicas("gone", 5, CLAIM, old),
    ]
    before = place.get()
    for effect in slow:
        with pytest.raises(ConflictError):
            place.perform(effect)
    after = place.get()
    assert after["spec"] == before["spec"]
    assert claim_in(after) is None


def test_a_template_is_changed_with_the_steps_limits_and_both_come_back(place: Place) -> None:
    before = place.get()["spec"]
    place.insist(lambda version: SetTemplate(APP, UPDATE, CLAIM, version))
    changed = place.get()["spec"]
    (container,) = changed["template"]["spec"]["containers"]
    assert container["image"] == "app:2"
    assert {one["name"]: one.get("value") for one in container["env"]} == {"MODE": "fast", "KEPT": "1"}
    assert not any("valueFrom" in one for one in container["env"])
    assert changed["template"]["metadata"]["annotations"] == {"note": "new"}
    assert changed["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert changed["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}

    back = Claim("plan-1/uid-1", 0, is_undoing=True)
    place.insist(lambda version: RestoreTemplate(APP, 1, back, version))
    assert claim_in(place.get()) == str(back)
    assert place.get()["spec"]["template"] == before["template"]
    place.insist(lambda version: DropClaim(APP, version))
    assert place.get()["spec"] == before
    assert not {one for one in place.get()["metadata"]["annotations"] if one.startswith("consumerplanner.dev/")}


def test_a_container_that_is_not_there_is_not_added(place: Place) -> None:
    change = TemplateChange((ContainerChange("other", image="app:2"),))
    step = UpdateTemplate(change, 1, 1, 0, 1, 60, MovedQueues())
    with pytest.raises(ImpossibleError, match="no container other"):
        place.perform(SetTemplate(APP, step, CLAIM, place.version))


def test_a_created_deployment_is_like_the_other_but_for_the_change_and_is_deleted_again(place: Place) -> None:
    place.perform(Create("green", CreateDeployment("green", 60, CHANGE), APP, CLAIM))
    green, own = place.get("green"), place.get()
    assert (green["spec"]["replicas"], claim_in(green)) == (0, str(CLAIM))
    assert green["spec"]["selector"] != own["spec"]["selector"]
    (container,) = green["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sleep", "infinity"]
    assert container["image"] == "app:2"
    assert {one["name"]: one.get("value") for one in container["env"]} == {"MODE": "fast", "KEPT": "1"}
    place.cluster.kubectl("scale", "deployment/green", "-n", place.namespace, "--replicas=1")
    place.cluster.await_available(place.namespace, "green")
    assert place.cluster.await_available(place.namespace, APP)["status"]["replicas"] == 1, "each has its own pods"
    uid = place.get("green")["metadata"]["uid"]
    place.insist(lambda version: Delete("green", uid, version), "green")

    def gone() -> bool:
        try:
            place.get("green")
        except ApiError as error:
            return error.status == 404
        return False

    place.cluster.wait_until("its end", gone)


def test_only_the_pod_that_was_meant_is_marked(place: Place) -> None:
    (pod,) = place.pods()
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    place.perform(MarkPods(APP, ((name, "another", -5), ("gone", "uid", -5))))
    (pod,) = place.pods()
    assert "controller.kubernetes.io/pod-deletion-cost" not in (pod["metadata"].get("annotations") or {})
    place.perform(MarkPods(APP, ((name, uid, LOWEST_DELETION_COST),)))
    (pod,) = place.pods()
    assert pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] == str(LOWEST_DELETION_COST)
    annotation = "controller.kubernetes.io/pod-deletion-cost=7"
    place.cluster.kubectl("annotate", f"pod/{name}", "-n", place.namespace, "--overwrite", annotation)
    (pod,) = place.pods()
    other = pod_of(pod, {})
    assert (other.deletion_cost, other.deletion_cost_by) == (7, "kubectl-annotate")
    place.perform(MarkPods(APP, ((name, uid, 0),)))
    (pod,) = place.pods()
    assert "controller.kubernetes.io/pod-deletion-cost" not in (pod["metadata"].get("annotations") or {})


def test_of_two_who_want_the_lease_one_gets_it(control_plane: ControlPlane, api: RolloutApi) -> None:
    leases = ClusterLeases(api, control_plane.namespace("leases"))
    now = datetime.now(UTC)
    assert leases.read("group") is None
    first = leases.write("group", None, "one", now)
    assert (first.holder, first.transitions) == ("one", 0)
    assert abs(first.renewed_at - now) < timedelta(milliseconds=1)
    with pytest.raises(ConflictError):
        leases.write("group", None, "two", now)
    renewed = leases.write("group", first, "one", now + timedelta(seconds=10))
    with pytest.raises(ConflictError):
        leases.write("group", first, "two", now)
    free = leases.write("group", renewed, None, now)
    assert (free.holder, leases.read("group")) == (None, free)
    assert leases.write("group", free, "two", now).transitions == 1


def test_the_time_is_the_servers_and_goes_on(api: RolloutApi) -> None:
    clock = ServerClock(api.server_time)
    first = clock()
    assert first <= clock()
    assert first.tzinfo is not None


def test_a_server_that_is_not_there_is_out_of_reach(control_plane: ControlPlane) -> None:
    away = control_plane.kubeconfig_for("token", "away", server="https://127.0.0.1:1")
    with RolloutApi.connect(away, deadline_s=2.0) as nobody, pytest.raises(OutOfReachError):
        perform(nobody, "default", SetClaim(APP, CLAIM, "1"))


def test_two_who_let_a_plan_go_at_once_do_not_stand_in_each_others_way(control_plane_with_plans: ControlPlane) -> None:
    """As an abort and the executor that it is carried out by; the round in which both have read is one of a few."""
    namespace = control_plane_with_plans.namespace("finalizers")
    plan = plan_for(APP, ["a", "b"], [StartConsumers(2, 3, 60, MovedQueues(0, 8), undo="set 2")])
    with RolloutApi.connect(control_plane_with_plans.kubeconfig) as api, ThreadPoolExecutor(2) as pool:
        plans, start = ClusterPlans(api, namespace), Barrier(2)
        stored = plans.create(PLAN.document(plan, "p", namespace))
        path = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{namespace}/consumerrolloutplans/p"

        def let_go(_: int) -> None:
            with RolloutApi.connect(control_plane_with_plans.kubeconfig) as own:
                start.wait(300)
                ClusterPlans(own, namespace).remove_finalizer(stored)

        for _ in range(20):
            plans.add_finalizer("p")
            assert control_plane_with_plans.rest.get(path)["metadata"]["finalizers"] == [FINALIZER]
            list(pool.map(let_go, range(2)))
            assert not control_plane_with_plans.rest.get(path)["metadata"].get("finalizers")


def test_a_plan_that_has_begun_meanwhile_is_not_let_go(control_plane_with_plans: ControlPlane) -> None:
    """As when somebody gives a waiting plan up in the moment in which the controller begins with it."""
    namespace = control_plane_with_plans.namespace("finalizers")
    plan = plan_for(APP, ["a", "b"], [StartConsumers(2, 3, 60, MovedQueues(0, 8), undo="set 2")])
    with RolloutApi.connect(control_plane_with_plans.kubeconfig) as api:
        plans = ClusterPlans(api, namespace)
        waiting = plans.create(PLAN.document(plan, "p", namespace))
        plans.add_finalizer("p")
        for phase in (Phase.APPROVED, Phase.RUNNING, Phase.VERIFYING, Phase.SUCCEEDED):
            found = plans.read("p")
            assert found is not None
            assert found.has_finalizer, phase
            plans.write_status(found, found.status.enter(phase, "told", datetime.now(UTC)))
            if phase is not Phase.APPROVED:
                plans.remove_finalizer(waiting)
        found = plans.read("p")
        assert found is not None
        assert not found.has_finalizer
