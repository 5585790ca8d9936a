"""Policies and plans on a real API server: it takes the definitions, keeps documents whole, refuses wrong ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.decision.decision import DecisionBill
from planner.decision.objective import WaitObjective
from planner.deployments.api import RolloutApi
from planner.deployments.plans import ClusterPlans
from planner.documents.approve import APPROVE_ANNOTATION, CONFIRM_ANNOTATION
from planner.documents.plan import PLAN
from planner.documents.status import dump_status, parse_status
from planner.execution.phases import Phase
from planner.execution.progress import Approval, RolloutStatus
from planner.rollout.plan import RolloutPlan
from tests.builders import AT, OBJECTIVE, clients, decided, queues, snapshot
from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError, Json, Rest
from tests.pod_controllers import documents, install, uninstall
from tests.step_builders import STEPS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

LATER = AT + timedelta(minutes=5)
ROOT = Path(__file__).parents[2]
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Installed:
    """A cluster with the definitions, and a namespace."""

    cluster: ControlPlane
    namespace: str

    @property
    def plans(self) -> str:
        return f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans"

    def write(self, name: str, status: RolloutStatus) -> None:
        """Write a plan's status as an executor does, with its conditions."""
        with RolloutApi.connect(self.cluster.kubeconfig) as api:
            plans = ClusterPlans(api, self.namespace)
            stored = plans.read(name)
            assert stored is not None
            # What stands there is what the next status begins from, times of conditions among it.
            plans.write_status(stored, replace(status, conditions=stored.status.conditions))

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        return self.cluster.kubectl("--namespace", self.namespace, *arguments, text=text)


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[Installed]:
    made = install(control_plane)
    yield Installed(control_plane, control_plane.namespace("plans"))
    uninstall(control_plane, made)


def small() -> RolloutPlan:
    plan = decided(snapshot(capacity=65.0)).plan
    assert plan is not None
    return replace(plan, target_replicas=4)


def large() -> RolloutPlan:
    """Return a plan over 1000 queues, each of 400 consumers with a range of its own for every other queue."""
    taken = snapshot(queues(brokers=("a", "b", "c", "d"), each=250), clients(400), strategy="AVG_BY_CIRCLE")
    plan = decided(taken, replace(OBJECTIVE, highest=1_000), ("AVG_BY_CIRCLE",)).plan
    assert plan is not None
    return plan


def every_step() -> RolloutPlan:
    forecast = replace(small().forecast, utilisation=1.0)
    return replace(small(), steps=STEPS, migration="strategy", forecast=forecast, bill=weighed_bill())


def weighed_bill() -> DecisionBill:
    """Return the bill of a policy that weighs; whole numbers are among its figures."""
    bill = decided(
        snapshot(clients=clients(8)), replace(OBJECTIVE, wait=WaitObjective()), trials=2
    ).record.decision.bill
    assert bill is not None
    assert any(line.change_hours == 0.0 for line in bill.lines)
    return bill


@pytest.mark.parametrize("make", [small, large, every_step])
def test_a_plan_that_was_applied_is_read_back_as_it_was(installed: Installed, make: Callable[[], RolloutPlan]) -> None:
    plan, name = make(), make.__name__.replace("_", "-")
    installed.kubectl("apply", "-f", "-", text=PLAN.dump(plan, name))
    assert PLAN.parse(installed.cluster.rest.get(f"{installed.plans}/{name}"), name) == plan
    # Once more, as somebody does who is not sure: kubectl then sends a difference, which must be none.
    assert "unchanged" in installed.kubectl("apply", "-f", "-", text=PLAN.dump(plan, name))


def test_the_example_policies_apply_and_kubectl_shows_what_matters(installed: Installed) -> None:
    installed.kubectl("apply", "-f", str(ROOT / "examples" / "policies"))
    shown = installed.kubectl("get", "csp", "-o", "wide")
    columns = ["NAME", "GROUP", "FROM", "TO", "READY", "WHY", "SINCE", "PLAN", "AGE"]
    wide = ["SYSTEM", "DEPLOYMENT", "MIN", "MAX", "APPROVAL", "MESSAGE"]
    assert shown.split("\n")[0].split() == columns + wide
    assert "shop-orders-consumer" in shown
    installed.kubectl("apply", "-f", "-", text=PLAN.dump(small(), "shown"))
    installed.write("shown", RolloutStatus(Phase.APPROVED, approval=Approval("sha256:1", None, AT)))
    heading, row = installed.kubectl("get", "crp", "shown").splitlines()
    assert heading.split() == [
        "NAME",
        "GROUP",
        "FROM",
        "TO",
        "KIND",
        "PHASE",
        "STEP",
        "HELD",
        "MOVED",
        "APPROVED",
        "AGE",
    ]
    most = small().forecast.moved_queues.most
    assert row.split()[:9] == ["shown", "billing", "3", "4", "scale", "Approved", "0/4", "False", str(most)]
    everything = installed.kubectl("get", "consumerplanner")
    assert "shown" in everything
    assert "shop-orders" in everything


