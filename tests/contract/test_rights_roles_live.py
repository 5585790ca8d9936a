"""Roles and admission policies on a real API server, by tokens of real accounts: who may do what, to the field."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.deployments.api import RolloutApi
from planner.deployments.events import ClusterEvents
from planner.deployments.plans import ClusterPlans
from planner.deployments.rights import DECIDING, Right, needed
from planner.deployments.scalers import RESOURCES, set_scaler
from planner.documents.approve import APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION
from planner.documents.plan import PLAN
from planner.documents.status import dump_status
from planner.execution.effects import SetScaler
from planner.execution.lease import lease_name
from planner.execution.observation import Claim
from planner.execution.progress import RolloutStatus
from planner.rollout.plan import GroupRef, RolloutPlan
from planner.rollout.steps import AutoscalerKind, AutoscalerState, MovedQueues, SetAutoscaler, StartConsumers
from planner.sources.kubernetes.objects import KEDA_PAUSED, SET_BY, hpas_of, scaled_objects_of
from tests import rights_matrix
from tests.clusters.kubernetes import ControlPlane, deployment, stateful_set
from tests.clusters.kubernetes.rest import STRATEGIC, ApiError, Json, Rest
from tests.contract.test_kubernetes_reads_live import crd
from tests.contract.test_kubernetes_rights import ABOUT_ONESELF
from tests.pod_controllers import ACCOUNT, MERGE, documents, grant, install, uninstall
from tests.pod_groups import plan_for
from tests.rights_matrix import may
from tests.scale_kinds import definition, path_of, target
from tests.step_builders import STEPS
from tests.unit.cli.test_cli import planner, refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APP = "app"
GROUP = "consumerplanner.dev"
PLANS, POLICIES = "consumerrolloutplans", "consumerscalingpolicies"
CLAIM = "consumerplanner.dev/rollout"
COST = "controller.kubernetes.io/pod-deletion-cost"
READS = ("get", "list", "watch")
UPDATES = "updatetemplate"


def on(resource: str, *verbs: str, group: str = GROUP) -> set[Right]:
    return {(group, resource, verb) for verb in verbs}


VIEWER = on(PLANS, *READS) | on(POLICIES, *READS)
AUTOSCALERS = on("horizontalpodautoscalers", "get", "patch", group="autoscaling") | on(
    "scaledobjects", "get", "patch", group="keda.sh"
)
SCALE = {
    right
    for group, resource in (("argoproj.io", "rollouts"), ("apps.kruise.io", "clonesets"))
    for right in on(resource, "get", "patch", group=group) | on(f"{resource}/scale", "get", group=group)
}
MIGRATIONS = on("deployments", "create", "delete", UPDATES, group="apps")
ROLES: dict[str, set[Right]] = {
    "viewer": VIEWER,
    "planner": VIEWER | on(PLANS, "create"),
    "approver": VIEWER | on(PLANS, "patch", "approve"),
    "scheduler": on(POLICIES, "get", "list") | on(f"{POLICIES}/status", "patch") | on(PLANS, "list", "create"),
    "handover": on(PLANS, "get", "create", "patch") | on("leases", "get", group="coordination.k8s.io"),
    "executor": on(POLICIES, "get")
    | on(PLANS, *READS, "patch")
    | on(f"{PLANS}/status", "update")
    | on("deployments", "get", "patch", group="apps")
    | on("statefulsets", "get", "patch", group="apps")
    | on("replicasets", "list", group="apps")
    | on("pods", "list", "patch", group="")
    | on("horizontalpodautoscalers", "list", group="autoscaling")
    | on("scaledobjects", "list", group="keda.sh")
    | on("leases", "get", "create", "update", group="coordination.k8s.io")
    | on("events", "create", "patch", group=""),
    "migrations": MIGRATIONS,
    "autoscalers": AUTOSCALERS,
    "scale": SCALE,
    "retention": on(PLANS, "delete"),
    "auto": on(PLANS, "approve"),
    "spark": on("pods", *READS, "create", "patch", "delete", "deletecollection", group="")
    | on("configmaps", "get", "list", "create", "patch", "delete", "deletecollection", group="")
    | on("services", "get", "list", "create", "patch", "delete", "deletecollection", group=""),
}
FORBIDDEN = [
    ("", "secrets", "get"),
    ("", "secrets", "list"),
    ("", "configmaps", "get"),
    ("", "pods/exec", "create"),
    ("", "pods/log", "get"),
    ("", "pods", "create"),
    ("", "pods", "delete"),
    ("", "pods/eviction", "create"),
    ("", "serviceaccounts/token", "create"),
    ("", "nodes", "list"),
    ("", "namespaces", "list"),
    ("apps", "deployments", "list"),
    ("apps", "deployments", "update"),
    ("apps", "deployments", "deletecollection"),
    ("apps", "replicasets", "patch"),
    ("apps", "statefulsets", "update"),
    ("rbac.authorization.k8s.io", "roles", "escalate"),
    ("rbac.authorization.k8s.io", "rolebindings", "create"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "get"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "list"),
    (GROUP, PLANS, "delete"),
    (GROUP, PLANS, "update"),
    (GROUP, f"{PLANS}/status", "patch"),
    (GROUP, POLICIES, "create"),
    (GROUP, POLICIES, "patch"),
    (GROUP, f"{POLICIES}/status", "update"),
]


@dataclass(frozen=True)
class Realm:
    """A namespace with a Deployment; accounts are made in it, the controller's in ``home``."""

    cluster: ControlPlane
    home: str
    namespace: str

    @property
    def admin(self) -> Rest:
        return self.cluster.rest

    @property
    def app(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{APP}"

    @property
    def plans(self) -> str:
        return f"/apis/{GROUP}/v1alpha1/namespaces/{self.namespace}/{PLANS}"

    def rest(self, namespace: str, name: str) -> Rest:
        return Rest(self.cluster.server, self.cluster.ca_file, self.cluster.token(namespace, name))

    def account(self, name: str, *roles: str) -> Rest:
        """Return the calls of a new account that has these roles."""
        self.admin.create(f"/api/v1/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": name}})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        for role in roles:
            self.bind(f"consumer-planner-{role}", f"{name}-{role}", subject)
        rest = self.rest(self.namespace, name)
        self.await_rights(rest, set().union(*(ROLES[role] for role in roles if role in ROLES)))
        return rest

    def bind(self, role: str, name: str, subject: Json) -> None:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}/rolebindings"
        self.admin.create(path, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})

    def await_rights(self, rest: Rest, wanted: set[Right]) -> None:
        """Wait until the server goes by roles that were just bound: its authorizer hears of them a moment later."""
        self.cluster.wait_until("the rights", lambda: wanted <= rights_of(rest, self.namespace))

    def plan(self, name: str, plan: RolloutPlan | None = None) -> str:
        """Apply a plan; return its path."""
        document = PLAN.document(plan or simple(), name, self.namespace)
        self.cluster.kubectl("apply", "-f", "-", text=PLAN.text(document))
        return f"{self.plans}/{name}"


