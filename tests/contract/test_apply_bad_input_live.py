"""Bad input to ``planner apply``, against a real API server: one sentence, its exit code, and nothing half-applied."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.cli import rollouts
from planner.documents.approve import approved
from planner.documents.format import digest_of
from planner.documents.plan import DIGEST_ANNOTATION, PLAN
from planner.sources.kubernetes import KubernetesApi
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError
from tests.faults.group import NamespaceGroup
from tests.faults.kinds import RELOCATED, RENEWED, UP, Kind
from tests.faults.place import APP, CLAIM, Place, place
from tests.unit.cli.test_cli import Found, planner, refused

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

ADMISSION = Path(__file__).parents[2] / "k8s" / "admission" / "approval.yaml"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def shop(control_plane_with_plans: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Consumers that no plan in this module may touch."""
    with place(control_plane_with_plans, tmp_path_factory.mktemp("bad"), UP.replicas) as made:
        yield made


@pytest.fixture(autouse=True)
def group(shop: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[NamespaceGroup]:
    """The stand-in for the group."""
    with KubernetesApi.connect(shop.cluster.kubeconfig) as api:
        made = NamespaceGroup(api)
        monkeypatch.setattr(rollouts, "live_groups", lambda: made)
        yield made


@pytest.fixture(autouse=True)
def _untouched(shop: Place) -> Iterator[None]:
    """Whatever was asked: the Deployment is as it was, and nobody has claimed it."""
    before = shop.deployment()
    yield
    after = shop.deployment()
    assert before is not None
    assert after is not None
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    assert CLAIM not in after["metadata"]["annotations"]


def document(shop: Place, name: str, change: Callable[[Document], None] = lambda _: None) -> Path:
    """Return an approved plan file with a change that its digest does not know of."""
    made = approved(PLAN.document(shop.fitting(UP.steps(shop.ready_pods())), name, shop.namespace))
    whole = json.loads(json.dumps(made))
    change(whole)
    path = shop.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return path


def apply(shop: Place, path: Path, *more: object) -> Found:
    return planner("apply", path, *more, *([] if "--kubeconfig" in more else ["--kubeconfig", shop.cluster.kubeconfig]))


def edited(whole: Document) -> None:
    whole["spec"]["steps"][0]["toReplicas"] = 9


def unknown_step(whole: Document) -> None:
    whole["spec"]["steps"][0]["kind"] = "danceConsumers"


def newer(whole: Document) -> None:
    whole["apiVersion"] = "consumerplanner.dev/v2"


def foreign_kind(whole: Document) -> None:
    whole["kind"] = "Deployment"


def nameless(whole: Document) -> None:
    del whole["metadata"]["name"]


def stepless(whole: Document) -> None:
    whole["spec"]["steps"] = []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edited, "it was edited after it was made"),
        (unknown_step, "it was edited after it was made"),
        (stepless, "it was edited after it was made"),
        (newer, "v2"),
        (foreign_kind, "Deployment"),
        (nameless, "metadata.name"),
    ],
)
def test_a_broken_plan_is_refused_before_anything_is_sent(
    shop: Place, change: Callable[[Document], None], says: str
) -> None:
    refused(apply(shop, document(shop, "broken", change)), 2, says)
    assert shop.plan("broken") is None


def test_a_file_that_is_missing_or_no_yaml_is_refused(shop: Place) -> None:
    refused(apply(shop, shop.folder / "nobody.yaml"), 2, "does not exist")
    path = shop.folder / "noise.yaml"
    path.write_text("{ a plan: [", encoding="utf-8")
    refused(apply(shop, path), 2, "noise.yaml")


def redigested(shop: Place, name: str, change: Callable[[Document], None]) -> Path:
    """Return a plan file whose digest and approval fit its content, whatever that is."""

    def both(whole: Document) -> None:
        change(whole)
        digest = digest_of(whole["spec"])
        whole["metadata"]["annotations"] = {DIGEST_ANNOTATION: digest, "consumerplanner.dev/approve": digest}

    return document(shop, name, both)


@pytest.mark.parametrize("change", [unknown_step, stepless])
def test_a_step_that_we_do_not_know_is_refused_even_with_a_digest_that_fits(
    shop: Place, change: Callable[[Document], None]
) -> None:
    refused(apply(shop, redigested(shop, "unknown", change)), 2, "steps")
    assert shop.plan("unknown") is None


def test_an_approval_of_another_digest_is_none(shop: Place) -> None:
    def other(whole: Document) -> None:
        whole["metadata"]["annotations"]["consumerplanner.dev/approve"] = "sha256:other"

    found = apply(shop, document(shop, "unapproved", other))
    assert found.returncode == 1
    assert "names digest sha256:other" in found.stdout
    assert shop.status("unapproved")["phase"] == "Pending"


def answered(found: Found) -> dict[str, str]:
    """Return the refusals in the answer, code to sentence."""
    assert found.returncode == 1, found.stderr
    return {one["code"]: one["sentence"] for one in json.loads(found.stdout)["status"]["refusals"]}


def test_an_expired_plan_ends_as_expired(shop: Place) -> None:
    plan = shop.fitting(UP.steps(shop.ready_pods()))
    made = plan.made_at - timedelta(hours=2)
    plan = replace(plan, made_at=made, valid_until=made + timedelta(hours=1))
    found = apply(shop, shop.write("late", plan), "-o", "json")
    assert "was valid until" in answered(found)["Expired"]
    assert shop.status("late")["ended"] == "nothing"