def test_kubectl_waits_for_conditions_which_say_since_when_and_of_which_generation(installed: Installed) -> None:
    """Red when a condition is of another form than the API server's own, or its time moves without its status."""
    installed.kubectl("apply", "-f", "-", text=PLAN.dump(small(), "awaited"))
    path = f"{installed.plans}/awaited"
    # Flux would take an object without status as done.
    assert installed.cluster.rest.get(path)["status"] == {"observedGeneration": -1}

    def conditions() -> dict[str, Json]:
        found = installed.cluster.rest.get(path)
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert {one["observedGeneration"] for one in found["status"]["conditions"]} == {found["metadata"]["generation"]}
        return {one["type"]: one for one in found["status"]["conditions"]}

    installed.write("awaited", RolloutStatus(held="waits for approval", last_look_at=AT))
    installed.kubectl("wait", "crp/awaited", "--for=condition=Held", "--timeout=300s")
    first = conditions()
    assert {name for name, one in first.items() if one["status"] == "True"} == {"Held", "Reconciling"}
    assert first["Held"]["message"] == "waits for approval"
    with pytest.raises(StartFailedError, match="timed out"):
        installed.kubectl("wait", "crp/awaited", "--for=condition=Complete", "--timeout=1s")

    approval = Approval("sha256:1", "anna", AT)
    installed.write(
        "awaited", RolloutStatus(Phase.RUNNING, "2 of 3 pods are ready", approval=approval, last_look_at=LATER)
    )
    running = conditions()
    assert {name for name, one in running.items() if one["status"] == "True"} == {"Approved", "Reconciling"}
    assert running["Reconciling"]["lastTransitionTime"] == first["Reconciling"]["lastTransitionTime"]
    assert (running["Reconciling"]["reason"], running["Reconciling"]["message"]) == ("Running", "2 of 3 pods are ready")
    assert running["Held"]["lastTransitionTime"] > first["Held"]["lastTransitionTime"]

    installed.write("awaited", RolloutStatus(Phase.SUCCEEDED, "done", approval=approval, last_look_at=LATER))
    installed.kubectl("wait", "crp/awaited", "--for=condition=Complete", "--timeout=300s")
    installed.write("awaited", RolloutStatus(Phase.ROLLED_BACK, "undone", approval=approval, last_look_at=LATER))
    installed.kubectl("wait", "crp/awaited", "--for=condition=Stalled", "--timeout=300s")
    assert {name for name, one in conditions().items() if one["status"] == "True"} == {"Approved", "Stalled"}


def changed(**spec: Any) -> Callable[[Json], None]:
    return lambda document: document["spec"].update(spec)


def step(**fields: Any) -> Callable[[Json], None]:
    return lambda document: document["spec"].update(steps=[{"timeLimitSeconds": 5, **fields}])


OFFSETS = {"kind": "cloneOffsets", "toGroup": "g", "confirmation": "x"}
WRONG_PLANS = [
    (changed(steps=[]), "a plan must have steps"),
    (changed(steps=None), "spec.steps"),
    (changed(validUntil="2020-01-01T00:00:00Z"), "validUntil must be after madeAt"),
    (changed(madeAt="noon"), "spec.madeAt"),
    (changed(surprise=1), 'unknown field "spec.surprise"'),
    (step(kind="drainNode"), "spec.steps[0].kind: Unsupported value"),
    (step(kind="awaitReady"), "spec.steps[0]"),
    (step(**OFFSETS), "only a migration may write offsets"),
    (step(kind="deleteDeployment", deployment="d"), "only a migration may create, update or delete Deployments"),
    (step(kind="awaitReady", replicas=1, deployment="d"), "only a migration may have steps that name a Deployment"),
    (changed(migration=""), "a migration must have a name"),
]


@pytest.mark.parametrize(("change", "said"), WRONG_PLANS, ids=[said for _, said in WRONG_PLANS])
def test_a_wrong_plan_is_refused_by_the_server(installed: Installed, change: Callable[[Json], None], said: str) -> None:
    document = PLAN.document(small(), "wrong")
    change(document)
    with pytest.raises(StartFailedError, match=r".") as refused:
        installed.kubectl("create", "-f", "-", text=yaml.safe_dump(document))
    assert said in str(refused.value)


WRONG_POLICIES = [
    (changed(minReplicas=13), "minReplicas must be at most maxReplicas"),
    (changed(strategyOptions={"virtual_nodes": 5}), "strategyOptions must stand beside the strategy"),
    (changed(approval={"mode": "Auto"}), "criteria must stand beside mode Auto"),
    (changed(approval={"criteria": {"mostDuplicates": 1}}), "criteria must stand beside mode Auto"),
    (changed(changeWindows=[{"from": "25:00"}]), "spec.changeWindows[0].from"),
    (changed(source={"system": "kafka", "cluster": "c", "group": "g"}), "spec.source"),
]