def simple() -> RolloutPlan:
    return plan_for(APP, ["a", "b"], (StartConsumers(2, 4, 300, MovedQueues(0, 8), undo="set 2"),))


def updating() -> RolloutPlan:
    return replace(simple(), steps=tuple(step for step in STEPS if step.kind == "updateTemplate"), migration="update")


def rights_of(rest: Rest, namespace: str) -> set[Right]:
    """Return all that an account may do in a namespace, as the server itself tells it."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status = rest.create(path, {"spec": {"namespace": namespace}})["status"]
    assert not status.get("incomplete"), status
    return {
        (group, resource, verb)
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture(scope="module")
def realm(control_plane: ControlPlane) -> Iterator[Realm]:
    made = install(control_plane)
    home, namespace = control_plane.namespace("planner"), control_plane.namespace("rights")
    grant(control_plane, home, home, "controller")
    grant(control_plane, home, namespace, "executor", "plan-roles")
    nobody = control_plane.namespace("nobody")  # these roles are made, and bound only where a test asks for it
    unbound = ("executor-migrations", "executor-autoscalers", "executor-scale", "executor-retention", "auto-approver")
    unbound += ("scheduler", "handover", "spark")
    grant(control_plane, nobody, namespace, *unbound)
    control_plane.apply(deployment(APP, 1, {"command": ["sleep", "infinity"]}), namespace=namespace)
    control_plane.await_available(namespace, APP)
    found = Realm(control_plane, home, namespace)
    controller = found.rest(home, ACCOUNT)
    found.await_rights(controller, ROLES["executor"])
    label = DEPLOYMENT_EDITS["a label"]
    control_plane.wait_until("the policy on Deployments", lambda: is_held_back(found, controller, label))
    yield found
    control_plane.kubectl("delete", "deployment", "--all", "-n", namespace)
    uninstall(control_plane, made)


def is_held_back(realm: Realm, controller: Rest, edit: Json) -> bool:
    """True once the policies keep the controller from an edit: each works from a moment of its own on."""
    try:
        controller.call("PATCH", realm.app, edit, kind=MERGE, query={"dryRun": "All"})
    except ApiError as error:
        assert error.status == 403, error
        return True
    return False


@pytest.fixture(scope="module")
def executor(realm: Realm) -> Rest:
    """The controller's own account, with the role executor alone."""
    return realm.rest(realm.home, ACCOUNT)


@pytest.fixture(scope="module")
def anna(realm: Realm) -> Rest:
    return realm.account("anna", "approver")


def forbidden(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ApiError, match=said) as refused_by:
        call()
    assert refused_by.value.status == 403, refused_by.value


def test_the_roles_of_the_controller_are_what_its_code_asks_for(realm: Realm) -> None:
    keda = [replace(step, autoscaler_kind="ScaledObject") for step in STEPS if isinstance(step, SetAutoscaler)]
    code = set(needed(replace(simple(), steps=(*STEPS, *keda), migration="all")))
    code |= set(needed(replace(simple(), target_kind="StatefulSet")))
    hearing = on(PLANS, "watch") | on("events", "create", "patch", group="")
    assert ROLES["executor"] | MIGRATIONS | AUTOSCALERS == code | hearing
    assert ROLES["scheduler"] == set(DECIDING)
    leader = on("leases", "create", "get", "update", group="coordination.k8s.io")
    assert rights_of(realm.rest(realm.home, ACCOUNT), realm.home) == leader | ABOUT_ONESELF


