"""Plans that somebody forged, on a real API server: none is approved without a person, none leaves its policy.

A plan is free text of whoever may create one. The attacks are those of a hostile review, each in the words of a plan.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.documents.approve import APPROVE_ANNOTATION, AUTHOR_ANNOTATION
from planner.documents.format import digest_of
from planner.documents.plan import DIGEST_ANNOTATION, PLAN
from planner.documents.policy import parse_policy
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import (
    AutoscalerState,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CreateDeployment,
    MovedQueues,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)
from planner.text.printable import printable
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import MERGE, ApiError, Json, Rest
from tests.contract.test_controller_live import Site, await_leader, site_on
from tests.pod_controllers import documents, grant, install, uninstall
from tests.pod_groups import GROUP, plan_for
from tests.step_builders import IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

APP, LIMIT_S, WAIT_S = "app", 300, 300.0
CHEAP = MovedQueues(0, 0)
"""What a forger writes into the forecast."""


@dataclass(frozen=True)
class Stage:
    """A controller that may approve by criteria, a policy that has them, and the accounts of both sides."""

    site: Site
    policy_digest: str
    planner: Rest
    mallory: Rest
    log: Path

    @property
    def plans(self) -> str:
        return f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.site.namespace}/consumerrolloutplans"

    def plan(self, steps: Sequence[Step], migration: str | None = None, **changes: Any) -> RolloutPlan:
        made = plan_for(APP, self.site.pods(), steps, migration)
        valid = {"policy_digest": self.policy_digest, "valid_until": made.made_at + timedelta(seconds=900)}
        forecast = replace(made.forecast, moved_queues=CHEAP)
        return replace(made, **{**valid, "forecast": forecast, **changes})

    def is_told(self, name: str, reason: str, part: str) -> bool:
        return any(part in sentence for sentence in self.site.events(name).get(reason, ()))


def account(site: Site, name: str, role: str) -> Rest:
    """Return the calls of a new service account with one of the roles for people."""
    cluster, namespace = site.cluster, site.namespace
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{name}-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"consumer-planner-{role}"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    cluster.rest.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    cluster.apply(*documents("rbac/plan-roles"), binding, namespace=namespace)
    return Rest(cluster.server, cluster.ca_file, cluster.token(namespace, name))


@pytest.fixture(scope="module")
def stage(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = install(control_plane)
    with site_on(control_plane, tmp_path_factory.mktemp("attacks")) as site:
        grant(control_plane, site.home, site.namespace, "auto-approver", "executor-migrations", "executor-autoscalers")
        policy = {
            "apiVersion": "consumerplanner.dev/v1alpha1",
            "kind": "ConsumerScalingPolicy",
            "metadata": {"name": "billing", "namespace": site.namespace},
            "spec": {
                "source": {
                    "system": GROUP.system,
                    "nameServers": ["127.0.0.1:1"],
                    "cluster": GROUP.cluster,
                    "group": GROUP.group,
                },
                "scaleTargetRef": {"name": APP},
                "minReplicas": 2,
                "maxReplicas": 4,
                "approval": {"mode": "Auto", "criteria": {"mostMovedQueues": 8}},
            },
        }
        control_plane.apply(policy, namespace=site.namespace)
        digest = parse_policy(json.dumps(policy), "policy").digest
        planner, mallory = account(site, "planner", "planner"), account(site, "mallory", "planner")
        named = f"system:serviceaccount:{site.namespace}:planner"
        controller = site.start("guard", "--planning-account", named)
        try:
            await_leader(site, [controller])
            yield Stage(site, digest, planner, mallory, controller.process.log)
        finally:
            assert controller.process.stop(300.0) == 0, controller.process.log_tail()
    uninstall(control_plane, made)


def up() -> tuple[Step, ...]:
    return (
        StartConsumers(2, 4, LIMIT_S, CHEAP, undo="set 2"),
        AwaitReady(4, LIMIT_S),
        AwaitSettled(4, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


STEERING = "g\x1b[2J\x9b1A\u202e\u2066\nApproved by admin <b>[bold]"
"""A group whose name clears the screen, turns the reading direction and writes a line of its own."""


def test_what_the_controller_says_of_a_hostile_group_steers_no_terminal(stage: Stage) -> None:
    """Its Event, its status and its log, as an API server and a file hand them on."""
    site, made = stage.site, stage.plan(up(), group=replace(GROUP, group=STEERING), reason=f"because {STEERING}")
    stage.mallory.create(stage.plans, PLAN.document(made, "steering", site.namespace))
    site.approve("steering", made)
    status = site.await_phase("steering", "Refused")
    told = [sentence for sentences in site.events("steering").values() for sentence in sentences]
    shown = r"g\x1b[2J\x9b1A\u202e\u2066\nApproved by admin <b>[bold]"
    assert any(shown in sentence for sentence in told), told
    assert [sentence for sentence in told if printable(sentence, keep="") != sentence] == []
    assert any(refusal["code"] == "OutsidePolicy" for refusal in status["refusals"])
    lines = stage.log.read_text(encoding="utf-8").splitlines()
    assert any("steering" in line for line in lines)
    assert [line for line in lines if printable(line, keep="") != line] == []


@pytest.mark.parametrize("name", ["g\x1b[2J", "g\x9b", "g\u202e", "<b>", "a\nb"])
def test_no_plan_has_a_name_that_steers_a_terminal(stage: Stage, name: str) -> None:
    document = PLAN.document(stage.plan(up()), "plain", stage.site.namespace)
    document["metadata"]["name"] = name
    with pytest.raises(ApiError, match="Invalid value") as refused:
        stage.mallory.create(stage.plans, document)
    assert refused.value.status == 422


FREE = AutoscalerState(1, 4, is_paused=False)
Forge = Callable[[Stage], RolloutPlan]
FORGED: tuple[tuple[str, Forge], ...] = (
    ("stops-all", lambda stage: stage.plan([StopConsumers(2, 0, (), LIMIT_S, CHEAP, undo="set 2")])),
    ("ten-thousand", lambda stage: stage.plan([StartConsumers(2, 10_000, LIMIT_S, CHEAP, undo="set 2")])),
    ("another-deployment", lambda stage: stage.plan(up(), deployment="coredns")),
    ("another-group", lambda stage: stage.plan(up(), group=replace(GROUP, group="payments"))),
    (
        "autoscaler-set-free",
        lambda stage: stage.plan(
            [SetAutoscaler("hpa", "HorizontalPodAutoscaler", FREE, AutoscalerState(1, 10_000, is_paused=False), 60)]
        ),
    ),
    (
        "valid-until-2099",
        lambda stage: stage.plan(up(), valid_until=stage.plan(up()).made_at.replace(year=2099)),
    ),
    (
        "stops-all-as-a-migration",
        lambda stage: stage.plan([StopConsumers(2, 0, (), LIMIT_S, CHEAP, undo="set 2")], "update"),
    ),
)


@pytest.mark.parametrize(("name", "forge"), FORGED, ids=[name for name, _ in FORGED])
def test_a_forged_plan_is_left_to_a_person_and_refused_even_where_he_approves(
    stage: Stage, name: str, forge: Forge
) -> None:
    site, made = stage.site, forge(stage)
    stage.mallory.create(stage.plans, PLAN.document(made, name, site.namespace))
    mallory = f"system:serviceaccount:{site.namespace}:mallory"
    site.cluster.wait_until(
        "its being left to a person",
        lambda: stage.is_told(name, "LeftToAPerson", f"it was created by {mallory}"),
        WAIT_S,
    )
    assert site.status(name).get("phase", "Pending") == "Pending"
    site.approve(name, made)
    status = site.await_phase(name, "Refused")
    assert "OutsidePolicy" in [refusal["code"] for refusal in status["refusals"]], status
    assert site.deployment()["spec"]["replicas"] == 2
    assert "consumerplanner.dev/rollout" not in site.deployment()["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    "step",
    [
        UpdateTemplate(IMAGE, 2, 1, 0, 1, LIMIT_S, CHEAP),
        CreateDeployment("green", 60, IMAGE),
        StartConsumers(0, 1, LIMIT_S, CHEAP, undo="set 0", deployment="coredns"),
        AwaitSettled(2, "AVG", LIMIT_S, group="payments"),
    ],
    ids=lambda step: step.kind,
)
def test_without_a_migration_the_server_takes_no_step_of_one(stage: Stage, step: Step) -> None:
    document = PLAN.document(stage.plan([step], "update"), "not-a-migration", stage.site.namespace)
    unnamed = {key: value for key, value in document["spec"].items() if key != "migration"}
    for spec in (unnamed, {**unnamed, "migration": ""}):
        annotations = {DIGEST_ANNOTATION: digest_of(spec)}
        forged = {**document, "metadata": {**document["metadata"], "annotations": annotations}, "spec": spec}
        with pytest.raises(ApiError, match=r"only a migration may|a migration must have a name") as refused:
            stage.mallory.create(stage.plans, forged)
        assert refused.value.status == 422


def test_nobody_signs_as_the_planning_account(stage: Stage) -> None:
    planner = f"system:serviceaccount:{stage.site.namespace}:planner"
    document = PLAN.document(stage.plan(up()), "signed", stage.site.namespace)
    document["metadata"]["annotations"][AUTHOR_ANNOTATION] = planner
    with pytest.raises(ApiError, match="planned-by") as refused:
        stage.mallory.create(stage.plans, document)
    assert refused.value.status == 403
    del document["metadata"]["annotations"][AUTHOR_ANNOTATION]
    made = stage.mallory.create(stage.plans, document)
    assert made["metadata"]["annotations"][AUTHOR_ANNOTATION].endswith(":mallory")
    with pytest.raises(ApiError, match="planned-by"):
        stage.site.cluster.rest.patch(
            f"{stage.plans}/signed", {"metadata": {"annotations": {AUTHOR_ANNOTATION: planner}}}, MERGE
        )
    stage.site.cluster.rest.call("DELETE", f"{stage.plans}/signed")


def test_a_plan_is_frozen_from_its_creation(stage: Stage) -> None:
    """Who may approve could else edit and approve in one patch: the digest would fit what he wrote."""
    made = stage.plan(up())
    stage.mallory.create(stage.plans, PLAN.document(made, "frozen-early", stage.site.namespace))
    path = f"{stage.plans}/frozen-early"
    edited = PLAN.spec(replace(made, steps=(StopConsumers(2, 1, (), LIMIT_S, CHEAP, undo="set 2"),)))
    note = {"metadata": {"annotations": {APPROVE_ANNOTATION: digest_of(edited), DIGEST_ANNOTATION: digest_of(edited)}}}
    for body in ({"spec": edited}, {**note, "spec": edited}):
        with pytest.raises(ApiError, match="a plan is never changed") as refused:
            stage.site.cluster.rest.patch(path, body, MERGE)
        assert refused.value.status == 422
    stage.site.cluster.rest.call("DELETE", path)


def test_the_planning_accounts_plan_is_approved_by_the_criteria_and_carried_out(stage: Stage) -> None:
    site = stage.site
    found = stage.planner.create(stage.plans, PLAN.document(stage.plan(up()), "planned", site.namespace))
    assert found["metadata"]["annotations"][AUTHOR_ANNOTATION] == f"system:serviceaccount:{site.namespace}:planner"
    status: Json = site.await_phase("planned", "Succeeded")
    assert status["approval"]["by"].endswith(":consumer-planner-controller")
    assert site.deployment()["spec"]["replicas"] == 4
