"""Plans that have ended are removed from a real API server, by the controller's own account; no other plan is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.controller.retention import Retention
from planner.deployments.api import RolloutApi
from planner.deployments.plans import ClusterPlans
from planner.documents.plan import PLAN
from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.rollout.steps import AwaitReady
from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes import ControlPlane
from tests.pod_controllers import ACCOUNT, grant, install, uninstall
from tests.pod_groups import plan_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

TTL_S = 3_600
KEPT = "removes only plans that have ended"


@dataclass(frozen=True)
class Plans:
    """A namespace of plans, and the controller's account with its roles there."""

    cluster: ControlPlane
    namespace: str
    kubeconfig: Path

    def add(self, name: str, phase: Phase, ended_ago_s: float, ttl_s: int | None = None) -> None:
        made = replace(plan_for("app", ["a", "b"], [AwaitReady(2, 60)]), ttl_seconds_after_finished=ttl_s)
        document = PLAN.text(PLAN.document(made, name, self.namespace))
        self.cluster.kubectl("apply", "-f", "-", text=document)
        with RolloutApi.connect(self.cluster.kubeconfig) as api:
            plans = ClusterPlans(api, self.namespace)
            stored = plans.read(name)
            assert stored is not None
            since = datetime.now(UTC) - timedelta(seconds=ended_ago_s)
            plans.write_status(stored, RolloutStatus(phase, "over", phase_since=since))

    def names(self) -> set[str]:
        return set(self.cluster.kubectl("get", "crp", "-n", self.namespace, "-o", "name").split())

    def tidy(self, most: int | None = None) -> None:
        with RolloutApi.connect(self.kubeconfig) as api:
            Retention(api, most, lambda: datetime.now(UTC), lambda _: True).tidy(api.plans(self.namespace))


@pytest.fixture(scope="module")
def plans(control_plane: ControlPlane) -> Iterator[Plans]:
    made = install(control_plane)
    namespace = control_plane.namespace("ended")
    grant(control_plane, namespace, namespace, "controller", "executor", "executor-retention")
    kubeconfig = control_plane.kubeconfig_for(control_plane.token(namespace, ACCOUNT), f"{namespace}-controller")
    as_controller = f"--as=system:serviceaccount:{namespace}:{ACCOUNT}"

    def may_delete() -> bool:
        try:
            return control_plane.kubectl("auth", "can-i", "delete", "crp", "-n", namespace, as_controller) != ""
        except StartFailedError:
            return False

    control_plane.wait_until("the right", may_delete)
    yield Plans(control_plane, namespace, kubeconfig)
    uninstall(control_plane, made)


def test_plans_go_by_their_own_time_and_by_the_limit_of_their_policy(plans: Plans) -> None:
    """Red when a plan goes early, or when the oldest stays instead of the newest."""
    plans.add("over", Phase.SUCCEEDED, TTL_S + 10, TTL_S)
    plans.add("soon", Phase.SUCCEEDED, TTL_S - 600, TTL_S)
    plans.add("old", Phase.ROLLED_BACK, 30_000)
    plans.add("new", Phase.EXPIRED, 20_000)
    plans.add("stuck", Phase.STUCK, TTL_S + 10, TTL_S)
    plans.add("waits", Phase.PENDING, TTL_S + 10, TTL_S)
    plans.tidy()
    kept = {f"consumerrolloutplan.consumerplanner.dev/{name}" for name in ("soon", "new", "stuck", "waits")}
    oldest = {"consumerrolloutplan.consumerplanner.dev/old"}
    assert plans.names() == kept | oldest
    plans.tidy(most=2)
    assert plans.names() == kept


@pytest.mark.parametrize("phase", [Phase.STUCK, Phase.PENDING, Phase.RUNNING])
def test_admission_lets_the_controller_remove_no_plan_that_has_not_ended(plans: Plans, phase: Phase) -> None:
    name = f"kept-{phase.lower()}"
    plans.add(name, phase, 10)
    account = f"--as=system:serviceaccount:{plans.namespace}:{ACCOUNT}"
    with pytest.raises(StartFailedError, match=KEPT):
        plans.cluster.kubectl("delete", "crp", name, "-n", plans.namespace, account)


def test_admission_holds_an_account_of_any_name_that_carries_out_plans(plans: Plans) -> None:
    """Red when the policy goes by the controller's name: another executor removes plans that wait."""
    namespace, account = plans.namespace, f"--as=system:serviceaccount:{plans.namespace}:renamed"
    for role in ("executor", "retention"):
        binding = ("rolebinding", f"renamed-{role}", f"--role=consumer-planner-{role}")
        plans.cluster.kubectl("create", *binding, f"--serviceaccount={namespace}:renamed", "-n", namespace)
    rights = (("delete", "crp"), ("update", "crp", "--subresource=status"))

    def has_rights() -> bool:
        try:
            return all(plans.cluster.kubectl("auth", "can-i", *right, "-n", namespace, account) for right in rights)
        except StartFailedError:
            return False

    plans.cluster.wait_until("the rights of another executor", has_rights)
    plans.add("kept-renamed", Phase.PENDING, 10)
    with pytest.raises(StartFailedError, match=KEPT):
        plans.cluster.kubectl("delete", "crp", "kept-renamed", "-n", namespace, account)
    plans.cluster.kubectl("delete", "crp", "kept-renamed", "-n", namespace)  # the administrator may


def test_a_time_out_of_bounds_is_refused_by_the_server(plans: Plans) -> None:
    document = PLAN.document(plan_for("app", ["a", "b"], [AwaitReady(2, 60)]), "hasty", plans.namespace)
    document["spec"]["ttlSecondsAfterFinished"] = 59
    with pytest.raises(StartFailedError, match="ttlSecondsAfterFinished must be from 60 to 31536000"):
        plans.cluster.kubectl("apply", "-f", "-", text=PLAN.text(document))