@pytest.mark.parametrize("role", ROLES)
def test_each_role_allows_exactly_this(realm: Realm, role: str) -> None:
    rest = realm.account(f"has-{role}", role)
    assert rights_of(rest, realm.namespace) == ROLES[role] | ABOUT_ONESELF
    assert rights_of(rest, realm.home) == ABOUT_ONESELF
    for right in ROLES[role]:
        assert may(rest, realm.namespace, right), right
        assert not may(rest, realm.home, right), right
    # Spark's driver makes pods and their settings, retention removes plans; no other role of ours does.
    for right in set(FORBIDDEN) - (ROLES[role] if role in ("spark", "retention") else set()):
        assert not may(rest, realm.namespace, right), right
    others = set().union(*ROLES.values()) - ROLES[role]
    assert not [right for right in others if may(rest, realm.namespace, right)]


def test_the_page_says_what_the_server_answers_each_role(realm: Realm) -> None:
    """Red when a role changes and the page does not: python -m tests.rights_matrix measures and writes it anew."""
    accounts = {role: realm.account(f"asks-{role}", role) for role in rights_matrix.ROLES}
    assert rights_matrix.measured(accounts, realm.namespace) == rights_matrix.written()
    assert accounts.keys() == ROLES.keys()


def test_a_secret_is_read_by_none_of_them(realm: Realm, executor: Rest, anna: Rest) -> None:
    path = f"/api/v1/namespaces/{realm.namespace}/secrets"
    realm.admin.create(path, {"metadata": {"name": "broker"}, "stringData": {"password": "p"}})
    for rest in (executor, anna):
        for call in (path, f"{path}/broker"):
            forbidden(lambda rest=rest, call=call: rest.get(call), "secrets")


def test_what_occurs_again_is_one_event_with_a_count(realm: Realm) -> None:
    """Red when the executor may not count, or makes an object for each occurrence."""
    realm.plan("counted")
    token = realm.cluster.token(realm.home, ACCOUNT)
    with RolloutApi.connect(realm.cluster.kubeconfig_for(token, "counting")) as api:
        stored = ClusterPlans(api, realm.namespace).read("counted")
        assert stored is not None
        events = ClusterEvents(api, realm.namespace, lambda: datetime.now(UTC))
        for _ in range(3):
            events.record(stored, "StepBegun", "start 2 consumers")
    found = realm.admin.get(f"/api/v1/namespaces/{realm.namespace}/events")["items"]
    counts = {one["involvedObject"]["name"]: one["count"] for one in found if one["reason"] == "StepBegun"}
    assert counts == {"counted": 3, APP: 3}
    assert len([one for one in found if one["reason"] == "StepBegun"]) == 2
    shown = realm.cluster.kubectl("describe", "deployment", APP, "-n", realm.namespace)
    assert re.search(r"StepBegun +\S+ \(x3 over \S+\) +consumer-planner +plan counted: start 2 consumers", shown)


def note(**annotations: str | None) -> Json:
    return {
        "metadata": {
            "annotations": {f"consumerplanner.dev/{key.replace('_', '-')}": annotations[key] for key in annotations}
        }
    }


def approver_of(found: Json) -> str | None:
    name: str | None = found["metadata"]["annotations"].get(APPROVED_BY_ANNOTATION)
    return name


def test_one_line_approves_and_the_server_writes_by_whom(realm: Realm, anna: Rest) -> None:
    path = realm.plan("one-line")
    found = anna.patch(path, note(approve="sha256:1"), MERGE)
    assert approver_of(found) == f"system:serviceaccount:{realm.namespace}:anna"


def test_whoever_approves_next_is_named_next(realm: Realm, anna: Rest) -> None:
    path = realm.plan("twice")
    anna.patch(path, note(approve="sha256:1"), MERGE)
    other = realm.account("bert", "approver").patch(path, note(approve="sha256:2"), MERGE)
    assert approver_of(other) == f"system:serviceaccount:{realm.namespace}:bert"


def test_a_name_that_is_not_the_own_one_is_refused(realm: Realm, anna: Rest) -> None:
    path = realm.plan("forged")
    told = "set together with the approval, in the own name"
    forbidden(lambda: anna.patch(path, note(approve="sha256:1", approved_by="the-boss"), MERGE), told)
    forbidden(lambda: anna.patch(path, note(approved_by="the-boss"), MERGE), told)
    anna.patch(path, note(approve="sha256:1"), MERGE)
    forbidden(lambda: anna.patch(path, note(approved_by="the-boss"), MERGE), told)
    forbidden(lambda: anna.patch(path, note(approved_by=None), MERGE), told)
    forbidden(lambda: anna.patch(path, note(approve=None, approved_by="the-boss"), MERGE), told)
    anna.patch(path, note(approve=None), MERGE)
    forbidden(lambda: realm.admin.patch(path, note(approve="sha256:1", approved_by="anna"), MERGE), told)
    anna.patch(path, note(approved_by=None), MERGE)


def test_who_makes_a_plan_cannot_name_an_approver(realm: Realm) -> None:
    rest = realm.account("paul", "planner")
    document = PLAN.document(simple(), "named", realm.namespace)
    document["metadata"]["annotations"][APPROVED_BY_ANNOTATION] = "the-boss"
    forbidden(lambda: rest.create(realm.plans, document), "in the own name")
    document["metadata"]["annotations"] = {
        **document["metadata"]["annotations"],
        APPROVE_ANNOTATION: PLAN.digest(simple()),
        APPROVED_BY_ANNOTATION: f"system:serviceaccount:{realm.namespace}:paul",
    }
    forbidden(lambda: rest.create(realm.plans, document), "takes the verb approve")