def test_a_deployment_that_is_not_there_is_named(shop: Place) -> None:
    plan = replace(shop.fitting(UP.steps(shop.ready_pods())), deployment="nobody")
    found = apply(shop, shop.write("missing", plan), "-o", "json")
    assert answered(found)["DeploymentMissing"] == "there is no Deployment nobody"


def test_a_deployment_of_another_group_is_named(shop: Place, group: NamespaceGroup) -> None:
    group.changes["pods"] = tuple((member, f"other-{member}") for member in shop.ready_pods())
    plan = shop.fitting(UP.steps(shop.ready_pods()))
    found = apply(shop, shop.write("foreign", plan), "-o", "json")
    assert f"runs in Deployment {APP}; they run in other-" in answered(found)["ServesOtherGroup"]


def test_a_server_that_is_not_there_is_out_of_reach(shop: Place) -> None:
    nowhere = shop.cluster.kubeconfig_for("token", "nowhere", server="https://127.0.0.1:1")
    path = document(shop, "nowhere")
    refused(apply(shop, path, "--kubeconfig", nowhere), 3, "https://127.0.0.1:1 cannot be reached")
    refused(planner("status", "--namespace", shop.namespace, "--kubeconfig", nowhere), 3, "cannot be reached")
    refused(planner("abort", "nowhere", "--namespace", shop.namespace, "--kubeconfig", nowhere), 3, "cannot be reached")


def test_who_is_not_known_to_the_server_is_told_to_renew_the_token(shop: Place) -> None:
    stranger = shop.cluster.kubeconfig_for("token", "stranger")
    refused(apply(shop, document(shop, "stranger"), "--kubeconfig", stranger), 3, "renew the token")


def test_a_kubeconfig_that_is_missing_or_broken_is_bad_input(shop: Place) -> None:
    path = document(shop, "unreached")
    refused(apply(shop, path, "--kubeconfig", shop.folder / "none"), 2, "kubeconfig", "cannot be used")
    broken = shop.folder / "broken.kubeconfig"
    broken.write_text("{", encoding="utf-8")
    refused(apply(shop, path, "--kubeconfig", broken), 2, "kubeconfig", "cannot be used")


def test_a_namespace_that_is_not_there_is_named(shop: Place) -> None:
    refused(apply(shop, document(shop, "lost"), "--namespace", "nowhere"), 3, "nowhere")


@pytest.mark.parametrize(
    ("kind", "missing"), [(RENEWED, "patch deployments (apps)"), (RELOCATED, "create deployments (apps)")]
)
def test_a_right_that_is_missing_is_named_before_the_first_step(shop: Place, kind: Kind, missing: str) -> None:
    name = f"powerless-{kind.name}"
    kubeconfig = account(shop, name, ("consumerplanner.dev", "consumerrolloutplans", ["get", "list", "create"]))
    plan = shop.write(name, shop.fitting(kind.steps(shop.ready_pods())))
    found = once_allowed(shop, name, kubeconfig, lambda: apply(shop, plan, "--kubeconfig", kubeconfig))
    refused(found, 3, "missing", missing, "patch consumerrolloutplans (consumerplanner.dev)")
    assert "phase" not in shop.status(name), "nobody has begun it"


def account(shop: Place, name: str, *rules: tuple[str, str, list[str]]) -> Path:
    """Return a kubeconfig of an account of these rights alone."""
    kubeconfig = shop.cluster.service_account(shop.namespace, name)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs} for group, resource, verbs in rules],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": shop.namespace}],
    }
    shop.cluster.apply(role, binding, namespace=shop.namespace)
    return kubeconfig


def once_allowed(shop: Place, name: str, kubeconfig: Path, ask: Callable[[], Found]) -> Found:
    """Return the answer once the server goes by the account's role: its authorizer hears of it a moment later."""

    def allowed() -> Found | None:
        found = planner("status", "--namespace", shop.namespace, "--kubeconfig", kubeconfig)
        return None if "cannot" in found.stderr else ask()

    return shop.cluster.wait_until(f"the role {name}", allowed)


def test_who_may_not_approve_puts_no_approved_plan_into_the_cluster(shop: Place) -> None:
    policies = [one for one in yaml.safe_load_all(ADMISSION.read_text(encoding="utf-8")) if one]
    kubeconfig = account(
        shop, "executor", ("consumerplanner.dev", "consumerrolloutplans", ["get", "list", "create", "patch"])
    )
    path = document(shop, "self-approved")
    shop.cluster.apply(*policies, namespace="default")
    try:
        shop.cluster.wait_until("the admission policy", lambda: _is_denied(shop))
        found = once_allowed(shop, "executor", kubeconfig, lambda: apply(shop, path, "--kubeconfig", kubeconfig))
        refused(found, 3, "may not approve plans", "verb approve")
        assert shop.plan("self-approved") is None
    finally:
        for one in policies:
            shop.cluster.kubectl("delete", one["kind"].lower(), one["metadata"]["name"])
        shop.cluster.wait_until("the policy's end", lambda: not _is_denied(shop))


def _is_denied(shop: Place) -> bool:
    """True once the policy is in force: not even the administrator approves in nobody's name."""
    whole = yaml.safe_load(document(shop, "probe").read_text(encoding="utf-8"))
    whole["metadata"]["annotations"]["consumerplanner.dev/approved-by"] = "somebody"
    try:
        shop.cluster.rest.call("POST", shop.plans, whole, query={"dryRun": "All"})
    except ApiError as error:
        return error.status in (403, 422)
    return False
