"""A real API server keeps what the ports promise: see ``tests/port_contract.py``."""

from collections.abc import Iterator

import pytest

from planner.deployments.api import RolloutApi
from planner.deployments.effects import perform
from planner.deployments.leases import ClusterLeases
from planner.deployments.plans import ClusterPlans
from planner.documents.plan import PLAN
from planner.execution.effects import DeploymentEffect
from planner.execution.ports import StoredPlan
from planner.rollout.steps import MovedQueues, StartConsumers
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.rest import ApiError
from tests.contract.conftest import API
from tests.pod_groups import plan_for
from tests.port_contract import APP, Facts, PortContract

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APPS = "/apis/apps/v1/namespaces/{}/deployments/{}"


class RealPortCluster:
    """A namespace of its own: the Deployment has no replica, so that no pod has to start."""

    def __init__(self, control_plane: ControlPlane, api: RolloutApi) -> None:
        self._control_plane, self._api, self.namespace = control_plane, api, control_plane.namespace("ports")
        control_plane.apply(deployment(APP, 0, {"command": ["sleep", "infinity"]}), namespace=self.namespace)
        control_plane.await_available(self.namespace, APP)
        self.plans, self.leases = ClusterPlans(api, self.namespace), ClusterLeases(api, self.namespace)

    def perform(self, effect: DeploymentEffect) -> None:
        perform(self._api, self.namespace, effect)

    def deployment(self, name: str) -> Facts | None:
        try:
            found = self._control_plane.rest.get(APPS.format(self.namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        meta, spec = found["metadata"], found["spec"]
        claim = (meta.get("annotations") or {}).get("consumerplanner.dev/rollout")
        is_going = "deletionTimestamp" in meta
        return (
            None if is_going else Facts(meta["uid"], meta["resourceVersion"], spec["replicas"], claim, spec["template"])
        )

    def touch(self, name: str) -> None:
        self._control_plane.kubectl("annotate", "deployment", name, "-n", self.namespace, "somebody=else")

    def create_plan(self, name: str) -> StoredPlan:
        plan = plan_for(APP, ["a", "b"], [StartConsumers(2, 3, 60, MovedQueues(0, 8), undo="set 2")])
        return self.plans.create(PLAN.document(plan, name, self.namespace))

    def delete_plan(self, name: str) -> None:
        self._control_plane.rest.delete(f"{API}/namespaces/{self.namespace}/consumerrolloutplans/{name}")


@pytest.fixture(scope="module")
def api(control_plane_with_plans: ControlPlane) -> Iterator[RolloutApi]:
    with RolloutApi.connect(control_plane_with_plans.kubeconfig) as opened:
        yield opened


class TestRealPorts(PortContract):
    @pytest.fixture
    def cluster(self, control_plane_with_plans: ControlPlane, api: RolloutApi) -> RealPortCluster:
        return RealPortCluster(control_plane_with_plans, api)