@pytest.fixture(scope="module")
def paula(realm: Realm) -> Rest:
    """Somebody who may change plans, by a role of her own, and not approve them."""
    rest = realm.account("paula")
    rule = {"apiGroups": [GROUP], "resources": [PLANS], "verbs": ["get", "patch"]}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{realm.namespace}/roles"
    realm.admin.create(path, {"metadata": {"name": "changes-plans"}, "rules": [rule]})
    realm.bind("changes-plans", "paula", {"kind": "ServiceAccount", "name": "paula", "namespace": realm.namespace})
    realm.await_rights(rest, on(PLANS, "get", "patch"))
    return rest


@pytest.mark.parametrize("asked", [{"approve": "sha256:1"}, {"confirm": "set the offsets of billing"}, {"answer": "3"}])
def test_who_may_change_plans_but_not_approve_them_cannot(realm: Realm, paula: Rest, asked: dict[str, str]) -> None:
    (key,) = asked
    path = realm.plan(f"changed-{key}")
    forbidden(lambda: paula.patch(path, note(**asked), MERGE), "takes the verb approve")
    assert paula.patch(path, note(other="3"), MERGE)["metadata"]["annotations"]["consumerplanner.dev/other"] == "3"


def test_the_controller_cannot_approve_either(realm: Realm, executor: Rest) -> None:
    """Two policies refuse to let it confirm or answer: which of them the server names is chance."""
    path = realm.plan("by-executor")
    forbidden(lambda: executor.patch(path, note(approve="sha256:1"), MERGE), "takes the verb approve")
    for asked in (note(confirm="set the offsets of billing"), note(answer="3")):
        forbidden(
            lambda asked=asked: executor.patch(path, asked, MERGE),  # type: ignore[misc]
            "takes the verb approve|the controller changes the finalizer",
        )
    status = {**realm.admin.get(path), "status": dump_status(RolloutStatus())}
    status["metadata"]["annotations"][APPROVE_ANNOTATION] = "sha256:1"
    executor.call("PUT", f"{path}/status", status)
    assert APPROVE_ANNOTATION not in realm.admin.get(path)["metadata"]["annotations"], "no way around by the status"


def test_who_makes_a_plan_cannot_let_its_questions_pass_beforehand(realm: Realm, anna: Rest) -> None:
    rest = realm.account("olga", "planner")
    document = PLAN.document(simple(), "with-answers", realm.namespace)
    for asked in ("answer", "confirm"):
        document["metadata"]["annotations"][f"consumerplanner.dev/{asked}"] = "3"
        forbidden(lambda: rest.create(realm.plans, document), "takes the verb approve")
        del document["metadata"]["annotations"][f"consumerplanner.dev/{asked}"]
    path = f"{realm.plans}/{rest.create(realm.plans, document)['metadata']['name']}"
    given = anna.patch(path, note(answer="3", confirm="3"), MERGE)["metadata"]["annotations"]
    assert {"consumerplanner.dev/answer", "consumerplanner.dev/confirm"} <= given.keys()
    anna.patch(path, note(answer=None, confirm=None), MERGE)


def test_with_the_role_auto_the_controller_approves_in_its_own_name(realm: Realm, executor: Rest) -> None:
    path = realm.plan("auto")
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": realm.home}
    realm.bind("consumer-planner-auto", "auto-for-a-while", subject)
    realm.await_rights(executor, ROLES["auto"])
    found = executor.patch(path, note(approve="sha256:1"), MERGE)
    assert approver_of(found) == f"system:serviceaccount:{realm.home}:{ACCOUNT}"
    realm.cluster.kubectl("delete", "rolebinding", "auto-for-a-while", "-n", realm.namespace)


def test_planner_approve_names_the_approver_also_where_no_server_does(realm: Realm, anna: Rest) -> None:
    token = realm.cluster.token(realm.namespace, "anna")
    kubeconfig: Path = realm.cluster.kubeconfig_for(token, f"{realm.namespace}-anna")
    realm.cluster.kubectl("delete", "mutatingadmissionpolicybinding", "consumer-planner-approver")
    try:
        _approve_without_help(realm, anna, kubeconfig)
    finally:
        realm.cluster.apply(*documents("admission/approver"), namespace="default")
        realm.cluster.wait_until("a server that names approvers", lambda: names_approvers(realm, anna))


def names_approvers(realm: Realm, anna: Rest) -> bool:
    path = f"{realm.plans}/by-command"
    try:
        anna.call("PATCH", path, note(approve="sha256:2"), kind=MERGE, query={"dryRun": "All"})
    except ApiError as error:
        assert error.status in (403, 503), error
        return False
    return True