@pytest.mark.parametrize(("change", "said"), WRONG_POLICIES, ids=range(len(WRONG_POLICIES)))
def test_a_wrong_policy_is_refused_by_the_server(
    installed: Installed, change: Callable[[Json], None], said: str
) -> None:
    (document,) = yaml.safe_load_all((ROOT / "examples" / "policies" / "shop-orders.yaml").read_text())
    document["metadata"]["name"] = "wrong"
    change(document)
    with pytest.raises(StartFailedError, match=r".") as refused:
        installed.kubectl("create", "-f", "-", text=yaml.safe_dump(document))
    assert said in str(refused.value)


def test_a_plan_can_never_be_changed_and_its_status_comes_back(installed: Installed) -> None:
    path = f"{installed.plans}/frozen"
    installed.kubectl("apply", "-f", "-", text=PLAN.dump(small(), "frozen"))
    rest = installed.cluster.rest
    with pytest.raises(ApiError, match="a plan is never changed"):
        rest.patch(path, {"spec": {"reason": "another"}}, MERGE)
    rest.patch(f"{path}/status", {"status": dump_status(RolloutStatus())}, MERGE)
    status = RolloutStatus(Phase.APPROVED, approval=Approval("sha256:1", None, AT), phase_since=AT)
    written = {**rest.get(path), "status": dump_status(status)}
    rest.call("PUT", f"{path}/status", written)
    assert parse_status(rest.get(path)["status"], "frozen") == status
    with pytest.raises(ApiError, match="a plan is never changed") as refused:
        rest.patch(path, {"spec": {"reason": "a fourth"}}, MERGE)
    assert refused.value.status == 422
    rest.patch(path, {"metadata": {"annotations": {"a": "b"}}}, MERGE)


def account(installed: Installed, role: str) -> Rest:
    """Return the calls of a new service account that has one of the roles."""
    cluster, namespace = installed.cluster, installed.namespace
    roles = documents("rbac/plan-roles")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"consumer-planner-{role}"},
        "subjects": [{"kind": "ServiceAccount", "name": role, "namespace": namespace}],
    }
    cluster.rest.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": role}})
    cluster.apply(*roles, binding, namespace=namespace)
    rest = Rest(cluster.server, cluster.ca_file, cluster.token(namespace, role))
    cluster.wait_until("the right", lambda: can(rest, namespace, "consumerrolloutplans", "get"))
    return rest


def can(rest: Rest, namespace: str, resource: str, verb: str) -> bool:
    kind, _, below = resource.partition("/")
    attributes = {"group": "consumerplanner.dev", "resource": kind, "subresource": below, "verb": verb}
    review = {"spec": {"resourceAttributes": {**attributes, "namespace": namespace}}}
    answer = rest.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


READS = {"get", "list", "watch"}
ROLES = {
    "viewer": (READS, READS),
    "planner": (READS, READS | {"create"}),
    "approver": (READS, READS | {"patch", "approve"}),
}
VERBS = (*sorted(READS), "create", "update", "patch", "delete", "deletecollection", "approve")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_its_rights_and_only_an_approver_approves(installed: Installed, role: str) -> None:
    rest = account(installed, role)
    for resource, verbs in zip(("consumerscalingpolicies", "consumerrolloutplans"), ROLES[role], strict=True):
        assert {verb for verb in VERBS if can(rest, installed.namespace, resource, verb)} == verbs
        assert not any(can(rest, installed.namespace, f"{resource}/status", verb) for verb in VERBS)
    name = f"for-{role}"
    installed.kubectl("apply", "-f", "-", text=PLAN.dump(small(), name))
    approval = {"metadata": {"annotations": {APPROVE_ANNOTATION: PLAN.digest(small())}}}
    if role == "approver":
        rest.patch(f"{installed.plans}/{name}", approval, MERGE)
        return
    with pytest.raises(ApiError) as refused:
        rest.patch(f"{installed.plans}/{name}", approval, MERGE)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


@pytest.mark.parametrize("annotation", [APPROVE_ANNOTATION, CONFIRM_ANNOTATION])
def test_who_may_make_a_plan_cannot_make_an_approved_one(installed: Installed, annotation: str) -> None:
    namespace = Installed(installed.cluster, installed.cluster.namespace("forged"))
    rest = account(namespace, "planner")
    forged = PLAN.document(small(), "forged")
    forged["metadata"]["annotations"][annotation] = PLAN.digest(small())
    with pytest.raises(ApiError, match="takes the verb approve") as refused:
        rest.create(namespace.plans, forged)
    assert refused.value.status == 403
    rest.create(namespace.plans, PLAN.document(small(), "forged"))