def _approve_without_help(realm: Realm, anna: Rest, kubeconfig: Path) -> None:
    path = realm.plan("by-command")

    def is_refused() -> bool:
        try:
            found = anna.patch(path, note(approve="sha256:1"), MERGE)
        except ApiError as error:
            assert "planner approve does so" in str(error)
            return True
        anna.patch(path, note(approve=None, approved_by=None), MERGE)
        assert approver_of(found), "until the server has heard that the binding is gone"
        return False

    realm.cluster.wait_until("a server that names nobody", is_refused)
    words = ("approve", "by-command", "--namespace", realm.namespace, "--kubeconfig", kubeconfig)
    refused(planner(*words, "--digest", "sha256:0"), 2, "not sha256:0")
    done = planner(*words)
    assert done.returncode == 0, done.stderr
    name = f"system:serviceaccount:{realm.namespace}:anna"
    assert f"Approved by {name}" in done.stdout
    assert approver_of(realm.admin.get(path)) == name
    assert "Approved already" in planner(*words).stdout
    refused(
        planner("approve", "no-such", "--namespace", realm.namespace, "--kubeconfig", kubeconfig),
        2,
        "there is no plan no-such",
    )
    with RolloutApi.connect(realm.cluster.kubeconfig) as api:
        document = PLAN.document(simple(), "created", realm.namespace)
        document["metadata"]["annotations"][APPROVE_ANNOTATION] = PLAN.digest(simple())
        stored = ClusterPlans(api, realm.namespace).create(document)
    assert stored.requests.approval is not None
    assert stored.requests.approval.by == "admin"


DEPLOYMENT_EDITS: dict[str, Json] = {
    "a label": {"metadata": {"labels": {"team": "other"}}},
    "an annotation": {"metadata": {"annotations": {"team": "other"}}},
    "a finalizer": {"metadata": {"finalizers": ["example.org/stay"]}},
    "pausing": {"spec": {"paused": True}},
    "a history limit": {"spec": {"revisionHistoryLimit": 1}},
    "an image": {"spec": {"template": {"metadata": {"annotations": {"image": "mine"}}}}},
    "update limits": {"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}},
}


@pytest.mark.parametrize("edit", DEPLOYMENT_EDITS)
def test_of_a_deployment_the_controller_changes_no_more_than_replicas(realm: Realm, executor: Rest, edit: str) -> None:
    forbidden(
        lambda: executor.patch(realm.app, DEPLOYMENT_EDITS[edit], MERGE), "the controller changes|of a Deployment"
    )


@pytest.fixture(scope="module")
def thief(realm: Realm) -> Rest:
    """Another account, with the controller's roles: whoever bound them did not name it as the policies would."""
    return realm.account("thief", "executor", "autoscalers")


@pytest.mark.parametrize("edit", DEPLOYMENT_EDITS)
def test_the_same_roles_give_another_account_no_more(realm: Realm, thief: Rest, edit: str) -> None:
    forbidden(lambda: thief.patch(realm.app, DEPLOYMENT_EDITS[edit], MERGE), "the controller changes|of a Deployment")


def test_another_account_with_the_controllers_roles_scales_and_claims(realm: Realm, thief: Rest) -> None:
    thief.patch(realm.app, {"spec": {"replicas": 2}, **note(rollout="p/u 0")}, MERGE)
    forbidden(lambda: thief.patch(realm.app, DEPLOYMENT_EDITS["an image"], MERGE), "with the verb updatetemplate")
    thief.patch(realm.app, {"spec": {"replicas": 1}, **note(rollout=None)}, MERGE)
    pods = f"/api/v1/namespaces/{realm.namespace}/pods"
    name = realm.admin.get(pods)["items"][0]["metadata"]["name"]
    forbidden(lambda: thief.patch(f"{pods}/{name}", {"metadata": {"labels": {"app": "mine"}}}, MERGE), "deletion cost")
    path = f"/apis/autoscaling/v2/namespaces/{realm.namespace}/horizontalpodautoscalers"
    realm.admin.create(path, {**scaler(HPA), "metadata": {"name": "other"}})
    edit: Json = {"metadata": {"labels": {"team": "mine"}}}
    forbidden(lambda: thief.patch(f"{path}/other", edit, MERGE), "not metadata labels")
    realm.admin.delete(f"{path}/other")


def test_of_a_stateful_set_the_controller_changes_its_count_alone(realm: Realm, executor: Rest) -> None:
    """Red without the admission policy: who may patch a template can have its pods read every Secret."""
    sets = f"/apis/apps/v1/namespaces/{realm.namespace}/statefulsets"
    realm.admin.create(sets, stateful_set("numbered", 0))
    path = f"{sets}/numbered"
    claim = {"metadata": {"annotations": {"consumerplanner.dev/rollout": "p/u/0"}}}
    executor.patch(path, {**claim, "spec": {"replicas": 1}}, MERGE)
    image = {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}
    edits: list[Json] = [
        {"spec": image},
        {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["a.b/c"]}},
    ]
    for edit in edits:
        forbidden(lambda edit=edit: executor.patch(path, edit, MERGE), "the controller changes")
    forbidden(lambda: executor.create(sets, stateful_set("more", 0)), "create")
    forbidden(lambda: executor.delete(path), "delete")
    realm.admin.delete(path)


@pytest.mark.parametrize("kind", ["Rollout", "CloneSet"])
def test_of_a_target_of_another_kind_the_controller_changes_its_count_alone(realm: Realm, kind: str) -> None:
    """Red without the admission policy: who may patch a template can have its pods read every Secret."""
    names = realm.cluster.define(definition(kind))
    scaling = realm.account(f"scaling-{kind.lower()}", "executor", "scale")
    path = path_of(kind, realm.namespace)
    realm.admin.create(path, target(kind, 0))
    claim = {"metadata": {"annotations": {"consumerplanner.dev/rollout": "p/u/0"}}}
    edits: list[Json] = [
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}},
        {"spec": {"paused": True}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["a.b/c"]}},
        {"data": "another field"},
    ]
    scaling.patch(f"{path}/app", {**claim, "spec": {"replicas": 1}}, MERGE)
    scaling.get(f"{path}/app/scale")
    for edit in edits:
        forbidden(lambda edit=edit: scaling.patch(f"{path}/app", edit, MERGE), "the controller changes")
    forbidden(lambda: scaling.patch(f"{path}/app/scale", {"spec": {"replicas": 2}}, MERGE), "patch")
    forbidden(lambda: scaling.delete(f"{path}/app"), "delete")
    realm.admin.delete(f"{path}/app")
    realm.cluster.kubectl("delete", "--wait=false", *names)


def test_an_account_that_may_update_deployments_by_another_role_is_not_held_back(realm: Realm) -> None:
    rest = realm.account("ops", "executor")
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["update"]}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{realm.namespace}/roles"
    realm.admin.create(path, {"metadata": {"name": "operates"}, "rules": [rule]})
    realm.bind("operates", "operates", {"kind": "ServiceAccount", "name": "ops", "namespace": realm.namespace})
    realm.await_rights(rest, on("deployments", "update", group="apps"))
    for team in ("other", None):
        rest.patch(realm.app, {"metadata": {"annotations": {"team": team}}}, MERGE)


@pytest.mark.parametrize(
    "name", ["kube-scheduler", "consumerplanner-shop", "consumerplanner-0123456789abcdef0", "node-1"]
)
def test_of_leases_only_the_planners_own_are_written(realm: Realm, executor: Rest, thief: Rest, name: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{realm.namespace}/leases"
    for rest in (executor, thief):
        forbidden(lambda rest=rest: rest.create(path, {"metadata": {"name": name}}), f"not {name}")
    made = realm.admin.create(path, {"metadata": {"name": name}, "spec": {"holderIdentity": "somebody"}})
    for rest in (executor, thief):
        mine = {**made, "spec": {"holderIdentity": "mine"}}
        forbidden(lambda rest=rest, mine=mine: rest.call("PUT", f"{path}/{name}", mine), f"not {name}")  # type: ignore[misc]
    realm.admin.delete(f"{path}/{name}")
    own = lease_name(GroupRef("rocketmq", "c", name))
    executor.call("PUT", f"{path}/{own}", executor.create(path, {"metadata": {"name": own}}))
    realm.admin.delete(f"{path}/{own}")


def test_replicas_and_the_claim_are_the_controllers_to_change(realm: Realm, executor: Rest) -> None:
    changed = executor.patch(realm.app, {"spec": {"replicas": 2}, **note(rollout="p/u 0")}, MERGE)
    assert (changed["spec"]["replicas"], changed["metadata"]["annotations"][CLAIM]) == (2, "p/u 0")
    back = executor.patch(realm.app, {"spec": {"replicas": 1}, **note(rollout=None)}, MERGE)
    assert CLAIM not in back["metadata"]["annotations"]


def test_what_others_change_is_no_business_of_these_policies(realm: Realm) -> None:
    for undo in ("other", None):
        realm.admin.patch(realm.app, {"metadata": {"annotations": {"team": undo}}}, MERGE)


def test_a_template_is_changed_only_for_a_plan_that_updates_one(realm: Realm, executor: Rest) -> None:
    image = DEPLOYMENT_EDITS["an image"]
    simple_plan, update_plan = realm.plan("scales"), realm.plan("updates", updating())
    uid = realm.admin.get(update_plan)["metadata"]["uid"]
    executor.patch(realm.app, note(rollout=f"updates/{uid} 0"), MERGE)
    forbidden(lambda: executor.patch(realm.app, image, MERGE), "verb updatetemplate")
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": realm.home}
    realm.bind("consumer-planner-migrations", "migrations-for-a-while", subject)
    realm.await_rights(executor, MIGRATIONS)

    def is_allowed() -> bool:
        try:
            executor.patch(realm.app, image, MERGE)
        except ApiError as error:
            assert error.status == 403, error
            return False
        return True

    realm.cluster.wait_until("the server's hearing of the plan", is_allowed)
    uid = realm.admin.get(simple_plan)["metadata"]["uid"]
    executor.patch(realm.app, note(rollout=f"scales/{uid} 0"), MERGE)
    other = {"spec": {"template": {"metadata": {"annotations": {"image": "another"}}}}}
    # Until the server has heard of that plan, claim and verb are all that it asks for.
    realm.cluster.wait_until("its hearing of the plan that scales", lambda: is_held_back(realm, executor, other))
    forbidden(lambda: executor.patch(realm.app, other, MERGE), "no step that updates a template")
    executor.patch(realm.app, note(rollout=None), MERGE)
    forbidden(lambda: executor.patch(realm.app, other, MERGE), "that a plan has claimed")

    made = f"/apis/apps/v1/namespaces/{realm.namespace}/deployments"
    told = "without replicas that a plan has claimed"
    claimed = {**deployment("green", 0), "metadata": {"name": "green", **note(rollout="updates/u 0")["metadata"]}}
    for wrong in (deployment("green", 0), {**claimed, "spec": deployment("green", 1)["spec"]}):
        forbidden(lambda wrong=wrong: executor.create(made, wrong), told)
    executor.create(made, claimed)
    executor.delete(f"{made}/green")
    forbidden(lambda: executor.delete(realm.app), told)
    realm.cluster.kubectl("delete", "rolebinding", "migrations-for-a-while", "-n", realm.namespace)


def test_of_a_pod_the_controller_changes_the_deletion_cost_alone(realm: Realm, executor: Rest) -> None:
    realm.cluster.await_available(realm.namespace, APP)
    pods = realm.admin.get(f"/api/v1/namespaces/{realm.namespace}/pods")["items"]
    name = next(one["metadata"]["name"] for one in pods if "deletionTimestamp" not in one["metadata"])
    path = f"/api/v1/namespaces/{realm.namespace}/pods/{name}"
    executor.patch(path, {"metadata": {"annotations": {COST: "-5"}}}, MERGE)
    executor.patch(path, {"metadata": {"annotations": {COST: None}}}, MERGE)
    wrong: list[Json] = [
        {"metadata": {"annotations": {"team": "other"}}},
        {"metadata": {"labels": {"app": "other"}}},
        {"metadata": {"ownerReferences": None}},
    ]
    for edit in wrong:
        forbidden(lambda edit=edit: executor.patch(path, edit, MERGE), "deletion cost only")
    image = {"spec": {"containers": [{"name": "main", "image": "mine"}]}}
    forbidden(lambda: executor.patch(path, image, STRATEGIC), "deletion cost only")


SLOW: Json = {"scaleUp": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
WILD: Json = {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 900, "periodSeconds": 1}]}}
HPA, KEDA = "HorizontalPodAutoscaler", "ScaledObject"
OF_BOTH: dict[str, Json] = {
    "scaleTargetRef": {"spec": {"scaleTargetRef": {"name": "coredns"}}},
    "labels": {"metadata": {"labels": {"team": "other"}}},
    "annotations team": {"metadata": {"annotations": {"team": "other"}}},
    "annotations owner": {"metadata": {"annotations": {"owner": None}}},
    "finalizers": {"metadata": {"finalizers": ["example.org/stay"]}},
    "ownerReferences": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "1"}]}
    },
}
SCALER_EDITS: list[tuple[AutoscalerKind, str, Json]] = [
    *((kind, told, edit) for kind in RESOURCES for told, edit in OF_BOTH.items()),
    (HPA, "metrics", {"spec": {"metrics": None}}),
    (HPA, "writes no other behavior", {"spec": {"behavior": WILD}}),
    (HPA, "writes no other behavior", {"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 9}}}}),
    (HPA, "writes no other behavior", note(behavior_before=json.dumps(WILD))),
    (
        HPA,
        "writes no other behavior",
        {
            **note(behavior_before=json.dumps(WILD)),
            "spec": {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}},
        },
    ),
    (KEDA, "triggers", {"spec": {"triggers": [{"type": "external"}]}}),
    (KEDA, "advanced", {"spec": {"advanced": {"restoreToOriginalReplicaCount": True}}}),
    (KEDA, "advanced", {"spec": {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": WILD}}}}),
    (KEDA, "fallback", {"spec": {"fallback": {"failureThreshold": 1, "replicas": 900}}}),
    (KEDA, "idleReplicaCount", {"spec": {"idleReplicaCount": 0}}),
    (KEDA, "pollingInterval", {"spec": {"pollingInterval": 1}}),
    (KEDA, "cooldownPeriod", {"spec": {"cooldownPeriod": None}}),
    (KEDA, "status", {"status": {"scaleTargetKind": "apps/v1.StatefulSet"}}),
    (KEDA, "paused to true", {"metadata": {"annotations": {KEDA_PAUSED: "false"}}}),
    (
        KEDA,
        "annotations autoscaling.keda.sh/paused-replicas",
        {"metadata": {"annotations": {f"{KEDA_PAUSED}-replicas": "0"}}},
    ),
]


@dataclass(frozen=True)
class Scalers:
    """An HPA and a ScaledObject under the controller's account: its own requests, and the planner's code."""

    realm: Realm
    rest: Rest
    api: RolloutApi

    def path(self, kind: AutoscalerKind) -> str:
        group, version, plural = RESOURCES[kind]
        return f"/apis/{group}/{version}/namespaces/{self.realm.namespace}/{plural}/{kind.lower()}"

    def get(self, kind: AutoscalerKind) -> Json:
        return self.realm.admin.get(self.path(kind))

    def attempt(self, kind: AutoscalerKind, edit: Json) -> Json:
        """Ask whether an edit by hand would be taken; nothing is kept."""
        return self.rest.call("PATCH", self.path(kind), edit, kind=MERGE, query={"dryRun": "All"})

    def bring(self, kind: AutoscalerKind, state: AutoscalerState) -> Json:
        """Bring one into a state as a plan's step does; return it."""
        version = self.get(kind)["metadata"]["resourceVersion"]
        effect = SetScaler(kind.lower(), kind, state, Claim("plan/uid", 2), version)
        set_scaler(self.api, self.realm.namespace, effect)
        return self.get(kind)


def scaler(kind: AutoscalerKind, behavior: Json | None = None) -> Json:
    group, version, _ = RESOURCES[kind]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "elsewhere"}
    if kind == HPA:
        use = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        spec = {"minReplicas": 1, "maxReplicas": 4, "metrics": [{"type": "Resource", "resource": use}]}
        spec |= {"behavior": behavior} if behavior else {}
    else:
        spec = {"maxReplicaCount": 4, "cooldownPeriod": 300, "triggers": [{"type": "cron"}]}
    meta = {"name": kind.lower(), "annotations": {"owner": "shop"}}
    return {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": meta,
        "spec": {"scaleTargetRef": target, **spec},
    }


@pytest.fixture(scope="module")
def scalers(realm: Realm, executor: Rest) -> Iterator[Scalers]:
    names = realm.cluster.define(crd())
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": realm.home}
    realm.bind("consumer-planner-autoscalers", "autoscalers-for-a-while", subject)
    realm.await_rights(executor, AUTOSCALERS)
    kubeconfig = realm.cluster.kubeconfig_for(realm.cluster.token(realm.home, ACCOUNT), f"{realm.home}-scalers")
    with RolloutApi.connect(kubeconfig) as api:
        found = Scalers(realm, executor, api)
        for kind in RESOURCES:
            realm.admin.create(found.path(kind).rpartition("/")[0], scaler(kind, SLOW))
        yield found
    for kind in RESOURCES:
        realm.admin.delete(found.path(kind))
    realm.cluster.kubectl("delete", "rolebinding", "autoscalers-for-a-while", "-n", realm.namespace)
    realm.cluster.kubectl("delete", "--wait=true", *names)


@pytest.mark.parametrize(("kind", "told", "edit"), SCALER_EDITS)
def test_of_an_autoscaler_the_controller_changes_nothing_that_the_planner_does_not_set(
    scalers: Scalers, kind: AutoscalerKind, told: str, edit: Json
) -> None:
    forbidden(lambda: scalers.attempt(kind, edit), told)


FREE, STILL, PINNED = (
    AutoscalerState(1, 4, is_paused=False),
    AutoscalerState(1, 6, is_paused=True),
    AutoscalerState(3, 3, is_paused=False),
)


@pytest.mark.parametrize("kind", RESOURCES)
def test_the_controller_pauses_an_autoscaler_sets_its_bounds_and_hands_it_back(
    scalers: Scalers, kind: AutoscalerKind
) -> None:
    """Each state that a plan sets, by the planner's own code under the controller's account."""
    before = scalers.get(kind)["spec"]
    for state in (STILL, STILL, PINNED, STILL, FREE):
        found = scalers.bring(kind, state)
        assert read_state(found) == state
    after = scalers.get(kind)
    assert {**after["spec"], "minReplicaCount": 1} == {**before, "minReplicaCount": 1}
    assert after["metadata"]["annotations"] == {"owner": "shop", SET_BY: "plan/uid/2"}


def read_state(found: Json) -> AutoscalerState:
    read = (hpas_of if found["kind"] == HPA else scaled_objects_of)({"metadata": {"name": "elsewhere"}}, [found])
    return AutoscalerState(read[0].minimum, read[0].maximum, read[0].is_paused)


BEHAVIORS: list[Json | None] = [
    None,
    SLOW,
    {"scaleDown": {"selectPolicy": "Disabled"}},
    {"scaleDown": {"stabilizationWindowSeconds": 7}, "scaleUp": {"tolerance": "50m"}},
    {
        "scaleDown": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}]},
        "scaleUp": {
            "policies": [
                {"type": "Percent", "value": 10, "periodSeconds": 60},
                {"type": "Pods", "value": 4, "periodSeconds": 1800},
            ],
            "selectPolicy": "Min",
            "stabilizationWindowSeconds": 0,
        },
    },
]


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_a_paused_hpa_gets_its_own_behavior_back_and_no_other(scalers: Scalers, behavior: Json | None) -> None:
    """Red where the policy's words for a behavior are not those in which the planner keeps it."""
    realm, path = scalers.realm, scalers.path(HPA)
    realm.admin.patch(path, {"spec": {"behavior": None}}, MERGE)
    own = realm.admin.patch(path, {"spec": {"behavior": behavior}}, MERGE)["spec"]
    scalers.bring(HPA, STILL)
    gone: Json = note(behavior_before=None)
    for edit in (gone, {"spec": {"behavior": WILD}}, {**gone, "spec": {"behavior": WILD}}):
        forbidden(lambda edit=edit: scalers.attempt(HPA, edit), "writes no other behavior")
    assert scalers.bring(HPA, FREE)["spec"] == own


def test_of_a_plan_the_controller_changes_neither_spec_nor_what_people_ask(realm: Realm, executor: Rest) -> None:
    path = realm.plan("asked")
    told = "the finalizer, the approval and the status only"
    for edit in [note(abort="true"), note(pause="true"), {"metadata": {"labels": {"a": "b"}}}]:
        forbidden(lambda edit=edit: executor.patch(path, edit, MERGE), told)
    with pytest.raises(ApiError, match="a plan is never changed") as refused_by:
        executor.patch(path, {"spec": {"reason": "another"}}, MERGE)
    assert refused_by.value.status == 422
    executor.patch(path, {"metadata": {"finalizers": [CLAIM]}}, MERGE)
    executor.patch(path, {"metadata": {"finalizers": []}}, MERGE)


@pytest.mark.parametrize("name", ["approval", "executor"])
def test_the_server_finds_no_fault_in_the_expressions_of_the_policies(realm: Realm, name: str) -> None:
    for one in documents(f"admission/{name}"):
        if one["kind"] == "ValidatingAdmissionPolicy":
            path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{one['metadata']['name']}"
            checked = realm.cluster.wait_until("its check", lambda path=path: realm.admin.get(path).get("status"))
            assert not (checked.get("typeChecking") or {}).get("expressionWarnings"), checked
